"""Prints the totals that partial sums are added to (``tc.polyhedral.block_sums``): of variables and of buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tc.codegen.routines import braced
from tc.polyhedral.accumulate import Accumulation, accumulator_name
from tc.polyhedral.block_sums import MOST
from tc.polyhedral.loop_execution import loop_paths
from tc.polyhedral.loops import Fold, Loop, Total
from tc.types import ScalarType

if TYPE_CHECKING:
    from tc.codegen.kernel import KernelPrinter, Scope

_ELEMENT: Final = "element"
ZERO: Final = "0.0f"


@dataclass(frozen=True, slots=True)
class TotalNames:
    """The variables beside one variable or array that partial sums are kept in.

    ``total``: what these are added to.  ``grand``: the float64 that totals in float32 are added to.  ``runs``,
    ``count``: how many iterations, and how many partial sums, were not added yet.
    """

    partial: str

    @property
    def total(self) -> str:
        return f"total_{self.partial.removeprefix('t_')}"

    @property
    def grand(self) -> str:
        return f"grand_{self.total}"

    @property
    def runs(self) -> str:
        return f"runs_{self.total}"

    @property
    def count(self) -> str:
        return f"count_{self.total}"

    def counters(self, loop: Loop, total: Total) -> list[str]:
        """The declarations of what is counted while the loop runs."""
        counted = [self.runs] if any(f.every > 1 for f in _folds_in(loop, total.statement)) else []
        return [f"int32_t {name} = 0;" for name in (*counted, *([self.count] if total.cascaded else []))]

    def now_and_then(self, fold: Fold, lines: list[str]) -> list[str]:
        """The lines of a fold, behind as many iterations as it says."""
        if fold.every == 1:
            return lines
        return braced(f"if (++{self.runs} >= {fold.every})", [*lines, f"{self.runs} = 0;"])

    def when_full(self, lines: list[str]) -> list[str]:
        """The lines that add up totals in float32, behind as many as may follow each other."""
        return braced(f"if (++{self.count} >= {MOST})", [*lines, f"{self.count} = 0;"])


def _folds_in(loop: Loop, statement: str) -> Iterator[Fold]:
    """Of the statement, in the loop and all loops inside."""
    inside = (step for _, path in loop_paths(loop, ()) for step in path if isinstance(step, Loop))
    return (fold for inner in inside for fold in inner.folds if fold.statement == statement)


def folds_of_variables(kernel: KernelPrinter, loop: Loop, scope: Scope) -> list[str]:
    """What adds accumulators to their totals at the end of an iteration."""
    found = scope.accumulation
    if found is None:
        return []
    lines: list[str] = []
    for fold in loop.folds:
        partial = next((p for p in found.partials if p.body.name == fold.statement), None)
        if partial is not None:
            names = TotalNames(accumulator_name(partial, found))
            lines += names.now_and_then(fold, fold_variable(kernel, found, names))
    return lines


def fold_variable(kernel: KernelPrinter, found: Accumulation, names: TotalNames) -> list[str]:
    """An accumulator added to its total, and begun again; in every lane."""
    lane = "" if found.lanes is None else "[lane]"
    lines = [f"{names.total}{lane} += {names.partial}{lane};", f"{names.partial}{lane} = {ZERO};"]
    if found.lanes is None:
        return lines
    vector = kernel.dialect.vector
    header = f"for ({kernel.dialect.index} lane = 0; lane < {found.lanes}; lane += 1)"
    return [*([vector] if vector else []), *braced(header, lines)]


@dataclass(frozen=True, slots=True)
class ArrayTotals:
    """Totals of all elements of an array, in the text of any dialect."""

    kernel: KernelPrinter
    total: Total
    names: TotalNames
    span: int

    def around(self, loop: Loop, lines: list[str]) -> list[str]:
        """The lines of the loop between what begins the totals and what brings them back."""
        dialect, names, total = self.kernel.dialect, self.names, self.total
        wide = dialect.values[ScalarType.FLOAT64]
        type = wide if total.wide and not total.cascaded else dialect.values[ScalarType.FLOAT32]
        declared = [f"{dialect.aside}{type} {names.total}[{self.span}];", *names.counters(loop, total)]
        part, whole = f"{names.partial}[{_ELEMENT}]", f"{names.total}[{_ELEMENT}]"
        begin = [f"{whole} = {part};", f"{part} = {ZERO};"]
        end = [f"{part} = {whole} + {part};"]
        if total.cascaded:
            grand = f"{names.grand}[{_ELEMENT}]"
            declared.append(f"{dialect.aside}{wide} {names.grand}[{self.span}];")
            begin.append(f"{grand} = 0.0;")
            end = [f"{part} = {grand} + {whole} + {part};"]
        return braced("", [*declared, *self._each(begin), *lines, *self._each(end)])

    def fold(self, fold: Fold) -> list[str]:
        """What adds the partial sums to the totals, and begins them again."""
        names = self.names
        part, whole = f"{names.partial}[{_ELEMENT}]", f"{names.total}[{_ELEMENT}]"
        lines = self._each([f"{whole} += {part};", f"{part} = {ZERO};"])
        if self.total.cascaded:
            lines += names.when_full(self._each([f"{names.grand}[{_ELEMENT}] += {whole};", f"{whole} = {ZERO};"]))
        return names.now_and_then(fold, lines)

    def _each(self, lines: list[str]) -> list[str]:
        dialect = self.kernel.dialect
        unroll = [dialect.unroll.format(count=self.span)] if dialect.grids and dialect.unroll and self.span > 1 else []
        promised = [dialect.vector] if dialect.vector and self.span > 1 else unroll
        header = f"for ({dialect.index} {_ELEMENT} = 0; {_ELEMENT} < {self.span}; {_ELEMENT} += 1)"
        return [*promised, *braced(header, lines)]
