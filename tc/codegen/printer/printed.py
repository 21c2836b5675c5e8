"""Printed lines, and what the rest of a source needs to know of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from tc.base.grid import GridKernel
from tc.codegen.printer.routines import braced
from tc.codegen.text.fragment import NO_NAMES


@dataclass(frozen=True, slots=True)
class Facts:
    """What printed lines need beside themselves.

    ``functions``: those that they call, each as lines of its own, inner ones first.  ``scratch_bytes``: the scratch
    memory of every thread; ``private_bytes``: what buffers take of a thread's stack.  ``partial_sums``: those in
    registers of a thread whose totals are in memory.  ``exchanges``: places where lanes exchange values.  ``grids``:
    the kernels among the functions, in the order in which they run.  ``names``: what the lines say, as far as it is
    asked: functions of values, accumulators, the variable of faults, scratch memory, a team of threads.
    """

    functions: tuple[Sequence[str], ...] = ()
    scratch_bytes: int = 0
    private_bytes: int = 0
    partial_sums: int = 0
    exchanges: int = 0
    grids: tuple[GridKernel, ...] = ()
    names: frozenset[str] = NO_NAMES

    def __or__(self, other: Facts) -> Facts:
        """Those of lines that stand behind these."""
        if other is NO_FACTS:
            return self
        if self is NO_FACTS:
            return other
        return Facts(
            (*self.functions, *other.functions),
            max(self.scratch_bytes, other.scratch_bytes),
            max(self.private_bytes, other.private_bytes),
            max(self.partial_sums, other.partial_sums),
            self.exchanges + other.exchanges,
            (*self.grids, *other.grids),
            self.names | other.names,
        )


NO_FACTS: Final = Facts()


def naming(names: frozenset[str]) -> Facts:
    """Facts of lines that say these names, and need nothing."""
    return Facts(names=names) if names else NO_FACTS


@dataclass(frozen=True, slots=True)
class Printed:
    """Lines with their facts."""

    lines: Sequence[str]
    facts: Facts = field(default=NO_FACTS)

    def between(self, before: Iterable[str], behind: Iterable[str] = ()) -> Printed:
        """With lines around them that need nothing."""
        return Printed([*before, *self.lines, *behind], self.facts)

    def braced(self, header: str) -> Printed:
        """As a block after a header, which may be empty."""
        return Printed(braced(header, self.lines), self.facts)

    def with_facts(self, facts: Facts) -> Printed:
        """The lines, which need more."""
        return Printed(self.lines, self.facts | facts)

    def __add__(self, other: Printed) -> Printed:
        return Printed([*self.lines, *other.lines], self.facts | other.facts)
