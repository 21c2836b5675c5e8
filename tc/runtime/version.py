"""Which version of which compiler makes the kernels of a target, and which C library they then need."""

from __future__ import annotations

import functools
import os
import re
import shlex
from pathlib import Path
from typing import Final, assert_never

from tc.environment import Environment
from tc.errors import DeviceError
from tc.runtime.compiler import Compiler, answer, find_compiler
from tc.runtime.nvrtc import nvrtc_version
from tc.runtime.opencl import opencl_device
from tc.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget, Target

# The names of versions of symbols, as they stand in the string table of a library.
_GLIBC: Final = re.compile(rb"\0GLIBC_(\d+)\.(\d+)")


def compiler_version(target: Target, settings: Environment) -> str:
    """What makes binaries for ``target`` here; DeviceError if there is no such compiler."""
    match target:
        case CpuTarget() | EmulatorTarget():
            return _version(find_compiler(settings))
        case CudaTarget():
            return nvrtc_version()
        case OpenClTarget():
            return opencl_device().version
        case _:
            assert_never(target)


@functools.cache
def _version(compiler: Compiler) -> str:
    """The first line of ``--version``, without the program's own name, and the arguments that ``TC_CC`` adds."""
    first = next(iter(answer(compiler, "--version").splitlines()), "").strip()
    own = Path(compiler.command[0]).name
    return " ".join((first.removeprefix(own).strip() or own, *map(shlex.quote, compiler.command[1:])))


def required_libc(binary: bytes) -> str:
    """The oldest C library with all symbols that a shared library names: ``glibc 2.34``; empty where it names none."""
    versions = [(int(major), int(minor)) for major, minor in _GLIBC.findall(binary)]
    return "glibc {}.{}".format(*max(versions)) if versions else ""


def check_libc(required: str) -> None:
    """DeviceError when the C library of this process is another one, or older."""
    if not required:
        return
    found = _libc()
    name, _, version = required.partition(" ")
    here, _, running = found.partition(" ")
    if here != name or _numbers(running) < _numbers(version):
        raise DeviceError(
            f"a compiled kernel needs {required}, and this system has {found or 'another C library'}; "
            "compile it on a system that is as old as this one"
        )


def _libc() -> str:
    try:
        return os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):  # another C library does not know the name
        return ""


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
