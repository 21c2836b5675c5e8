"""Prints the totals of a register tile: rows of them in memory, to which the vectors of the tile are added."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from tc.codegen.routines import braced
from tc.codegen.totals import TotalNames
from tc.polyhedral.loops import Fold, Loop, Total
from tc.types import ScalarType

if TYPE_CHECKING:
    from tc.codegen.registers import RegisterPrinter
    from tc.codegen.vector_statement import Vector

_ELEMENT: Final = "element"


class VectorTotals:
    """Totals of all rows of a tile of float32; every vector has as many places as it has lanes."""

    def __init__(self, printer: RegisterPrinter, total: Total, vectors: tuple[Vector, ...], rows: int) -> None:
        self.total = total
        self._printer = printer
        self._names = TotalNames(printer.name)
        self._vectors = vectors
        self._rows = rows
        self._wide = total.wide and not total.cascaded

    def around(self, loop: Loop, lines: list[str]) -> list[str]:
        """The lines of the loop between what begins the totals and what brings them back."""
        names, values = self._names, self._printer.kernel.dialect.values
        wide, narrow = values[ScalarType.FLOAT64], values[ScalarType.FLOAT32]
        span = self._rows * sum(vector.width for vector in self._vectors)
        aligned = "__attribute__((aligned(64)))"
        declared = [f"{wide if self._wide else narrow} {names.total}[{span}] {aligned};"]
        declared += names.counters(loop, self.total)
        begin = [line for place in self._places() for line in self._begun(*place)]
        end = [self._ended(*place) for place in self._places()]
        if self.total.cascaded:
            declared.append(f"{wide} {names.grand}[{span}] {aligned};")
            begin += self._each(span, f"{names.grand}[{_ELEMENT}] = 0.0;")
            # What is left goes the same way as all the rest.
            end = [*(line for place in self._places() for line in self._folded(*place)), *self._grand_folded(span)]
            end += [self._grand_ended(*place) for place in self._places()]
        return braced("", [*declared, *begin, *lines, *end])

    def fold(self, fold: Fold) -> list[str]:
        """What adds the vectors to the totals, and begins them again."""
        lines = [line for place in self._places() for line in self._folded(*place)]
        if self.total.cascaded:
            span = self._rows * sum(vector.width for vector in self._vectors)
            lines += self._names.when_full(self._grand_folded(span))
        return self._names.now_and_then(fold, lines)

    def _places(self) -> Iterator[tuple[str, Vector, int]]:
        """Every vector of the tile: its variable, its form, and the first of its places."""
        place = itertools.accumulate((v.width for _ in range(self._rows) for v in self._vectors), initial=0)
        for row, vector in itertools.product(range(self._rows), self._vectors):
            yield self._printer.variable(row, vector), vector, next(place)

    def _each(self, span: int, line: str) -> list[str]:
        index = self._printer.kernel.dialect.index
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

    def _grand_folded(self, span: int) -> list[str]:
        names = self._names
        index = self._printer.kernel.dialect.index
        lines = [
            f"{names.grand}[{_ELEMENT}] += {names.total}[{_ELEMENT}];",
            f"{names.total}[{_ELEMENT}] = 0.0f;",
        ]
        return braced(f"for ({index} {_ELEMENT} = 0; {_ELEMENT} < {span}; {_ELEMENT} += 1)", lines)

    def _grand_ended(self, name: str, vector: Vector, place: int) -> str:
        return f"{name} = tc_sum_wide_float32x{vector.width}(&{self._names.grand}[{place}], {name});"
