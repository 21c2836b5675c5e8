"""Triton's kernels compute what they are compared with, as its interpreter runs them on the processor."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

ROOT = Path(__file__).parents[2]
PROGRAM = """
import sys
from pathlib import Path

import torch

from benchmarks.measuring.judge import deviation_of_peer, judge
from benchmarks.peers import triton_calls
from benchmarks.measuring.prepared import _as_numpy
from tc.reference.kept import kept_results
from tests.benchmarks.problems import SEED, small

for kernel in vars(triton_calls).values():
    if hasattr(kernel, "configs"):
        kernel.configs = kernel.configs[:1]  # nothing is timed
for name, call in triton_calls.CALLS.items():
    case, folder = small(name), Path(sys.argv[1]) / name
    folder.mkdir()
    judge(case, folder, SEED)
    arguments = case.problem.arrange(*case.problem.arguments(case.sizes, SEED).values())
    results = call(*(a if isinstance(a, int) else torch.from_numpy(a) for a in arguments))
    print(name, deviation_of_peer(_as_numpy(results), kept_results(folder)))
"""


def test_kernels_of_triton_agree_with_the_oracle(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path)],
        check=False,
        cwd=ROOT,
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    said = dict(line.split(maxsplit=1) for line in found.stdout.splitlines())
    assert len(said) == 12
    assert all(float(deviation) < 1e-5 for deviation in said.values()), said
