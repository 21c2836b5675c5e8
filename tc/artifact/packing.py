"""Executables as text and bytes, for files and other processes; no pickles."""

from __future__ import annotations

import functools
import json
from typing import Final

from tc.artifact.convention import Convention
from tc.artifact.earlier_formats import with_places
from tc.artifact.executable import Executable
from tc.base.decision import Decision
from tc.base.digest import sha256_hex
from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.base.json_records import from_json as record_from_json
from tc.base.json_records import to_json as record_to_json
from tc.base.proof import Proof
from tc.runtime.host.binary import Binary, KernelUse
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.options_json import from_json, option_value, to_json, value_to_json
from tc.targets.target import CpuTarget, parse_target

# Descriptions have said what a kernel was really made with since the second one, in which dimensions of arguments sizes
# are that stay open since the third one, which kernels of a GPU are launched several times since the fourth one,
# what they ask of it since the fifth one, and of which tensors they copy boxes since the sixth one.
_FORMAT: Final = 6
_PLACES: Final = 3


@frozen
class _Decided:
    """A decision; values are those of options in JSON."""

    option: str
    asked: object
    taken: object
    reason: str


@frozen
class _Description:
    """What stands beside the source and the binary of an executable.

    ``options``: what it is really made with; None in the first format, which did not tell it from what was asked for.
    """

    convention: Convention
    target: str
    threads: int
    schedule: str
    proof: Proof
    kernels: dict[str, KernelUse]
    format: int = 1
    options: dict[str, object] | None = None
    decisions: tuple[_Decided, ...] = ()
    asks: str = ""


def options_text(options: Options) -> str:
    """The options as canonical JSON: equal options have equal texts."""
    return options.to_json()


_SOURCE: Final = "source"


def variant_options(executable: Executable) -> str:
    """How a cache tells the variants of a kernel apart: by their options, and by what stands in their place where
    the source was injected, so that whoever asks for the options gets what was proven.
    """
    if executable.proof.tried is None:
        return options_text(executable.asked)
    digest = sha256_hex(executable.source.encode())
    return json.dumps({**to_json(executable.asked), _SOURCE: digest}, sort_keys=True, separators=(",", ":"))


def has_injected_source(options: str) -> bool:
    """Whether the options of a variant, as ``variant_options`` makes them, stand for an injected source."""
    try:
        found = json.loads(options)
    except (ValueError, RecursionError):
        return False
    return isinstance(found, dict) and _SOURCE in found


@functools.lru_cache(maxsize=64)
def options_from_text(text: str, target: str) -> Options:
    """The inverse, for options of a target; OptionsError for anything else.  Most kernels of a cache have the same."""
    return CpuOptions.from_json(text) if target.startswith("cpu") else GpuOptions.from_json(text)


def describe(executable: Executable) -> str:
    """All of an executable but the options asked for, its source and its binary code, as JSON."""
    description = _Description(
        convention=executable.convention,
        target=str(executable.target),
        threads=executable.threads,
        schedule=executable.schedule,
        proof=executable.proof,
        kernels=dict(executable.binary.kernels),
        format=_FORMAT,
        options=to_json(executable.options),
        decisions=tuple(map(_decided, executable.decisions)),
        asks=executable.asks,
    )
    return json.dumps(record_to_json(description), separators=(",", ":"))


def assemble(description: str, options: str, source: str, code: bytes) -> Executable:
    """The inverse of ``describe``; ValueError for text that it did not make."""
    found = _described(json.loads(description))
    try:
        if found.proof.tried is not None:
            options = _without_source(options)
        asked, target = options_from_text(options, found.target), parse_target(found.target)
        same = found.options is None or found.options == json.loads(options)
        taken = asked if same else from_json(found.options, type(asked))
        decisions = tuple(_decision(one, type(asked)) for one in found.decisions)
    except TCError as error:
        raise ValueError(str(error)) from error
    assert isinstance(target, CpuTarget) == isinstance(asked, CpuOptions)
    return Executable(
        convention=found.convention,
        asked=asked,
        options=taken,
        decisions=decisions,
        target=target,
        threads=found.threads,
        source=source,
        schedule=found.schedule,
        proof=found.proof,
        binary=Binary(code, found.kernels),
        asks=found.asks,
    )


def _described(data: object) -> _Description:
    """ValueError, saying so, for a description of a later format, whose other fields mean nothing here."""
    if isinstance(data, dict) and isinstance(written := data.get("format", 1), int):
        if written > _FORMAT:
            raise ValueError(f"it is of format {written}, and this version of tc reads formats up to {_FORMAT}")
        if written < _PLACES:
            data = with_places(data)
    return record_from_json(_Description, data)


def decisions_said(description: str) -> tuple[str, ...]:
    """The decisions of an executable that ``describe`` has made this of, as text; none for any other text."""
    try:
        found = _described(json.loads(description))
        return tuple(str(Decision(d.option, _tuples(d.asked), _tuples(d.taken), d.reason)) for d in found.decisions)
    except (ValueError, RecursionError):
        return ()


def _tuples(value: object) -> object:
    return tuple(value) if isinstance(value, list) else value


def _decided(decision: Decision) -> _Decided:
    return _Decided(decision.option, value_to_json(decision.asked), value_to_json(decision.taken), decision.reason)


def _decision(found: _Decided, options: type[Options]) -> Decision:
    """With the values as options have them."""
    asked, taken = (option_value(found.option, value, options) for value in (found.asked, found.taken))
    return Decision(found.option, asked, taken, found.reason)


def _without_source(options: str) -> str:
    data = json.loads(options)
    if not isinstance(data, dict) or not isinstance(data.pop(_SOURCE, None), str):
        raise ValueError("these are not the options of an injected source")
    return json.dumps(data)


def pack(executable: Executable) -> bytes:
    """An executable as one piece: a line of JSON, then the code."""
    head = {"about": describe(executable), "options": variant_options(executable), "source": executable.source}
    return json.dumps(head).encode() + b"\n" + executable.binary.code


def unpack(packed: bytes) -> Executable:
    """The inverse of ``pack``; ValueError for anything else."""
    line, newline, code = packed.partition(b"\n")
    match json.loads(line):
        case {"about": str() as about, "options": str() as options, "source": str() as source} if newline:
            return assemble(about, options, source, code)
        case _:
            raise ValueError("this is no packed executable")
