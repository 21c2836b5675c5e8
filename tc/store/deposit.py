"""Puts executables into a cache, with all that a process needs that calls them without a compiler."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final

from tc.artifact.definition import Definition, definitions_to_json
from tc.artifact.executable import Executable
from tc.artifact.packing import describe, variant_options
from tc.base.environment import Environment
from tc.base.generator import RELEASE, generator_version
from tc.base.json_records import to_json
from tc.cache.content.store import Store
from tc.cache.format.records import Native, Text, Variant, text_key
from tc.runtime.host.libc import required_libc
from tc.runtime.host.native import NATIVES, native_binary, native_source
from tc.runtime.version import compiler_version
from tc.store.wanted import Wanted
from tc.targets.target import CpuTarget, EmulatorTarget, processor

TEXT: Final = "text"
"""Where the origin of a variant names the text that it was made from, if it was made from one."""


def deposit(
    store: Store,
    wanted: Wanted,
    siblings: Mapping[str, Definition],
    executable: Executable,
    settings: Environment,
    *,
    made: str,
    numerics: str = "",
) -> Variant:
    """Stores an executable, and what a process needs that calls it without a compiler.

    ``siblings``: all definitions of its text.  ``made``: how it came about.  ``numerics``: see ``Variant``.
    """
    ingredients = wanted.ingredients(compiler_version(wanted.target, settings))
    text = wanted.definition.text
    key = None if text is None else text_key(text, generator_version())
    variant = _variant_of(ingredients.key, executable, made, numerics, key)
    meaning = None if key is None else Text(key, definitions_to_json(siblings))
    store.add_executable(ingredients, variant, meaning, [_native(name, settings) for name in NATIVES])
    return variant


def _native(name: str, settings: Environment) -> Native:
    source = native_source(name)
    return Native(name, source.machine, source.digest, native_binary(name, settings))


def _variant_of(key: str, executable: Executable, made: str, numerics: str, text: str | None) -> Variant:
    target = executable.target
    features = sorted(target.features) if isinstance(target, CpuTarget | EmulatorTarget) else []
    origin = {
        "made": made,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": processor().model,
        "system": platform.platform(),
        "python": platform.python_version(),
        "tc": RELEASE,
        TEXT: text,
    }
    return Variant(
        kernel=key,
        options=variant_options(executable),
        threads=executable.threads,
        source=executable.source,
        binary=executable.binary.code,
        executable=describe(executable),
        resources=json.dumps(to_json(executable.resources)),
        proof=str(executable.proof),
        numerics=numerics,
        features=" ".join(features),
        libc=required_libc(executable.binary.code),
        origin=json.dumps(origin),
    )
