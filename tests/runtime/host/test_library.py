"""Libraries from their bytes: through sealed memory, and where there is none, through a file that is gone at once."""

from __future__ import annotations

import ctypes
import errno
import os
from pathlib import Path

import pytest

from tc.base.environment import environment
from tc.base.errors import DeviceError
from tc.runtime.host.c_compiler import compile_shared, find_compiler
from tc.runtime.host.flags import SHARED
from tc.runtime.host.library import load_library

COUNTING = "static int count = {}; int next(void) {{ return count++; }}"


def binary(first: int) -> bytes:
    return compile_shared(COUNTING.format(first), SHARED, find_compiler(environment()))


def refuse() -> None:
    raise AssertionError("a temporary folder was asked for")


def test_every_library_is_its_own_though_descriptors_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    code = [binary(10 * number) for number in range(3)]
    monkeypatch.setattr("tc.runtime.host.disk.temporary_folder", refuse)
    descriptors = Path("/proc/self/fd")
    before = len([*descriptors.iterdir()])
    loaded = [load_library(code[number % 3]) for number in range(12)]
    assert len([*descriptors.iterdir()]) == before
    for turn in range(2):
        assert [library.next() for library in loaded] == [10 * (number % 3) + turn for number in range(12)]


def test_what_is_being_loaded_cannot_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    refused = []

    class Attacked(ctypes.CDLL):
        def __init__(self, path: str, mode: int) -> None:
            for flags in (os.O_WRONLY, os.O_RDWR | os.O_TRUNC):
                try:
                    os.write(os.open(path, flags), b"evil")
                except OSError as error:
                    refused.append(error.errno)
            super().__init__(path, mode)

    code = binary(7)
    monkeypatch.setattr("tc.runtime.host.disk.temporary_folder", refuse)
    assert load_library(code, Attacked).next() == 7
    assert refused == [errno.EPERM, errno.EPERM]


def without_memory(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(name: str, flags: int) -> int:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "memfd_create", fail)


def test_a_kernel_that_does_not_know_a_flag_is_asked_without(monkeypatch: pytest.MonkeyPatch) -> None:
    create, asked, code = os.memfd_create, [], binary(3)

    def old(name: str, flags: int) -> int:
        asked.append(flags)
        if flags & ~(os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING):
            raise OSError(errno.EINVAL, "Invalid argument")
        return create(name, flags)

    monkeypatch.setattr(os, "memfd_create", old)
    monkeypatch.setattr("tc.runtime.host.disk.temporary_folder", refuse)
    assert load_library(code).next() == 3
    assert len(asked) == 2


@pytest.mark.parametrize("way", ["refused", "absent", "not executable"])
def test_a_file_serves_where_memory_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    code = binary(5)
    if way == "refused":
        without_memory(monkeypatch, errno.ENOSYS)
    elif way == "absent":
        monkeypatch.delattr(os, "memfd_create")
    else:
        monkeypatch.setattr("tc.runtime.host.library._DESCRIPTORS", "/nowhere/")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert load_library(code).next() == 5
    assert list(tmp_path.iterdir()) == []


def test_where_neither_serves_both_reasons_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_memory(monkeypatch, errno.EPERM)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "none"))
    with pytest.raises(DeviceError) as caught:
        load_library(b"")
    text = str(caught.value)
    assert text.startswith(
        "a compiled library cannot be loaded: neither from memory ([Errno 1] Operation not permitted) nor from a file "
        "(no place for temporary files: "
    )
    assert text.endswith("if the folder for temporary files is mounted noexec, name another one in TMPDIR")
