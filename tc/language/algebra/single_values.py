"""Iterators that have one value, which may stand in their place."""

from __future__ import annotations

from collections.abc import Mapping

from tc.language.algebra.fold import fold
from tc.language.program.program import Expression, IteratorReference, Literal, Statement, children, rebuild


def single_values(statement: Statement) -> dict[str, Literal]:
    """The value of each iterator that has only one, whatever the others have."""
    found = dict[str, Literal]()
    for own in statement.iterators:
        match own.begin, own.end:
            case Literal(begin) as value, Literal(end) if int(end) == int(begin) + 1:
                found[own.name] = value
            case _:
                pass
    return found


def settled(expression: Expression, values: Mapping[str, Expression]) -> Expression:
    """The expression with iterators replaced by their values; only what holds one is folded."""
    if isinstance(expression, IteratorReference):
        return values.get(expression.name, expression)
    parts = children(expression)
    changed = [settled(part, values) for part in parts]
    if all(new is old for new, old in zip(changed, parts, strict=True)):
        return expression
    following = iter(changed)
    return fold(rebuild(expression, lambda _: next(following)))
