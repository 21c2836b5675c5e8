"""The parts of the runtime that are written in C, built once per machine.

The compiler is imported where it is needed: production has all parts in its cache.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final

from tc.base.digest import sha256_hex
from tc.base.environment import Environment
from tc.base.errors import DeviceError
from tc.base.frozen import frozen
from tc.cache.content.configured import Mode, configured, exists, open_reader
from tc.runtime.host.flags import SHARED
from tc.targets.target import processor

if TYPE_CHECKING:
    from tc.runtime.host.c_compiler import Compiler

_FOLDER: Final = os.path.dirname(os.path.dirname(__file__))
_FLAGS: Final = (*SHARED, "-O2", "-Wall", "-Wextra", "-pthread")
_INCLUDE: Final = r'^#include "(\w+\.h)"$'


# What processes need that call kernels, the last one to hand arrays of a GPU to others.
NATIVES: Final = ("pool.c", "warm.c", "dlpack.c")


@frozen
class NativeSource:
    """A source of this folder, whole, for a kind of machine."""

    name: str
    text: str
    machine: str

    @property
    def digest(self) -> str:
        """The hash of the text and of the options that it is compiled with."""
        return sha256_hex("\0".join((self.text, *_FLAGS)).encode())


def native_source(name: str) -> NativeSource:
    """The source called ``name``, for this machine."""
    return NativeSource(
        name, re.sub(_INCLUDE, lambda found: _text(found[1]), _text(name), flags=re.MULTILINE), processor().machine
    )


def native_binary(name: str, settings: Environment) -> bytes:
    """The shared library of a source: from the cache that was shipped, from the user's cache folder, or compiled.

    DeviceError where it is in neither, and there is no C compiler.
    """
    source = native_source(name)
    configuration = configured(settings)
    if configuration is not None and configuration.mode is not Mode.STORE:
        shipped = open_reader(configuration).native(name, source.machine, source.digest)
        if shipped is not None:
            return shipped.binary
    from tc.runtime.host.c_compiler import find_compiler

    try:
        compiler = find_compiler(settings)
    except DeviceError:
        kept = None
        if configuration is not None and exists(configuration):
            kept = open_reader(configuration).native(name, source.machine, source.digest)
        if kept is None:
            raise
        return kept.binary
    return _built(source, compiler, settings)


def _built(source: NativeSource, compiler: Compiler, settings: Environment) -> bytes:
    from pathlib import Path

    from tc.runtime.host.c_compiler import compile_shared
    from tc.runtime.host.disk import remembered

    folder = None if settings.cache_home is None else Path(settings.cache_home, "tc", "runtime")
    return remembered(
        folder,
        (source.machine, compiler.identity, *_FLAGS, source.text),
        lambda: compile_shared(source.text, _FLAGS, compiler),
    )


def _text(name: str) -> str:
    with open(os.path.join(_FOLDER, name), encoding="utf-8") as stream:
        return stream.read()
