"""A folder for temporary files that is full, cannot be written, or has no place for programs."""

from __future__ import annotations

import errno
import re
from pathlib import Path

import pytest

from tc.base.environment import environment
from tc.base.errors import CompileError, NoRoomError
from tc.runtime.host.c_compiler import compile_shared, find_compiler, keep
from tc.runtime.host.scratch import scratch_folder, told_of_room
from tests.read_only import python, run_with_temporary

CALL = """
import numpy as np, tc
twice = tc.define("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")
try:
    print(*twice(np.arange(3, dtype=np.float32)))
except tc.TCError as error:
    print(error)
"""
ALONE = {"TC_CACHE_MODE": "off", "HOME": "", "XDG_CACHE_HOME": ""}
# Text beside the folder, what is left of what, and what to do.
FULL = (
    r"the folder for temporary files is full: {} has [\d.]+ [KM]?i?B left of {}{}; free some space there, or name "
    r"another folder in TMPDIR"
)


@pytest.mark.parametrize("size", ["4k", "16k"])
def test_a_full_folder_says_how_full_it_is(tmp_path: Path, size: str) -> None:
    """For the source, and for what the compiler makes of it."""
    done = run_with_temporary(tmp_path, f"size={size}", *python(CALL), environment=ALONE)
    assert re.fullmatch(FULL.format(tmp_path, f"{size[:-1]} KiB", ""), done.stdout.strip())


@pytest.mark.slow
def test_a_search_says_how_much_it_needs(tmp_path: Path) -> None:
    folder, kernels = tmp_path / "small", tmp_path / "kernels.tc"
    folder.mkdir()
    kernels.write_text("def twice(float(N) x) -> (y) { y(i) = 2 * x(i) }")
    arguments = [
        str(kernels),
        "--size",
        "N=100000",
        "--quiet",
        "--budget",
        "1 trial",
        "--cache",
        str(tmp_path / "t.db"),
    ]
    program = f"import sys; from tc.commands.tune import main; sys.exit(main({arguments!r}))"
    done = run_with_temporary(folder, "size=300k", *python(program), environment=ALONE, check=False)
    assert done.returncode == 1, done.stderr
    full = FULL.format(folder, "300 KiB", r", and about 2 MiB are needed")
    assert re.fullmatch(rf"twice\(N=100000\): failed: {full}", done.stdout.strip())


def test_calls_need_no_executable_folder(tmp_path: Path) -> None:
    done = run_with_temporary(tmp_path, "noexec", *python(CALL), environment=ALONE)
    assert done.stdout == "0.0 2.0 4.0\n"
    assert done.stderr == ""


def test_faults_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for number in (errno.ENOSPC, errno.EDQUOT):
        with pytest.raises(NoRoomError, match=r"is full: .* and about 3 MiB are needed"), told_of_room(3 << 20):
            raise OSError(number, "reason")
    with pytest.raises(NoRoomError, match="is full: "), told_of_room():
        raise OSError("4000 requested and 7 written")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(NoRoomError, match=r"no place for temporary files: .*; name a writable folder in TMPDIR"):
        scratch_folder("tc-1-").__enter__()


def test_a_refused_source_that_cannot_be_kept_is_still_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = find_compiler(environment())
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(tmp_path / "none"))
        assert keep("no C", "kernel.c") is None
    with monkeypatch.context() as patched:
        patched.setattr("tempfile.tempdir", str(tmp_path))
        assert keep("no C", "none/kernel.c") is None
        assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr("tc.runtime.host.c_compiler.keep", lambda _source, _name: None)
    with pytest.raises(CompileError, match="the source is not kept, because no temporary file can be written"):
        compile_shared("no C", (), compiler)
