"""Blocks of the text, ``for t in 0:T { ... }``: which statements stand in which, and the ranges of their iterators."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from itertools import count
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.grammar import syntax
from tc.language.check.check import ExpressionChecker
from tc.language.check.scope import Scope
from tc.language.draft.draft import Bounds
from tc.language.draft.rules import check_where
from tc.language.program.program import iterators_in
from tc.language.program.report import Report

Simple: TypeAlias = syntax.Assign | syntax.CallStatement


@frozen
class Around:
    """A block around a statement; ``number``: which one of the definition, in the order in which they begin."""

    number: int
    block: syntax.Block = field(compare=False)


@frozen
class Placed:
    """A statement, and the blocks around it, outermost first."""

    statement: Simple
    around: tuple[Around, ...]

    @property
    def numbers(self) -> tuple[int, ...]:
        """Of the blocks."""
        return tuple(around.number for around in self.around)

    @property
    def bounds(self) -> Iterator[syntax.Expression]:
        """The ends of the ranges of all blocks."""
        for around in self.around:
            yield from (around.block.begin, around.block.end)


def placed_statements(definition: syntax.Definition) -> tuple[Placed, ...]:
    """All statements that are no blocks, in the order of the text, once reductions with an index are expanded."""
    numbers = count()

    def within(statements: Iterable[syntax.Statement], around: tuple[Around, ...]) -> Iterator[Placed]:
        for statement in statements:
            if isinstance(statement, syntax.Block):
                yield from within(statement.statements, (*around, Around(next(numbers), statement)))
            else:
                assert not isinstance(statement, syntax.ArgReduction), statement
                yield Placed(statement, around)

    return tuple(within(definition.statements, ()))


def check_steps(placed: Placed, scope: Scope, checker: ExpressionChecker, report: Report) -> dict[str, Bounds]:
    """The ranges of the blocks' iterators, outermost first; complaints are those of every statement in the block."""
    found: dict[str, Bounds] = {}
    for around in placed.around:
        block = around.block
        name, span = block.iterator, block.begin.span.to(block.end.span)
        begin, end = checker.index(block.begin), checker.index(block.end)
        if name in found:
            report.error(f"`{name}` counts the steps of a block around this one", block.iterator_span, "rename it")
        elif scope.is_declared(name):
            report.error(f"`{name}` has a meaning already", block.iterator_span, "choose another name")
        elif check_where((begin, end), span, report):
            for unknown in sorted(iterators_in((begin, end)) - found.keys()):
                report.error(
                    f"unknown name `{unknown}`: the range of a block depends on sizes, integer scalars, and the "
                    "iterators of blocks around it",
                    checker.iterators.get(unknown),
                    scope.suggested_value(unknown, is_index=True),
                )
        found[name] = Bounds(begin, end, span)
    return found
