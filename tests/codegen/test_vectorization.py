"""The C compiler keeps the promises of loop kinds: it vectorizes the loops that are meant for lanes."""

from __future__ import annotations

import platform
import re
import subprocess
from pathlib import Path

import pytest

from tc.codegen.source import c_source
from tc.polyhedral.loops import LoopProgram
from tc.types import ScalarType
from tests.codegen.harness import FLAGS

TYPES = (ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32)
HALVES = (ScalarType.FLOAT16, ScalarType.BFLOAT16)

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="names instructions of x86-64")


def vectorized_loops(program: LoopProgram, folder: Path) -> int:
    """How many loops of the source gcc runs in lanes of AVX2."""
    source = folder / "kernel.c"
    text = c_source(program).text
    source.write_text(text, encoding="utf-8")
    flags = [flag for flag in FLAGS if flag != "-march=native"]
    command = [
        "gcc",
        *flags,
        "-march=x86-64-v3",
        "-fopt-info-vec-optimized",
        str(source),
        "-o",
        str(folder / "kernel.so"),
    ]
    notes = subprocess.run(command, capture_output=True, text=True, check=True).stderr
    lines = {int(line) for line in re.findall(r"kernel\.c:(\d+):\d+: optimized: loop vectorized", notes)}
    return len([line for line in lines if "for (" in text.splitlines()[line - 1]])
