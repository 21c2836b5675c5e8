"""Shared libraries in this process, from their bytes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from tc.base.errors import DeviceError

_DESCRIPTORS: Final = "/proc/self/fd/"
_NAME: Final = "tc-library"
# No program can be made of it; libraries can.  Some systems refuse all other memory, and kernels before Linux 6.3 do
# not know the flag.
_MFD_NOEXEC_SEAL: Final = 0x8


def load_library(binary: bytes, kind: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """Loads a shared library, whose code stays until the process ends; DeviceError where that is impossible.

    It goes through memory that has no name, so that no other process can change it on its way, and no folder needs to
    be writable or executable.  Where a system has no such memory, or does not run what is in it, a file takes its
    place, in a private folder for temporary files, that is gone when this returns.

    ``kind``: ``ctypes.PyDLL`` for functions that use the interpreter, and so must keep its lock.
    """
    try:
        with _in_memory(binary) as path:
            return _open(path, kind)
    except OSError as refused:
        from tc.runtime.host.disk import temporary_folder

        # The file says more clearly what is wrong with a library that is refused everywhere.
        try:
            with temporary_folder() as folder:
                file = folder / f"{folder.name}.so"
                file.write_bytes(binary)
                return _open(str(file), kind)
        except (OSError, DeviceError) as error:
            raise DeviceError(
                f"a compiled library cannot be loaded: neither from memory ({refused}) nor from a file ({error}); "
                "if the folder for temporary files is mounted noexec, name another one in TMPDIR"
            ) from error


def _open(path: str, kind: type[ctypes.CDLL]) -> ctypes.CDLL:
    return kind(path, mode=os.RTLD_NOW | os.RTLD_LOCAL)


@contextmanager
def _in_memory(binary: bytes) -> Iterator[str]:
    """A path to memory with this content, which cannot change any more; OSError where there is none."""
    if not hasattr(os, "memfd_create"):
        raise OSError("this system has no memfd_create")
    descriptor = _memory()
    try:
        with os.fdopen(os.dup(descriptor), "wb") as stream:
            stream.write(binary)
        seals = fcntl.F_SEAL_WRITE | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
        fcntl.fcntl(descriptor, fcntl.F_ADD_SEALS, seals)
        yield _unique_path(descriptor)
    finally:
        os.close(descriptor)


def _memory() -> int:
    """A descriptor of new memory."""
    flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
    try:
        return os.memfd_create(_NAME, flags | _MFD_NOEXEC_SEAL)
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        return os.memfd_create(_NAME, flags)


def _unique_path(descriptor: int) -> str:
    """The path of an open descriptor, spelled as no other library that is loaded.

    The dynamic loader takes a path that it knows for the library that it has loaded from there, and numbers of
    descriptors come back.  The number of the file does not, while the library is in use; its bits become ``./`` and
    ``/``, which lead nowhere else.
    """
    bits = f"{os.fstat(descriptor).st_ino:b}"
    return f"{_DESCRIPTORS}{bits.replace('0', '/').replace('1', './')}{descriptor}"
