"""Where in the loops of a kernel something stands: the values of iterators for each thread, and which ones run."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import field, replace

import numpy as np

from tc.base.frozen import frozen
from tc.polyhedral.gpu.cost.banks import by_warp
from tc.polyhedral.gpu.cost.lane_values import Array, Values


@frozen
class Around:
    """A loop around, whose iterations follow each other: by how much its iterator grows, and how often it runs."""

    iterator: str
    step: int
    trips: int


@frozen
class Scope:
    """``active``: which threads run, with axes as of values.  ``axes``: unrolled loops around, innermost first, with
    their lengths.  ``loops``: other ones, outermost first.  ``blocks``, ``threads``: how many loops over these are
    around.  ``pieces``: a loop around copies neighbouring elements at once; ``stored``: it stores what it computes so.
    ``within``: by iterator, the loops that its value depends on.  ``totals``: statements that arrays around keep totals
    of.
    """

    values: Values
    active: Array
    axes: tuple[tuple[str, int], ...] = ()
    loops: tuple[Around, ...] = ()
    blocks: int = 0
    threads: int = 0
    pieces: bool = False
    totals: frozenset[str] = frozenset()
    stored: bool = False
    within: Mapping[str, frozenset[str]] = field(default_factory=dict)
    known: dict[object, tuple[float, float]] = field(default_factory=dict, compare=False, repr=False)

    def where(self, condition: Array) -> Scope:
        """Of the threads for which a condition holds."""
        return replace(self, active=np.logical_and(self.active, condition))

    def begun(self, iterator: str, bounds: set[str]) -> Scope:
        """Inside of a loop whose iterator depends on what its bounds mention."""
        return replace(self, within={**self.within, iterator: self.depending(bounds) | {iterator}})

    def depending(self, names: Iterable[str]) -> frozenset[str]:
        """The loops that some iterators depend on."""
        return frozenset().union(*(self.within.get(name, frozenset({name})) for name in names))

    def unrolled(self, iterator: str, value: Array, length: int) -> Scope:
        """Inside of an unrolled loop, whose copies are the first axis of ``value``."""
        return replace(self, values={**self.values, iterator: value}, axes=((iterator, length), *self.axes))

    def repeated(self, around: Around, value: Array) -> Scope:
        """Inside of a loop, in one of its iterations."""
        return replace(self, values={**self.values, around.iterator: value}, loops=(*self.loops, around))

    def numbers(self, length: int) -> Array:
        """The numbers of the copies of another unrolled loop, as the axis that it has."""
        return np.arange(length).reshape(length, *(1 for _ in range(len(self.axes) + 1)))

    @property
    def runs(self) -> bool:
        """Whether any thread does."""
        return bool(self.active.any())

    @property
    def warps(self) -> int:
        """Those in which a thread runs, in any copy."""
        every: Array = np.asarray(self.active.any(axis=tuple(range(self.active.ndim - 1))))
        return int(by_warp(every).any(axis=-1).sum())

    @property
    def instances(self) -> float:
        """How often warps run what stands here, all copies together."""
        running = float(by_warp(self.active).any(axis=-1).sum())
        lengths = [length for _, length in self.axes]
        seen = (1,) * (len(lengths) + 1 - self.active.ndim) + self.active.shape[:-1]
        return running * math.prod(own for own, there in zip(lengths, seen, strict=True) if there == 1)

    def copies(self, names: Mapping[str, object] | frozenset[str] | set[str]) -> int:
        """How many copies of unrolled loops differ in one of these iterators."""
        return math.prod(length for name, length in self.axes if name in names)

    @property
    def first(self) -> Values:
        """The values of the first thread in the first copy."""
        return {name: np.asarray(value).reshape(-1)[:1] for name, value in self.values.items()}
