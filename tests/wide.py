"""Definitions on neighbouring elements, for tests of wide accesses."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

# Enough blocks of the emulator's machine for runs of four.
N = 1 << 20
ADD = "def add({0}(N) a, {0}(N) b) -> (c) {{ c(i) = a(i) + b(i) }}"
TEXTS = {
    "add": ADD.format("float"),
    "halves": ADD.format("half"),
    "bytes": ADD.format("int8"),
    "doubles": ADD.format("double"),
    "truths": "def less(float(N) a, float(N) b) -> (c) { c(i) = a(i) < b(i) }",
    "widening": "def widen(half(N) a, half(N) b) -> (c) { c(i) = float(a(i)) * float(b(i)) }",
    "two": "def two(float(N) a, float(N) b) -> (c, d) { c(i) = a(i) + b(i)  d(i) = c(i) * a(i) }",
    "again": "def again(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i)  c(i) = c(i) * a(i) }",
    "choice": "def choice(float(N) a, float(N) b) -> (c) { c(i) = a(i) > 0.0 ? a(i) : b(i) }",
}
ROWS = "def rows(float(M,K) a, float(K) b, float(M) d) -> (c) { c(i,j) = a(i,j) * d(i) + b(j) }"


def arrays(text: str, shapes: tuple[tuple[int, ...], ...], shift: int = 0) -> list[np.ndarray[Any, Any]]:
    """Random arrays that begin ``shift`` elements behind a multiple of 16 bytes."""
    random = np.random.default_rng(shift)
    found: list[np.ndarray[Any, Any]] = []
    for type, shape in zip(
        re.findall(r"(\w+)\([\w,]+\) \w", text.partition("->")[0].partition("(")[2]), shapes, strict=True
    ):
        own = np.dtype({"float": "f4", "half": "f2", "double": "f8"}.get(type, type))
        memory = random.integers(-60, 60, int(np.prod(shape)) + shift + 16).astype(own)
        begin = -(memory.ctypes.data // own.itemsize) % (16 // own.itemsize) + shift
        found.append(memory[begin : begin + int(np.prod(shape))].reshape(shape))
    return found
