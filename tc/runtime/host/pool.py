"""The process's thread pool, ``pool.c``: loaded once per process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any, Final

from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.runtime.host.library import load_library
from tc.runtime.host.native import native_binary


@frozen
class Pool:
    """The loaded pool: functions that release the interpreter's lock while kernels run.

    ``run`` takes a packed ``tc_launch`` (see ``pool.h``), and returns the kernel's fault.  ``run_program`` takes a
    packed ``tc_program``, the number of threads and an array of addresses, and returns what ``tc_run_program`` does;
    it is at ``program_address``.  ``copy_address``: of the kernel that copies.
    """

    run: Callable[[bytes], int]
    run_program: Callable[[bytes, int, ctypes.Array[ctypes.c_uint64]], int]
    program_address: int
    copy_address: int


_LOADED: Final[dict[str, Pool]] = {}


def shared_pool() -> Pool:
    """The one pool of this process, loaded when first asked for."""
    pool = _LOADED.get("pool")
    if pool is None:
        library = load_library(native_binary("pool.c", environment()))
        run, run_program = library.tc_run, library.tc_run_program
        run.argtypes, run.restype = (ctypes.c_char_p,), ctypes.c_int32
        run_program.argtypes = (ctypes.c_char_p, ctypes.c_int64, ctypes.POINTER(ctypes.c_uint64))
        run_program.restype = ctypes.c_int64
        # Threads that come here together may each load one; all of them keep the first.
        loaded = Pool(run, run_program, _address(run_program), _address(library.tc_copy))
        pool = _LOADED.setdefault("pool", loaded)
    return pool


def _address(function: Any) -> int:
    address = ctypes.cast(function, ctypes.c_void_p).value
    assert address is not None
    return address
