"""``KernelCount``: what a kernel asks for, as a prediction of its time needs it."""

from __future__ import annotations

import json
import math

from tc.base.frozen import frozen
from tc.base.json_records import from_json, to_json
from tc.prediction.demand import Demand


@frozen
class BlockKind:
    """So many blocks, each of which asks for the same."""

    count: int
    demand: Demand


@frozen
class KernelCount:
    """One kernel: blocks, outermost dimension first, threads of a block, and how often it is launched.

    ``kinds``: the most frequent one first.  ``read``, ``written``: bytes of the tensors in global memory that it reads
    without an index that data choose, and writes; ``chosen``: those of which data choose elements.  ``passed``: of
    ``read``, what kernels before it have written.  ``shared``: bytes of a block's shared memory.  ``kept``: elements
    that a thread has in arrays of its own, in words of 32 bits.  ``ahead``: operands are read from shared memory
    while threads compute with those before, or instructions with what they read by themselves.  ``fillers``: of the
    threads, those that only begin copies.
    """

    grid: tuple[int, ...]
    threads: int
    launches: int
    kinds: tuple[BlockKind, ...]
    read: int
    written: int
    chosen: int
    passed: int
    shared: int
    kept: int
    ahead: bool = False
    fillers: int = 0

    @property
    def blocks(self) -> int:
        """Of one launch."""
        return math.prod(self.grid)

    @property
    def demand(self) -> Demand:
        """Of all blocks of one launch."""
        found = Demand()
        for kind in self.kinds:
            found = found.plus(kind.demand, kind.count)
        return found


@frozen
class _Counts:
    kernels: tuple[KernelCount, ...]


def counts_text(kernels: tuple[KernelCount, ...]) -> str:
    """The counts of kernels as JSON, without what is 0; empty for none."""
    return json.dumps(_without_zeros(to_json(_Counts(kernels))), separators=(",", ":")) if kernels else ""


def counts_of(text: str) -> tuple[KernelCount, ...]:
    """The inverse of ``counts_text``; ValueError for what it did not make."""
    return from_json(_Counts, json.loads(text)).kernels if text else ()


def _without_zeros(data: object) -> object:
    """Fields of demands are 0 where nothing is said."""
    match data:
        case {"demand": dict() as demand, **others}:
            return {**others, "demand": {name: value for name, value in demand.items() if value}}
        case dict():
            return {name: _without_zeros(value) for name, value in data.items()}
        case list():
            return [_without_zeros(value) for value in data]
        case _:
            return data
