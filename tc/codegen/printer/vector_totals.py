"""Prints the totals of a register tile: rows of them in memory, to which the vectors of the tile are added."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Final

from tc.base.types import ScalarType
from tc.codegen.printer.printed import Printed, line, together
from tc.codegen.printer.tile import Tile, Vector
from tc.codegen.printer.totals import ZERO, TotalNames, folds_in
from tc.codegen.text.dialect import Dialect
from tc.codegen.text.fragment import Fragment, call, element, filled, infix, named, prefix
from tc.polyhedral.ir.loops import (
    IndexLiteral,
    Loop,
)
from tc.polyhedral.ir.totals import Fold, Total

_ELEMENT: Final = named("element")


class VectorTotals:
    """Totals of all rows of a tile of float32; every vector has as many places as it has lanes.

    ``loop``: while it runs.  Where it is known to have several runs, and nothing inside of it is folded, then the first
    run goes on from what the tile holds, and begins the totals; and the last one stays in the tile.
    """

    def __init__(self, tile: Tile, dialect: Dialect, loop: Loop, total: Total) -> None:
        self.total: Final = total
        self._tile = tile
        self._dialect = dialect
        self._loop = loop
        self._names = TotalNames(tile.name)
        self._rows = tile.rows_in_use()
        self._wide = total.wide and not total.cascaded
        self._runs = 0 if total.cascaded else _known_runs(loop, total)

    def around(self, printed: Printed) -> Printed:
        """The loop between what begins the totals and what brings them back."""
        names, values = self._names, self._dialect.values
        wide, narrow = values[ScalarType.FLOAT64], values[ScalarType.FLOAT32]
        declared = self._declared(wide if self._wide else narrow, names.total)
        declared += names.counters(self._loop, self.total, self._dialect)
        begin = Printed(()) if self._runs > 1 else self._each_place(self._begun)
        end = self._each_place(self._ended)
        if self.total.cascaded:
            declared += self._declared(wide, names.grand)
            begin += self._each_element(line("{} = 0.0;", element(names.grand, _ELEMENT)))
            # What is left goes the same way as all the rest.
            end = self._each_place(self._folded) + self._grand_folded() + self._each_place(self._grand_ended)
        return (declared + begin + printed + end).braced()

    def fold(self, fold: Fold, iterator: Fragment) -> Printed:
        """What adds the vectors to the totals, and begins them again; ``iterator``: of the loop, in the text."""
        kept = line("{};", call("tc_in_memory", named(self._names.total)))
        folded = self._each_place(self._folded)
        if self._runs > 1:
            (first, _) = constant_bounds(self._loop) or (0, 0)
            begins = self._each_place(self._begun).braced(filled("if ({} == {})", iterator, first))
            last = first + (self._runs - 1) * self._loop.step
            more = folded.braced(filled("else if ({} < {})", iterator, last)) if self._runs > 2 else Printed(())
            return begins + more + kept
        if self.total.cascaded:
            folded += self._names.when_full(self._grand_folded())
        return self._names.now_and_then(fold, folded) + kept

    @property
    def _span(self) -> int:
        return len(self._rows) * sum(vector.width for vector in self._tile.vectors)

    def _declared(self, type: str, name: str) -> Printed:
        return line("{} {}[{}] __attribute__((aligned(64)));", type, named(name), self._span)

    def _each_place(self, printing: Callable[[Fragment, Vector, int], Printed]) -> Printed:
        """For every vector of the tile: its variable, its form, and the first of its places."""
        place = itertools.accumulate((v.width for _ in self._rows for v in self._tile.vectors), initial=0)
        return together(
            printing(self._tile.variable(row, vector), vector, next(place))
            for row, vector in itertools.product(self._rows, self._tile.vectors)
        )

    def _each_element(self, lines: Printed) -> Printed:
        index, span = self._dialect.index, self._span
        return lines.braced(filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", index, _ELEMENT, span))

    def _begun(self, row: Fragment, vector: Vector, place: int) -> Printed:
        put = "tc_put_wide" if self._wide else "tc_store"
        return line("{};", self._of_total(put, row, vector, place)) + self._zero(row, vector)

    def _folded(self, row: Fragment, vector: Vector, place: int) -> Printed:
        add = "tc_add_wide" if self._wide else "tc_add"
        return line("{};", self._of_total(add, row, vector, place)) + self._zero(row, vector)

    def _of_total(self, function: str, row: Fragment, vector: Vector, place: int) -> Fragment:
        return call(f"{function}_float32x{vector.width}", _address(self._names.total, place), row)

    def _zero(self, row: Fragment, vector: Vector) -> Printed:
        return line("{} = {};", row, self._tile.splat(ZERO, vector, self._tile.type))

    def _ended(self, row: Fragment, vector: Vector, place: int) -> Printed:
        if self._wide:
            return line("{} = {};", row, self._of_total("tc_sum_wide", row, vector, place))
        total = call(f"tc_load_float32x{vector.width}", _address(self._names.total, place))
        return line("{} = {};", row, infix("+", total, row))

    def _grand_folded(self) -> Printed:
        grand, total = (element(name, _ELEMENT) for name in (self._names.grand, self._names.total))
        return self._each_element(line("{} += {};", grand, total) + line("{} = {};", total, ZERO))

    def _grand_ended(self, row: Fragment, vector: Vector, place: int) -> Printed:
        summed = call(f"tc_sum_wide_float32x{vector.width}", _address(self._names.grand, place), row)
        return line("{} = {};", row, summed)


def _address(array: str, place: int) -> Fragment:
    return prefix("&", element(array, Fragment(str(place))))


def _known_runs(loop: Loop, total: Total) -> int:
    """How many runs of a sum the loop has, if it has nothing else that is folded; else 0."""
    bounds, own = constant_bounds(loop), [Fold(total.statement)]
    if bounds is None or list(folds_in(loop, total.statement)) != own or list(loop.folds) != own:
        return 0
    return (bounds[1] - bounds[0]) // loop.step + 1


def constant_bounds(loop: Loop) -> tuple[int, int] | None:
    """The first and the last number of the iterator's range, where these are known."""
    if loop.ranges:
        return None
    match loop.lower, loop.upper:
        case IndexLiteral(lower), IndexLiteral(upper):
            return lower, upper
        case _:
            return None
