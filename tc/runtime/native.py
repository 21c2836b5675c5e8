"""The parts of the runtime that are written in C, built once per machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from tc.environment import Environment
from tc.runtime.compiler import SHARED, compile_shared, find_compiler
from tc.runtime.disk import remembered
from tc.target import processor

_FOLDER: Final = Path(__file__).parent
_FLAGS: Final = (*SHARED, "-O2", "-Wall", "-Wextra", "-pthread")
_INCLUDE: Final = re.compile(r'^#include "(\w+\.h)"$', re.MULTILINE)


def native_binary(name: str, settings: Environment) -> bytes:
    """The shared library of a source of this folder: from the user's cache folder, else built by its C compiler."""
    source = _INCLUDE.sub(lambda found: _text(found[1]), _text(name))
    compiler = find_compiler(settings)
    cache = None if settings.cache_home is None else settings.cache_home / "tc" / "runtime"
    return remembered(
        cache,
        (processor().machine, compiler.identity, *_FLAGS, source),
        lambda: compile_shared(source, _FLAGS, compiler),
    )


def _text(name: str) -> str:
    return (_FOLDER / name).read_text(encoding="utf-8")
