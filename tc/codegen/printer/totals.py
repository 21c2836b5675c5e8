"""Prints the totals that partial sums are added to (``tc.polyhedral.generate.block_sums``): of variables and of
buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.codegen.printer.printed import Facts, Printed, line, together
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, Precedence, element, filled, infix, named
from tc.polyhedral.analysis.accumulate import Accumulation, accumulator_name
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.execution.thread_registers import ThreadRegisters
from tc.polyhedral.generate.serial_chains import MOST
from tc.polyhedral.ir.loops import (
    Loop,
)
from tc.polyhedral.ir.totals import Fold, Total

_ELEMENT: Final = named("element")
LANE: Final = named("lane")
ZERO: Final = Fragment("0.0f")
# What a thread reads from its memory at once.
_VECTOR_BYTES: Final = 16


@frozen
class TotalNames:
    """The variables beside one variable or array that partial sums are kept in.

    ``total``: what these are added to.  ``grand``: the float64 that totals in float32 are added to.  ``runs``,
    ``count``: how many iterations, and how many partial sums, were not added yet.
    """

    partial: str

    @property
    def total(self) -> str:
        """What partial sums are added to."""
        return f"total_{self.partial.removeprefix('t_')}"

    @property
    def grand(self) -> str:
        """The float64 that totals in float32 are added to."""
        return f"grand_{self.total}"

    @property
    def runs(self) -> str:
        """Counts the iterations that were not added yet."""
        return f"runs_{self.total}"

    @property
    def count(self) -> str:
        """Counts the partial sums that were not added yet."""
        return f"count_{self.total}"

    def counters(self, loop: Loop, total: Total, dialect: Dialect) -> Printed:
        """The declarations of what is counted while the loop runs."""
        counted = [self.runs] if any(f.every > 1 for f in folds_in(loop, total.statement)) else []
        counted += [self.count] if total.cascaded else []
        type = dialect.values[ScalarType.INT32]
        return together(line("{} {} = 0;", type, named(name)).declaring(named(name)) for name in counted)

    def now_and_then(self, fold: Fold, printed: Printed) -> Printed:
        """The lines of a fold, behind as many iterations as it says."""
        return printed if fold.every == 1 else _at_last(self.runs, fold.every, printed)

    def when_full(self, printed: Printed) -> Printed:
        """The lines that add up totals in float32, behind as many as may follow each other."""
        return _at_last(self.count, MOST, printed)


def _at_last(counter: str, most: int, printed: Printed) -> Printed:
    """The lines, once so many were counted."""
    again = line("{} = 0;", named(counter))
    return (printed + again).braced(filled("if (++{} >= {})", named(counter), most))


def folds_in(loop: Loop, statement: str) -> Iterator[Fold]:
    """Of the statement, in the loop and all loops inside; each once."""
    inside = {id(step): step for _, path in loop_paths(loop, ()) for step in path if isinstance(step, Loop)}
    return (fold for inner in inside.values() for fold in inner.folds if fold.statement == statement)


def folds_of_variables(dialect: Dialect, loop: Loop, found: Accumulation | None) -> Printed:
    """What adds accumulators to their totals at the end of an iteration."""
    folds = Printed(())
    if found is None:
        return folds
    for fold in loop.folds:
        partial = next((p for p in found.partials if p.body.name == fold.statement), None)
        if partial is not None:
            names = TotalNames(accumulator_name(partial, found))
            folds += names.now_and_then(fold, fold_variable(dialect, found, names))
    return folds


def lanes_of_total(found: Accumulation, folded: bool) -> int | None:
    """The lanes of a total: of partial sums, four are added up before, and two where each is longer; None without."""
    if found.lanes is None:
        return None
    return next(found.lanes // ways for ways in ((4, 2, 1) if folded else (2, 1)) if found.lanes % ways == 0)


def is_all_folded(loop: Loop, total: Total) -> bool:
    """Whether nothing is left of the partial sums behind the loop."""
    return any(fold.statement == total.statement and fold.every == 1 for fold in loop.folds)


def fold_variable(dialect: Dialect, found: Accumulation, names: TotalNames) -> Printed:
    """An accumulator added to its total, and begun again; in every lane."""
    lanes = lanes_of_total(found, folded=True)
    kept = _partial_sums(found, names, lanes)
    added = line("{} += {};", _lane(found, names.total), _tree(kept))
    return _each_lane(dialect, lanes, together((added, *(line("{} = {};", one, ZERO) for one in kept))))


def total_of_variable(dialect: Dialect, found: Accumulation, names: TotalNames) -> Printed:
    """The total of an accumulator that was never folded."""
    lanes = lanes_of_total(found, folded=False)
    total = line("{} = {};", _lane(found, names.total), _tree(_partial_sums(found, names, lanes)))
    return _each_lane(dialect, lanes, total)


def _lane(found: Accumulation, name: str) -> Fragment:
    return named(name) if found.lanes is None else element(name, LANE)


def _partial_sums(found: Accumulation, names: TotalNames, lanes: int | None) -> list[Fragment]:
    """Those that have a total together."""
    if found.lanes is None or lanes is None:
        return [named(names.partial)]
    others = (infix("+", LANE, Fragment(str(first))) for first in range(lanes, found.lanes, lanes))
    return [element(names.partial, first) for first in (LANE, *others)]


def _tree(terms: list[Fragment]) -> Fragment:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    parts = (_tree(part) for part in (terms[:half], terms[half:]))
    left, right = (filled("({})", part) if part.precedence is Precedence.ADDITIVE else part for part in parts)
    return infix("+", left, right)


def _each_lane(dialect: Dialect, lanes: int | None, printed: Printed) -> Printed:
    return printed if lanes is None else in_lanes(dialect, lanes, printed)


def in_lanes(dialect: Dialect, lanes: int, printed: Printed) -> Printed:
    """The lines for every lane."""
    header = filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", dialect.index, LANE, lanes)
    return printed.braced(header).between([dialect.vector] if dialect.vector and lanes > 1 else [])


@frozen
class ArrayTotals:
    """Totals of all elements of an array, in the text of any dialect; ``scalar``: of one that is a variable."""

    dialect: Dialect
    total: Total
    names: TotalNames
    span: int
    scalar: bool
    registers: ThreadRegisters

    def around(self, loop: Loop, printed: Printed) -> Printed:
        """The loop between what begins the totals and what brings them back."""
        dialect, names, total = self.dialect, self.names, self.total
        wide, narrow = dialect.values[ScalarType.FLOAT64], dialect.values[ScalarType.FLOAT32]
        type = wide if total.wide and not total.cascaded else narrow
        declared = self._declared(type, names.total) + names.counters(loop, total, dialect)
        part, whole = self._element(names.partial), self._element(names.total)
        begin = self._each(line("{} = {};", whole, part) + line("{} = {};", part, ZERO))
        end = self._each(line("{} = {};", part, infix("+", whole, part)))
        if total.cascaded:
            grand = self._element(names.grand)
            declared += self._declared(wide, names.grand)
            begin += self._each_in_memory(line("{} = 0.0;", grand))
            end = self._seldom(line("{} = {};", whole, infix("+", grand, whole))) + end
        facts = Facts(sums=self.registers.kept(self.span))
        return (declared + begin + printed + end).braced().with_facts(facts)

    def fold(self, fold: Fold) -> Printed:
        """What adds the partial sums to the totals, and begins them again."""
        names = self.names
        part, whole = self._element(names.partial), self._element(names.total)
        added = self._each(line("{} += {};", whole, part) + line("{} = {};", part, ZERO))
        if self._in_memory:
            added += self._forced(names.total)
        if self.total.cascaded:
            grand = self._element(names.grand)
            grown = line("{} += {};", grand, whole) + line("{} = {};", whole, ZERO)
            added += names.when_full(self._seldom(grown))
        return names.now_and_then(fold, added)

    @property
    def _in_memory(self) -> bool:
        """Whether the totals leave registers to the partial sums."""
        return self.registers.totals_in_memory(self.span)

    def _forced(self, name: str) -> Printed:
        """What keeps an array in memory, where the compiler has to be told."""
        words = self.dialect.in_memory
        return Printed(()) if words is None or self.scalar else line(words, array=named(name))

    def _element(self, name: str) -> Fragment:
        return named(name) if self.scalar else element(name, _ELEMENT)

    def _declared(self, type: str, name: str) -> Printed:
        if self.scalar:
            return line("{} {};", type, named(name))
        return line("{} {}[{}] __attribute__((aligned({})));", type, named(name), self.span, _VECTOR_BYTES)

    def _each(self, printed: Printed) -> Printed:
        """For all elements; those of an array in registers are unrolled."""
        return self._loop(printed, self.span)

    def _each_in_memory(self, printed: Printed) -> Printed:
        """For all elements of arrays in memory, one after the other, which takes few registers."""
        return self._loop(printed, 1)

    def _seldom(self, printed: Printed) -> Printed:
        """For all elements of totals and of what these are added to, which is in memory in any case."""
        if self._in_memory:
            return self._each_in_memory(printed)
        return self._each(printed) + self._forced(self.names.grand)

    def _loop(self, printed: Printed, unrolled: int) -> Printed:
        if self.scalar:
            return printed
        dialect = self.dialect
        unroll = [dialect.unroll.format(count=unrolled)] if dialect.grids and dialect.unroll and self.span > 1 else []
        promised = [dialect.vector] if dialect.vector and self.span > 1 else unroll
        header = filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", dialect.index, _ELEMENT, self.span)
        return printed.braced(header).between(promised)
