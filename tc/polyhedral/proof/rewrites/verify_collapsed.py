"""Proof of dimensions as one: the statements are those of the program, with one subscript in the place of two.

Rows of the tensor lie end to end, so that element ``w`` of row ``h`` is element ``length * h + w`` of the one
dimension, which is ``r`` where ``h`` and ``w`` are quotient and remainder of ``r`` and the length.
"""

from __future__ import annotations

from dataclasses import replace

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Read,
    Statement,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.relaid import CollapsedTensor


def find_wrong_collapse(before: Specialization, after: Specialization, made: CollapsedTensor) -> Counterexample | None:
    """The first difference, or None."""
    whole, held = before.layouts[made.tensor], after.layouts[made.tensor]
    if any(made.tensor in pair for pair in before.signature.aliases) or whole.extents or whole.packed:
        return Counterexample(Violation.CHANGED, f"{made.tensor} has open sizes, or shares its memory")
    if _opened(held, whole, made) != whole:
        return Counterexample(Violation.OUT_OF_BOUNDS, f"the rows of {made.tensor} do not lie end to end")
    if {**after.layouts, made.tensor: whole} != before.layouts:
        return Counterexample(Violation.CHANGED, "the elements of another tensor")
    if tuple(_with_one(own, whole, made) for own in before.program.statements) != after.program.statements:
        return Counterexample(Violation.CHANGED, f"other statements than with dimensions of {made.tensor} as one")
    own = after.program.tensor(made.tensor)
    known = replace(own, shape=before.program.tensor(made.tensor).shape)
    tensors = tuple(known if other is own else other for other in after.program.tensors)
    rest = replace(after.program, tensors=tensors, statements=before.program.statements)
    count = Literal(whole.shape[made.far] * whole.shape[made.near], INDEX_TYPE)
    if rest != before.program or own.shape[_place(made)] != count:
        return Counterexample(Violation.CHANGED, f"other tensors than with dimensions of {made.tensor} as one")
    return None


def _place(made: CollapsedTensor) -> int:
    """The dimension that stands for both."""
    return made.near - (made.far < made.near)


def _opened(held: Layout, whole: Layout, made: CollapsedTensor) -> Layout | None:
    """The layout with two dimensions in the place of one; None where it does not hold whole rows."""
    place, rows, length = _place(made), whole.shape[made.far], whole.shape[made.near]
    if len(held.shape) + 1 != len(whole.shape) or held.shape[place] != rows * length or made.far == made.near:
        return None
    step = held.strides[place]
    shape, strides = list(held.shape), list(held.strides)
    shape[place], strides[place] = length, step
    shape.insert(made.far, rows)
    strides.insert(made.far, length * step)
    return Layout(held.type, tuple(shape), tuple(strides))


def _with_one(statement: Statement, whole: Layout, made: CollapsedTensor) -> Statement | None:
    """The statement of the program with one subscript in the place of two; None where data choose an element."""
    rows = whole.shape[made.near]
    data = False

    def one(subscripts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        nonlocal data
        row, place = subscripts[made.far], subscripts[made.near]
        data = data or any(any(reads_in(part)) for part in (row, place))
        match row, place:
            case (
                Binary(BinaryOperator.DIVIDE, count, Literal(divisor)),
                Binary(BinaryOperator.REMAINDER, also, Literal(same)),
            ) if count == also and divisor == same == rows:
                found = count
            case _:
                before = Binary(BinaryOperator.MULTIPLY, Literal(rows, INDEX_TYPE), row, INDEX_TYPE)
                found = Binary(BinaryOperator.ADD, before, place, INDEX_TYPE)
        return tuple(found if n == made.near else own for n, own in enumerate(subscripts) if n != made.far)

    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        if isinstance(found, Read) and found.tensor == made.tensor:
            return replace(found, subscripts=one(found.subscripts))
        return found

    written = tuple(map(change, statement.subscripts))
    required = (change(own) for own in statement.required)
    changed = replace(
        statement,
        subscripts=one(written) if statement.target == made.tensor else written,
        value=change(statement.value),
        conditions=tuple(map(change, statement.conditions)),
        required=tuple(own for own in required if isinstance(own, Read)),
    )
    return None if data else changed
