"""Values that one step of a block gives in several parts: each but the last gets a tensor of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from tc.base.frozen import frozen
from tc.gradient.terms import call
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import map_statement
from tc.language.program.program import (
    Binary,
    Expression,
    Read,
    Reduction,
    Statement,
    iterators_in,
    reads_in,
    rebuild,
)


def in_parts(group: Sequence[Statement], declare: Callable[[str], str]) -> list[Statement]:
    """The statements of a block in which no step replaces a value that it has given before.

    ``declare``: makes a tensor like another one, and gives it a name.
    """
    found: list[Statement] = []
    for statement in group:
        target = statement.target
        first = next((n for n, own in enumerate(found) if own.target == target), None)
        if first is None or not _updates(statement):
            found.append(statement)
            continue
        part = declare(target)
        times = frozenset(_time(own.subscripts, own) for own in found if own.target == target)
        moved = _Moved(target, part, statement.sequence[0].name, times)
        for n, own in enumerate(found[first:], first):
            changed = map_statement(own, moved)
            found[n] = replace(changed, target=part) if own.target == target else changed
        changed = map_statement(statement, moved)
        if statement.reduction is None:
            found.append(changed)
        else:
            found += goes_on(changed, Read(part, changed.subscripts, changed.value.type), declare(target))
    return found


def goes_on(statement: Statement, before: Read, new: str) -> list[Statement]:
    """A reduction that goes on with a value: what it adds, in the tensor ``new``, and both together."""
    assert statement.reduction is not None
    own = Read(new, statement.subscripts, before.type)
    return [
        replace(statement, target=new, initialize=True),
        replace(
            over_written(statement),
            reduction=None,
            initialize=False,
            value=_combined(statement.reduction, before, own),
            required=(),
        ),
    ]


def over_written(statement: Statement) -> Statement:
    """The statement over its steps and the elements that it writes."""
    names = iterators_in(statement.subscripts) | {iterator.name for iterator in statement.sequence}
    return replace(statement, iterators=tuple(i for i in statement.iterators if i.name in names))


def _updates(statement: Statement) -> bool:
    """Whether the derivative of a statement needs the value of its target that it replaces."""
    own = (read for read in reads_in(statement.value) if read.tensor == statement.target)
    if any(read.subscripts == statement.subscripts for read in own):
        return True
    return statement.reduction not in (None, Reduction.ADD) and not statement.initialize


@frozen
class _Moved:
    """Reads of what a step has given in ``part``; ``times``: the subscripts that say which step an element is of."""

    tensor: str
    part: str
    step: str
    times: frozenset[tuple[Expression | None, ...]]

    def __call__(self, expression: Expression) -> Expression:
        changed = rebuild(expression, self)
        if not isinstance(changed, Read) or changed.tensor != self.tensor:
            return changed
        given = _subscripts_of(changed.subscripts, self.step) in self.times
        return replace(changed, tensor=self.part) if given else changed


def _time(subscripts: Sequence[Expression], statement: Statement) -> tuple[Expression | None, ...]:
    return _subscripts_of(subscripts, statement.sequence[0].name)


def _subscripts_of(subscripts: Sequence[Expression], step: str) -> tuple[Expression | None, ...]:
    return tuple(own if step in iterators_in((own,)) else None for own in subscripts)


def _combined(reduction: Reduction, left: Expression, right: Expression) -> Expression:
    match reduction:
        case Reduction.ADD:
            return Binary(BinaryOperator.ADD, left, right, left.type)
        case Reduction.MULTIPLY:
            return Binary(BinaryOperator.MULTIPLY, left, right, left.type)
        case Reduction.MINIMUM:
            return call("fmin" if left.type.is_floating else "min", left, right)
        case Reduction.MAXIMUM:
            return call("fmax" if left.type.is_floating else "max", left, right)
        case _:
            assert_never(reduction)
