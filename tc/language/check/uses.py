"""Which tensors a statement of the text reads, mentions and writes: by name only, before types are known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tc.base.errors import Span
from tc.grammar import syntax
from tc.language.check.blocks import Placed
from tc.language.check.scope import Scope
from tc.language.check.values import Use, Write

_WRITES = {
    syntax.Assignment.SET: Write.SET,
    syntax.Assignment.ADD: Write.UPDATE,
    syntax.Assignment.MULTIPLY: Write.UPDATE,
    syntax.Assignment.MINIMUM: Write.UPDATE,
    syntax.Assignment.MAXIMUM: Write.UPDATE,
    syntax.Assignment.ADD_INITIALIZED: Write.INITIALIZE,
    syntax.Assignment.MULTIPLY_INITIALIZED: Write.INITIALIZE,
    syntax.Assignment.MINIMUM_INITIALIZED: Write.INITIALIZE,
    syntax.Assignment.MAXIMUM_INITIALIZED: Write.INITIALIZE,
}


def use_of_assign(placed: Placed, scope: Scope) -> Use:
    """The use of names of a comprehension."""
    statement = placed.statement
    assert isinstance(statement, syntax.Assign)
    reads: dict[str, Span] = {}
    mentions: dict[str, Span] = {}
    for expression in (*(statement.subscripts or ()), statement.value, *placed.bounds):
        _collect(expression, scope, reads, mentions)
    for clause in statement.where:
        match clause:
            case syntax.RangeClause(subject, begin, end):
                for expression in (subject, begin, end):
                    _collect(expression, scope, reads, mentions)
            case syntax.LetClause(_, value):
                _collect(value, scope, reads, mentions)
            case syntax.DistinctClause():
                pass  # the left-hand side reads it
            case syntax.ConditionClause(condition):
                _collect(condition, scope, reads, mentions)
            case syntax.ExistsClause(access):
                if access.name in scope.tensors:
                    mentions.setdefault(access.name, access.span)
                for expression in access.arguments:
                    _collect(expression, scope, reads, mentions)
            case _:
                assert_never(clause)
    rank = len(statement.subscripts or ())
    how = _WRITES[statement.assignment]
    if how is Write.SET and _scatters(statement, scope):
        how = Write.UPDATE  # which elements it gives, only data say
    write = (statement.target, rank, how, statement.target_span)
    return Use(reads, mentions, (write,), block=placed.numbers[0] if placed.around else None)


def _scatters(statement: syntax.Assign, scope: Scope) -> bool:
    """Whether a subscript of the left-hand side reads a tensor, also by a name that the ``where`` gives it."""
    lets = {clause.name: clause.value for clause in statement.where if isinstance(clause, syntax.LetClause)}
    waiting, seen = list(statement.subscripts or ()), set[str]()
    while waiting:
        for part in walk_syntax(waiting.pop()):
            match part:
                case syntax.Name(name) if name in lets:
                    waiting += [lets[name]] if name not in seen else []
                    seen.add(name)
                case syntax.Name(name) if scope.is_bare_tensor(name):
                    return True
                case syntax.Apply(name) if name in scope.tensors:
                    return True
                case _:
                    pass
    return False


def _collect(expression: syntax.Expression, scope: Scope, reads: dict[str, Span], mentions: dict[str, Span]) -> None:
    for part in walk_syntax(expression):
        match part:
            case syntax.Name(name, span) if scope.is_bare_tensor(name):
                reads.setdefault(name, span)
            case syntax.Apply(name, _, span) if name in scope.tensors:
                reads.setdefault(name, span)
            case syntax.Extent(name, _, span) if name in scope.tensors:
                mentions.setdefault(name, span)
            case _:
                pass


def walk_syntax(expression: syntax.Expression) -> Iterator[syntax.Expression]:
    """The expression and all its subexpressions."""
    yield expression
    for part in subexpressions(expression):
        yield from walk_syntax(part)


def subexpressions(expression: syntax.Expression) -> tuple[syntax.Expression, ...]:
    """The direct subexpressions."""
    match expression:
        case syntax.Number() | syntax.Name() | syntax.Extent():
            return ()
        case syntax.Apply(_, arguments):
            return arguments
        case syntax.Unary(_, operand):
            return (operand,)
        case syntax.Binary(_, left, right):
            return (left, right)
        case syntax.Conditional(condition, then, otherwise):
            return (condition, then, otherwise)
        case _:
            assert_never(expression)
