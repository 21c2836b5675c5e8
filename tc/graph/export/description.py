"""``export.json``: an exported model for programs: its arrays, where weights are in their file, and its files."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from tc.base.generator import RELEASE
from tc.graph.export.program import ModelProgram, Parameter
from tc.graph.ir.values import Value

DESCRIPTION: Final = "export.json"
_FORMAT: Final = 1
_WRITER: Final = "tc.graph"
# What `make` adds to the folder.
_MADE: Final = (".o", ".a")
_PROGRAMS: Final = ("main", "compile")


def description(program: ModelProgram, target: str, files: Sequence[str]) -> str:
    """The text of the file."""
    values = program.constants
    tensors = [
        {"offset": tensor.offset, "bytes": tensor.bytes, **_typed(values[tensor.name])}
        for tensor in program.weights.tensors
    ]
    found = {
        "format": _FORMAT,
        "writer": _WRITER,
        "release": RELEASE,
        "model": program.name,
        "target": target,
        "owner": program.owner,
        "inputs": [_parameter(one) for one in program.inputs],
        "outputs": [_parameter(one) for one in program.outputs],
        "arena_bytes": program.arena,
        "weights": {
            "bytes": program.weights.size,
            "sha256": program.weights.sha256,
            "tensors": tensors,
        },
        "kernels": [kernel.file for kernel in program.kernels],
        "calls": len(program.launches),
        "files": [*files, DESCRIPTION],
    }
    return json.dumps(found, indent=1) + "\n"


def foreign_file(folder: Path) -> str | None:
    """The name of a file in a folder that neither an export nor its Makefile has written; None if there is none.

    Where the folder is no export, that is the first one.
    """
    try:
        found = json.loads((folder / DESCRIPTION).read_text(encoding="utf-8"))
        known = set(found["files"]) if found["writer"] == _WRITER else set()
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        known = set()
    made = set(_PROGRAMS) if known else set()
    names = sorted(path.name for path in folder.iterdir())
    return next((n for n in names if n not in known | made and not (known and n.endswith(_MADE))), None)


def _parameter(one: Parameter) -> dict[str, object]:
    return {"c_name": one.c_name, "bytes": one.bytes, **_typed(one.value), "name": one.name}


def _typed(value: Value) -> dict[str, object]:
    return {"name": value.name, "type": value.type.value, "shape": list(value.shape)}
