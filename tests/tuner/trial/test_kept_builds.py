"""Each source is compiled once, whoever asks for it and with whatever options."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tc.artifact.packing import options_text, unpack
from tc.base.errors import CompileError
from tc.codegen.printer.source import KernelSource
from tc.targets.options import CpuOptions
from tc.tuner.trial.build_handler import BuildHandler
from tc.tuner.trial.kept_builds import KeptBuilds
from tc.tuner.trial.messages import Build, Built, Prepare
from tests.tuner import trial_support as trial


def handler(folder: Path) -> BuildHandler:
    made = BuildHandler()
    made.answer(Prepare(trial.TASK, str(folder)), b"")
    return made


def test_options_that_print_the_same_source_share_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, other = CpuOptions(), CpuOptions(gather_prefetch=7)
    answer, packed = handler(tmp_path).answer(Build(options_text(first)), b"")
    assert isinstance(answer, Built)

    def never(*_: object) -> object:
        raise CompileError("there is no compiler")

    monkeypatch.setattr("tc.compiler._toolchain", never)
    again = handler(tmp_path)
    answer, shared = again.answer(Build(options_text(other)), b"")
    assert isinstance(answer, Built)
    assert unpack(shared) == replace(unpack(packed), asked=other, options=other)
    answer, _ = again.answer(Build(options_text(CpuOptions(vectorize=False))), b"")
    assert not isinstance(answer, Built)


def test_what_a_call_brings_counts_beside_the_text(tmp_path: Path) -> None:
    kept, executable = KeptBuilds(tmp_path), trial.right()
    source = KernelSource(executable.source, (), 0, 64)
    assert kept.find(source.digest) is None
    kept.keep(source.digest, executable)
    assert KeptBuilds(tmp_path).find(source.digest) == executable
    assert kept.find(replace(source, scratch_bytes=128).digest) is None
    assert [path.suffix for path in tmp_path.iterdir()] == [".tc"]
