"""Values in parts: a reduction that goes on with a value, and elements that one step of a block gives twice."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

from tc.gradient.terms import call
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    Binary,
    Expression,
    IteratorReference,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.written_elements import is_scatter, over_elements


def goes_on(
    statement: Statement,
    shape: Sequence[Expression],
    before: Callable[[tuple[Expression, ...]], Expression],
    new: str,
) -> list[Statement]:
    """The statements that take the place of a reduction.

    ``shape``: of its target.  ``before``: the value that it goes on with, of the element with these subscripts.
    ``new``: a tensor like the target, for what it adds.
    """
    assert statement.reduction is not None
    elements = over_elements(statement, shape)
    value = before(elements.subscripts)
    own = Read(new, elements.subscripts, value.type)
    return [
        replace(statement, target=new, initialize=True),
        replace(
            elements,
            reduction=None,
            initialize=False,
            value=_combined(statement.reduction, value, own),
            required=(),
            distinct=(),
        ),
    ]


def over_written(statement: Statement) -> Statement:
    """The statement over its steps and the elements that it writes."""
    names = iterators_in(statement.subscripts) | {iterator.name for iterator in statement.sequence}
    return replace(statement, iterators=tuple(i for i in statement.iterators if i.name in names))


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


def apart_in_steps(program: Program) -> Program:
    """The program in which no step of a block gives an element twice, where subscripts say that it does.

    Of ``v(t,s) max=! ...  v(t,s) = v(t,s) + E(t,s)`` the first value has a tensor of its own, so that the second one
    replaces nothing.
    """
    statements, tensors = list(program.statements), list(program.tensors)
    taken = {*program.sizes, *(own.name for own in tensors), *(scalar.name for scalar in program.scalars)}
    for last, statement in enumerate(program.statements):
        first = _replaced(statements, last)
        if first is None:
            continue
        name = fresh_name(f"{statement.target}_first", taken)
        moved = [_reading(own, statement, name) for own in statements[first + 1 : last + 1]]
        found = [own for own in moved if own is not None]
        if len(found) == len(moved):
            taken.add(name)
            own = next(tensor for tensor in tensors if tensor.name == statement.target)
            tensors.append(replace(own, name=name, role=Role.TEMPORARY))
            statements[first : last + 1] = [replace(statements[first], target=name), *found]
    return replace(program, tensors=tuple(tensors), statements=tuple(statements))


def _replaced(statements: Sequence[Statement], last: int) -> int | None:
    """The statement whose elements another one replaces, all of them in each step; None if there is none."""
    statement = statements[last]
    if not statement.blocks or statement.reduction is not None or statement.conditions or is_scatter(statement):
        return None
    for place in range(last - 1, -1, -1):
        other = statements[place]
        if other.blocks != statement.blocks:
            return None
        if other.target == statement.target:
            begins = (other.reduction is None or other.initialize) and not other.conditions and not is_scatter(other)
            return place if begins and _elements(other) == _elements(statement) is not None else None
    return None


def _elements(statement: Statement) -> tuple[object, ...] | None:
    """What tells the elements that a statement writes in a step: numbers of steps, and ranges; None for others."""
    steps = [own.name for own in statement.sequence]
    ranges = {own.name: (own.begin, own.end) for own in statement.iterators}
    names = [own.name for own in statement.subscripts if isinstance(own, IteratorReference)]
    if len(names) < len(statement.subscripts) or len(set(names)) < len(names):
        return None
    return tuple(steps.index(name) if name in steps else ranges[name] for name in names)


def _reading(statement: Statement, writer: Statement, name: str) -> Statement | None:
    """A statement that reads the first value of a step where it read what the writer replaces; None if neither."""
    wanted, tensor = _elements(writer), writer.target
    others = (*statement.subscripts, *statement.conditions, *statement.required)
    if any(own.tensor == tensor for part in others for own in reads_in(part)):
        return None
    ranges = {own.name: (own.begin, own.end) for own in statement.iterators}
    steps = [own.name for own in statement.sequence]
    unclear = False

    def change(expression: Expression) -> Expression:
        nonlocal unclear
        found = rebuild(expression, change)
        if not isinstance(found, Read) or found.tensor != tensor or wanted is None:
            return found
        names = [own.name if isinstance(own, IteratorReference) else None for own in found.subscripts]
        if tuple(steps.index(own) if own in steps else ranges.get(own or "") for own in names) == wanted:
            return replace(found, tensor=name)
        unclear = unclear or not any(
            isinstance(step, int) and _is_other_step(own, steps[step])
            for step, own in zip(wanted, found.subscripts, strict=True)
        )
        return found

    changed = replace(statement, value=change(statement.value))
    return None if unclear else changed


def _is_other_step(subscript: Expression, step: str) -> bool:
    """Whether a subscript is a number of steps before or behind one."""
    form = affine_form(subscript)
    return form.constant != 0 and form.factors == {IteratorReference(step): 1}
