"""Exported models: built by their Makefiles, and run by programs without Python."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

import tc.graph
from tc.base.types import ScalarType
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.waiting import PATIENCE

STRICT: Final = ("-std=c11", "-pedantic", "-Wall", "-Wextra", "-Werror")


def shell(folder: Path, *arguments: str | Path, status: int = 0) -> str:
    """What a command prints, which must end with this status."""
    done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == status, done.stdout + done.stderr
    return done.stdout + done.stderr


def described(folder: Path) -> dict[str, Any]:
    """What ``export.json`` says."""
    found: dict[str, Any] = json.loads((folder / "export.json").read_text())
    return found


def built(folder: Path, *targets: str) -> Path:
    """The folder with what make has made, and whose sources were checked."""
    sources = ("model.c", "kernels.c", "main.c", "call_plain.c", "call_threads.c")
    shell(folder, "cc", *STRICT, "-fsyntax-only", *sources)
    shell(folder, "make", "-j2", *(targets or ("all", "main")))
    return folder


def results(folder: Path, arrays: Sequence[np.ndarray], *arguments: str) -> list[np.ndarray]:
    """What the program of ``main.c`` computes."""
    found = described(folder)
    names = [f"{one['c_name']}.bin" for one in (*found["inputs"], *found["outputs"])]
    for name, array in zip(names, arrays, strict=False):
        (folder / name).write_bytes(np.ascontiguousarray(array).tobytes())
    shell(folder, "./main", "weights.bin", *arguments, *names)
    return [_read(folder, one) for one in found["outputs"]]


def _read(folder: Path, one: dict[str, Any]) -> np.ndarray:
    data = (folder / f"{one['c_name']}.bin").read_bytes()
    assert len(data) == one["bytes"]
    return np.frombuffer(data, numpy_dtype(ScalarType(one["type"]))).reshape(one["shape"])


def same_bits(found: Sequence[np.ndarray], wanted: object) -> None:
    """The same types, shapes and bits as a call of the model."""
    expected = wanted if isinstance(wanted, tuple) else (wanted,)
    for one, other in zip(found, expected, strict=True):
        assert isinstance(other, np.ndarray)
        assert (one.dtype, one.shape) == (other.dtype, other.shape)
        assert one.tobytes() == other.tobytes()


def check(model: tc.graph.Model, folder: Path, *arrays: np.ndarray, threads: int = 2) -> Path:
    """The exported model gives the bits that the model gives."""
    model.export(folder, *(array.shape for array in arrays))
    same_bits(results(built(folder), arrays, str(threads)), model(*arrays))
    return folder
