"""Which C library a compiled kernel needs, and whether this system has it."""

from __future__ import annotations

import os
import re
from typing import Final

from tc.base.errors import DeviceError

# The names of versions of symbols, as they stand in the string table of a library.
_GLIBC: Final = rb"\0GLIBC_(\d+)\.(\d+)"


def required_libc(binary: bytes) -> str:
    """The oldest C library with all symbols that a shared library names: ``glibc 2.34``; empty where it names none."""
    versions = [(int(major), int(minor)) for major, minor in re.findall(_GLIBC, binary)]
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
