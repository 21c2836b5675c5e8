"""The process's thread pool, ``pool.c``: loaded once per process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Final

from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.runtime.host.library import load_library
from tc.runtime.host.native import native_binary


@frozen
class Pool:
    """The loaded pool.  ``run`` takes a packed ``tc_launch`` (see ``pool.h``), releases the interpreter's lock while
    the kernel runs, and returns the kernel's fault; ``address`` is that function's in C.
    """

    run: Callable[[bytes], int]
    address: int


_LOADED: Final[dict[str, Pool]] = {}


def shared_pool() -> Pool:
    """The one pool of this process, loaded when first asked for."""
    pool = _LOADED.get("pool")
    if pool is None:
        run = load_library(native_binary("pool.c", environment())).tc_run
        run.argtypes, run.restype = (ctypes.c_char_p,), ctypes.c_int32
        address = ctypes.cast(run, ctypes.c_void_p).value
        assert address is not None
        # Threads that come here together may each load one; all of them keep the first.
        pool = _LOADED.setdefault("pool", Pool(run, address))
    return pool
