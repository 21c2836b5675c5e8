"""The process's thread pool, ``pool.c``: built once per machine, loaded once per process."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tc.environment import Environment, environment
from tc.runtime.compiler import SHARED, compile_shared, find_compiler
from tc.runtime.disk import remembered
from tc.runtime.library import load_library
from tc.target import processor

_FLAGS: Final = (*SHARED, "-O2", "-Wall", "-Wextra", "-pthread")


@dataclass(frozen=True, slots=True)
class Pool:
    """The loaded pool.  ``run`` takes a packed ``tc_launch`` (see ``pool.h``), releases the interpreter's lock while
    the kernel runs, and returns the kernel's fault."""

    run: Callable[[bytes], int]


def pool_binary(settings: Environment) -> bytes:
    """The pool's shared library for this machine: from the user's cache folder, else built by its C compiler."""
    folder = Path(__file__).parent
    source = (folder / "pool.c").read_text(encoding="utf-8")
    for name in ("pool.h", "workspace.h"):
        source = source.replace(f'#include "{name}"', (folder / name).read_text(encoding="utf-8"))
    compiler = find_compiler(settings)
    cache = None if settings.cache_home is None else settings.cache_home / "tc" / "runtime"
    return remembered(
        cache,
        (processor().machine, compiler.identity, *_FLAGS, source),
        lambda: compile_shared(source, _FLAGS, compiler),
    )


_LOADED: Final[dict[str, Pool]] = {}


def shared_pool() -> Pool:
    """The one pool of this process, loaded when first asked for."""
    pool = _LOADED.get("pool")
    if pool is None:
        run = load_library(pool_binary(environment())).tc_run
        run.argtypes, run.restype = (ctypes.c_char_p,), ctypes.c_int32
        # Threads that come here together may each load one; all of them keep the first.
        pool = _LOADED.setdefault("pool", Pool(run))
    return pool
