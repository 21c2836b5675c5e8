"""Executables as text and bytes, for files and other processes; no pickles."""

from __future__ import annotations

import json
from dataclasses import dataclass

from tc.convention import Convention
from tc.errors import TCError
from tc.executable import Executable
from tc.options import CpuOptions, GpuOptions, Options
from tc.proof import Proof
from tc.records import from_json as record_from_json
from tc.records import to_json as record_to_json
from tc.runtime.binary import Binary, KernelUse
from tc.target import CpuTarget, parse_target


@dataclass(frozen=True, slots=True)
class _Description:
    """What stands beside the source and the binary of an executable."""

    convention: Convention
    target: str
    threads: int
    schedule: str
    proof: Proof
    kernels: dict[str, KernelUse]


def options_text(options: Options) -> str:
    """The options as canonical JSON: equal options have equal texts."""
    return options.to_json()


def options_from_text(text: str, target: str) -> Options:
    """The inverse, for options of a target; OptionsError for anything else."""
    return CpuOptions.from_json(text) if target.startswith("cpu") else GpuOptions.from_json(text)


def describe(executable: Executable) -> str:
    """All of an executable but its options, its source and its binary code, as JSON."""
    description = _Description(
        convention=executable.convention,
        target=str(executable.target),
        threads=executable.threads,
        schedule=executable.schedule,
        proof=executable.proof,
        kernels=dict(executable.binary.kernels),
    )
    return json.dumps(record_to_json(description), separators=(",", ":"))


def assemble(description: str, options: str, source: str, code: bytes) -> Executable:
    """The inverse of ``describe``; ValueError for text that it did not make."""
    found = record_from_json(_Description, json.loads(description))
    try:
        chosen, target = options_from_text(options, found.target), parse_target(found.target)
    except TCError as error:
        raise ValueError(str(error)) from error
    assert isinstance(target, CpuTarget) == isinstance(chosen, CpuOptions)
    return Executable(
        convention=found.convention,
        options=chosen,
        target=target,
        threads=found.threads,
        source=source,
        schedule=found.schedule,
        proof=found.proof,
        binary=Binary(code, found.kernels),
    )


def pack(executable: Executable) -> bytes:
    """An executable as one piece: a line of JSON, then the code."""
    head = {"about": describe(executable), "options": options_text(executable.options), "source": executable.source}
    return json.dumps(head).encode() + b"\n" + executable.binary.code


def unpack(packed: bytes) -> Executable:
    """The inverse of ``pack``; ValueError for anything else."""
    line, newline, code = packed.partition(b"\n")
    match json.loads(line):
        case {"about": str() as about, "options": str() as options, "source": str() as source} if newline:
            return assemble(about, options, source, code)
        case _:
            raise ValueError("this is no packed executable")
