"""Reads and the conditions under which they are evaluated."""

from __future__ import annotations

from collections.abc import Iterator

from tc.base.frozen import frozen
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Expression, Read, Select, children


@frozen
class GuardedRead:
    """A read, and the conditions (with the value they must have) under which it is evaluated."""

    read: Read
    guards: tuple[tuple[Expression, bool], ...]


def guarded_reads(expression: Expression) -> Iterator[GuardedRead]:
    """Every read below ``expression``, reads inside subscripts included, with its guards, outermost first."""
    yield from _guarded(expression, ())


def _guarded(expression: Expression, guards: tuple[tuple[Expression, bool], ...]) -> Iterator[GuardedRead]:
    match expression:
        case Select(condition, then, otherwise):
            yield from _guarded(condition, guards)
            yield from _guarded(then, (*guards, (condition, True)))
            yield from _guarded(otherwise, (*guards, (condition, False)))
        case Binary(BinaryOperator.AND, left, right):
            yield from _guarded(left, guards)
            yield from _guarded(right, (*guards, (left, True)))
        case Binary(BinaryOperator.OR, left, right):
            yield from _guarded(left, guards)
            yield from _guarded(right, (*guards, (left, False)))
        case _:
            if isinstance(expression, Read):
                yield GuardedRead(expression, guards)
            for child in children(expression):
                yield from _guarded(child, guards)
