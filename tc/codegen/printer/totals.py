"""Prints the totals that partial sums are added to (``tc.polyhedral.generate.block_sums``): of variables and of
buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tc.base.types import ScalarType
from tc.codegen.printer.printed import NO_FACTS, Facts, Printed
from tc.codegen.printer.routines import braced
from tc.codegen.text.dialect import Dialect
from tc.polyhedral.analysis.accumulate import Accumulation, accumulator_name
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.generate.serial_chains import MOST
from tc.polyhedral.ir.loops import Fold, Loop, Total

_ELEMENT: Final = "element"
ZERO: Final = "0.0f"
# Totals that stay in registers, beside as many partial sums.
_MOST_IN_REGISTERS: Final = 16
# What a thread reads from its memory at once.
_VECTOR_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
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

    def counters(self, loop: Loop, total: Total) -> list[str]:
        """The declarations of what is counted while the loop runs."""
        counted = [self.runs] if any(f.every > 1 for f in folds_in(loop, total.statement)) else []
        return [f"int32_t {name} = 0;" for name in (*counted, *([self.count] if total.cascaded else []))]

    def now_and_then(self, fold: Fold, lines: list[str]) -> list[str]:
        """The lines of a fold, behind as many iterations as it says."""
        if fold.every == 1:
            return lines
        return braced(f"if (++{self.runs} >= {fold.every})", [*lines, f"{self.runs} = 0;"])

    def when_full(self, lines: list[str]) -> list[str]:
        """The lines that add up totals in float32, behind as many as may follow each other."""
        return braced(f"if (++{self.count} >= {MOST})", [*lines, f"{self.count} = 0;"])


def folds_in(loop: Loop, statement: str) -> Iterator[Fold]:
    """Of the statement, in the loop and all loops inside; each once."""
    inside = {id(step): step for _, path in loop_paths(loop, ()) for step in path if isinstance(step, Loop)}
    return (fold for inner in inside.values() for fold in inner.folds if fold.statement == statement)


def folds_of_variables(dialect: Dialect, loop: Loop, found: Accumulation | None) -> list[str]:
    """What adds accumulators to their totals at the end of an iteration."""
    if found is None:
        return []
    lines: list[str] = []
    for fold in loop.folds:
        partial = next((p for p in found.partials if p.body.name == fold.statement), None)
        if partial is not None:
            names = TotalNames(accumulator_name(partial, found))
            lines += names.now_and_then(fold, fold_variable(dialect, found, names))
    return lines


def lanes_of_total(found: Accumulation, folded: bool) -> int | None:
    """The lanes of a total: of partial sums, four are added up before, and two where each is longer; None without."""
    if found.lanes is None:
        return None
    return next(found.lanes // ways for ways in ((4, 2, 1) if folded else (2, 1)) if found.lanes % ways == 0)


def is_all_folded(loop: Loop, total: Total) -> bool:
    """Whether nothing is left of the partial sums behind the loop."""
    return any(fold.statement == total.statement and fold.every == 1 for fold in loop.folds)


def fold_variable(dialect: Dialect, found: Accumulation, names: TotalNames) -> list[str]:
    """An accumulator added to its total, and begun again; in every lane."""
    lanes = lanes_of_total(found, folded=True)
    kept = _partial_sums(found, names, lanes)
    lines = [f"{_lane(found, names.total)} += {_tree(kept)};", *(f"{one} = {ZERO};" for one in kept)]
    return _each_lane(dialect, lanes, lines)


def total_of_variable(dialect: Dialect, found: Accumulation, names: TotalNames) -> list[str]:
    """The total of an accumulator that was never folded."""
    lanes = lanes_of_total(found, folded=False)
    lines = [f"{_lane(found, names.total)} = {_tree(_partial_sums(found, names, lanes))};"]
    return _each_lane(dialect, lanes, lines)


def _lane(found: Accumulation, name: str) -> str:
    return name if found.lanes is None else f"{name}[lane]"


def _partial_sums(found: Accumulation, names: TotalNames, lanes: int | None) -> list[str]:
    """Those that have a total together."""
    if found.lanes is None or lanes is None:
        return [names.partial]
    firsts = ["lane", *(f"lane + {first}" for first in range(lanes, found.lanes, lanes))]
    return [f"{names.partial}[{first}]" for first in firsts]


def _tree(terms: list[str]) -> str:
    if len(terms) == 1:
        return terms[0]
    half = len(terms) // 2
    left, right = (_tree(part) if len(part) == 1 else f"({_tree(part)})" for part in (terms[:half], terms[half:]))
    return f"{left} + {right}"


def _each_lane(dialect: Dialect, lanes: int | None, lines: list[str]) -> list[str]:
    if lanes is None:
        return lines
    vector = dialect.vector
    header = f"for ({dialect.index} lane = 0; lane < {lanes}; lane += 1)"
    return [*([vector] if vector and lanes > 1 else []), *braced(header, lines)]


@dataclass(frozen=True, slots=True)
class ArrayTotals:
    """Totals of all elements of an array, in the text of any dialect."""

    dialect: Dialect
    total: Total
    names: TotalNames
    span: int

    def around(self, loop: Loop, printed: Printed) -> Printed:
        """The loop between what begins the totals and what brings them back."""
        dialect, names, total = self.dialect, self.names, self.total
        wide, narrow = dialect.values[ScalarType.FLOAT64], dialect.values[ScalarType.FLOAT32]
        type = wide if total.wide and not total.cascaded else narrow
        declared = [self._declared(type, names.total), *names.counters(loop, total)]
        part, whole = f"{names.partial}[{_ELEMENT}]", f"{names.total}[{_ELEMENT}]"
        begin = self._each([f"{whole} = {part};", f"{part} = {ZERO};"])
        end = self._each([f"{part} = {whole} + {part};"])
        if total.cascaded:
            grand = f"{names.grand}[{_ELEMENT}]"
            declared.append(self._declared(wide, names.grand))
            begin += self._each_in_memory([f"{grand} = 0.0;"])
            end = [*self._each_in_memory([f"{whole} = {grand} + {whole};"]), *end]
        beside = Facts(partial_sums=self.span) if self._in_memory else NO_FACTS
        return printed.with_facts(beside).between([*declared, *begin], end).braced("")

    def fold(self, fold: Fold) -> list[str]:
        """What adds the partial sums to the totals, and begins them again."""
        names, in_memory = self.names, self.dialect.in_memory
        part, whole = f"{names.partial}[{_ELEMENT}]", f"{names.total}[{_ELEMENT}]"
        lines = self._each([f"{whole} += {part};", f"{part} = {ZERO};"])
        if self._in_memory and in_memory is not None:
            lines.append(in_memory.format(array=names.total))
        if self.total.cascaded:
            grand = f"{names.grand}[{_ELEMENT}]"
            lines += names.when_full(self._each_in_memory([f"{grand} += {whole};", f"{whole} = {ZERO};"]))
        return names.now_and_then(fold, lines)

    @property
    def _in_memory(self) -> bool:
        """Whether the totals leave registers to the partial sums."""
        return self.total.cascaded or self.span > _MOST_IN_REGISTERS

    def _declared(self, type: str, name: str) -> str:
        return f"{type} {name}[{self.span}] __attribute__((aligned({_VECTOR_BYTES})));"

    def _each(self, lines: list[str]) -> list[str]:
        """For all elements; those of an array in registers are unrolled."""
        return self._loop(lines, self.span)

    def _each_in_memory(self, lines: list[str]) -> list[str]:
        """For all elements of arrays in memory, one after the other, which takes few registers."""
        return self._loop(lines, 1)

    def _loop(self, lines: list[str], unrolled: int) -> list[str]:
        dialect = self.dialect
        unroll = [dialect.unroll.format(count=unrolled)] if dialect.grids and dialect.unroll and self.span > 1 else []
        promised = [dialect.vector] if dialect.vector and self.span > 1 else unroll
        header = f"for ({dialect.index} {_ELEMENT} = 0; {_ELEMENT} < {self.span}; {_ELEMENT} += 1)"
        return [*promised, *braced(header, lines)]
