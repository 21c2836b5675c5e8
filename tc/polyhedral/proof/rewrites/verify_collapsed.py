"""Proof of dimensions as one: the statements are those of the program, with one subscript in the place of two.

Rows of the tensor lie end to end, so that element ``w`` of row ``h`` is element ``length * h + w`` of the one
dimension, which is ``r`` where ``h`` and ``w`` are quotient and remainder of ``r`` and the length.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Read,
    Statement,
    reads_in,
    with_reads,
)
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.relaid import CollapsedTensor

Item = TypeVar("Item")


def find_wrong_collapse(before: Specialization, after: Specialization, made: CollapsedTensor) -> Counterexample | None:
    """The first difference, or None."""
    whole, held = before.layouts[made.tensor], after.layouts[made.tensor]
    if not all(0 <= own < len(whole.shape) for own in (made.far, made.near)) or made.far == made.near:
        return Counterexample(Violation.CHANGED, f"{made.tensor} has no dimensions {made.far} and {made.near}")
    if any(made.tensor in pair for pair in before.signature.aliases) or whole.extents or whole.packed:
        return Counterexample(Violation.CHANGED, f"{made.tensor} has open sizes, or shares its memory")
    if whole.strides[made.far] != whole.shape[made.near] * whole.strides[made.near] or held != _one_layout(whole, made):
        return Counterexample(Violation.OUT_OF_BOUNDS, f"the rows of {made.tensor} do not lie end to end")
    if {**after.layouts, made.tensor: whole} != before.layouts:
        return Counterexample(Violation.CHANGED, "the elements of another tensor")
    if tuple(_with_one(own, whole, made) for own in before.program.statements) != after.program.statements:
        return Counterexample(Violation.CHANGED, f"other statements than with dimensions of {made.tensor} as one")
    own = before.program.tensor(made.tensor)
    count = Literal(whole.shape[made.far] * whole.shape[made.near], INDEX_TYPE)
    one = replace(own, shape=_without(own.shape, count, made))
    tensors = tuple(one if other is own else other for other in before.program.tensors)
    if after.program != replace(before.program, tensors=tensors, statements=after.program.statements):
        return Counterexample(Violation.CHANGED, f"other tensors than with dimensions of {made.tensor} as one")
    return None


def _without(items: tuple[Item, ...], one: Item, made: CollapsedTensor) -> tuple[Item, ...]:
    return tuple(one if n == made.near else own for n, own in enumerate(items) if n != made.far)


def _one_layout(whole: Layout, made: CollapsedTensor) -> Layout:
    """That of the tensor with one dimension in the place of two."""
    count = whole.shape[made.far] * whole.shape[made.near]
    strides = _without(whole.strides, whole.strides[made.near], made)
    return Layout(whole.type, _without(whole.shape, count, made), strides)


def _with_one(statement: Statement, whole: Layout, made: CollapsedTensor) -> Statement | None:
    """The statement of the program with one subscript in the place of two.

    None where data choose an element, or something else names its dimensions.
    """
    rows = whole.shape[made.near]
    data = False

    def one(subscripts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        nonlocal data
        row, place = subscripts[made.far], subscripts[made.near]
        data = data or any(any(reads_in(part)) for part in subscripts)
        match row, place:
            case (
                Binary(BinaryOperator.DIVIDE, count, Literal(divisor)),
                Binary(BinaryOperator.REMAINDER, also, Literal(same)),
            ) if count == also and divisor == same == rows:
                found = count
            case _:
                before = Binary(BinaryOperator.MULTIPLY, Literal(rows, INDEX_TYPE), row, INDEX_TYPE)
                found = Binary(BinaryOperator.ADD, before, place, INDEX_TYPE)
        return _without(subscripts, found, made)

    def change(read: Read) -> Read:
        return replace(read, subscripts=one(read.subscripts)) if read.tensor == made.tensor else read

    changed = with_reads(statement, change)
    if statement.target == made.tensor:
        changed = replace(changed, subscripts=one(changed.subscripts))
    named = statement.owned is not None or statement.counts or statement.distinct
    return None if data or (named and changed != statement) else changed
