"""Prints the totals of a register tile: rows of them in memory, to which the vectors of the tile are added."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Final

from tc.base.types import ScalarType
from tc.codegen.printer.printed import Printed
from tc.codegen.printer.routines import braced
from tc.codegen.printer.tile import Tile, Vector
from tc.codegen.printer.totals import TotalNames, folds_in
from tc.codegen.text.dialect import Dialect
from tc.polyhedral.ir.loops import Fold, IndexLiteral, Loop, Total

_ELEMENT: Final = "element"


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
        aligned = "__attribute__((aligned(64)))"
        declared = [f"{wide if self._wide else narrow} {names.total}[{self._span}] {aligned};"]
        declared += names.counters(self._loop, self.total)
        begin = [] if self._runs > 1 else [line for place in self._places() for line in self._begun(*place)]
        end = [self._ended(*place) for place in self._places()]
        if self.total.cascaded:
            declared.append(f"{wide} {names.grand}[{self._span}] {aligned};")
            begin += self._each(self._span, f"{names.grand}[{_ELEMENT}] = 0.0;")
            # What is left goes the same way as all the rest.
            end = [*(line for place in self._places() for line in self._folded(*place)), *self._grand_folded()]
            end += [self._grand_ended(*place) for place in self._places()]
        return printed.between([*declared, *begin], end).braced("")

    def fold(self, fold: Fold, iterator: str) -> list[str]:
        """What adds the vectors to the totals, and begins them again; ``iterator``: of the loop, in the text."""
        kept = f"tc_in_memory({self._names.total});"
        lines = [line for place in self._places() for line in self._folded(*place)]
        if self._runs > 1:
            begun = [line for place in self._places() for line in self._begun(*place)]
            (first, _) = constant_bounds(self._loop) or (0, 0)
            begins = braced(f"if ({iterator} == {first})", begun)
            more = f"else if ({iterator} < {first + (self._runs - 1) * self._loop.step})"
            return [*begins, *(braced(more, lines) if self._runs > 2 else []), kept]
        if self.total.cascaded:
            lines += self._names.when_full(self._grand_folded())
        return [*self._names.now_and_then(fold, lines), kept]

    @property
    def _span(self) -> int:
        return len(self._rows) * sum(vector.width for vector in self._tile.vectors)

    def _places(self) -> Iterator[tuple[str, Vector, int]]:
        """Every vector of the tile: its variable, its form, and the first of its places."""
        place = itertools.accumulate((v.width for _ in self._rows for v in self._tile.vectors), initial=0)
        for row, vector in itertools.product(self._rows, self._tile.vectors):
            yield self._tile.variable(row, vector), vector, next(place)

    def _each(self, span: int, line: str) -> list[str]:
        index = self._dialect.index
        return braced(f"for ({index} {_ELEMENT} = 0; {_ELEMENT} < {span}; {_ELEMENT} += 1)", [line])

    def _begun(self, name: str, vector: Vector, place: int) -> list[str]:
        put = "tc_put_wide" if self._wide else "tc_store"
        total = f"&{self._names.total}[{place}]"
        return [f"{put}_float32x{vector.width}({total}, {name});", self._zero(name, vector)]

    def _folded(self, name: str, vector: Vector, place: int) -> list[str]:
        add = "tc_add_wide" if self._wide else "tc_add"
        total = f"&{self._names.total}[{place}]"
        return [f"{add}_float32x{vector.width}({total}, {name});", self._zero(name, vector)]

    def _zero(self, name: str, vector: Vector) -> str:
        return f"{name} = tc_splat_float32x{vector.width}(0.0f);"

    def _ended(self, name: str, vector: Vector, place: int) -> str:
        total = f"&{self._names.total}[{place}]"
        if self._wide:
            return f"{name} = tc_sum_wide_float32x{vector.width}({total}, {name});"
        return f"{name} = tc_load_float32x{vector.width}({total}) + {name};"

    def _grand_folded(self) -> list[str]:
        names = self._names
        index = self._dialect.index
        lines = [
            f"{names.grand}[{_ELEMENT}] += {names.total}[{_ELEMENT}];",
            f"{names.total}[{_ELEMENT}] = 0.0f;",
        ]
        return braced(f"for ({index} {_ELEMENT} = 0; {_ELEMENT} < {self._span}; {_ELEMENT} += 1)", lines)

    def _grand_ended(self, name: str, vector: Vector, place: int) -> str:
        return f"{name} = tc_sum_wide_float32x{vector.width}(&{self._names.grand}[{place}], {name});"


def _known_runs(loop: Loop, total: Total) -> int:
    """How many runs of a sum the loop has, if it has nothing else that is folded; else 0."""
    bounds, own = constant_bounds(loop), [Fold(total.statement)]
    if bounds is None or list(folds_in(loop, total.statement)) != own or list(loop.folds) != own:
        return 0
    return (bounds[1] - bounds[0]) // loop.step + 1


def constant_bounds(loop: Loop) -> tuple[int, int] | None:
    """The first and the last number of the iterator's range, where these are known."""
    match loop.lower, loop.upper:
        case IndexLiteral(lower), IndexLiteral(upper):
            return lower, upper
        case _:
            return None
