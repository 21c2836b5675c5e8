"""Shared libraries in this process, from their bytes."""

from __future__ import annotations

import ctypes
import os

from tc.errors import DeviceError
from tc.runtime.disk import temporary_folder


def load_library(binary: bytes, kind: type[ctypes.CDLL] = ctypes.CDLL) -> ctypes.CDLL:
    """Loads a shared library; its file is gone when this returns, and the code stays until the process ends.

    ``kind``: ``ctypes.PyDLL`` for functions that use the interpreter, and so must keep its lock.

    The dynamic loader identifies libraries by path, so every one gets a new name: descriptors of anonymous
    memory, whose numbers come back, would return an older library.
    """
    with temporary_folder() as folder:
        file = folder / f"{folder.name}.so"
        file.write_bytes(binary)
        try:
            return kind(str(file), mode=os.RTLD_NOW | os.RTLD_LOCAL)
        except OSError as error:
            raise DeviceError(
                f"a compiled library cannot be loaded: {error}; if the folder for temporary files is mounted "
                "noexec, name another one in TMPDIR"
            ) from error
