"""Dimensions that everything counts together, as one: a tensor of images is a matrix.

Where the accesses of ``x(C,H,W)`` are of the form ``x(c,r/W,r%W)``, and rows lie end to end, ``x`` is a tensor
``x(C,H*W)`` that is read at ``x(c,r)``.  Tiles of ``r`` are boxes of elements then, which registers and copies hold.
What fills ``x(c,h,w)`` row by row fills ``x(c,W*h+w)``.

This proposes; ``tc.polyhedral.proof.rewrites.verify_collapsed`` says whether all accesses are of the same elements.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeAlias, TypeVar

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Program,
    Read,
    Statement,
    reads_in,
    with_reads,
)
from tc.language.program.specialization import Layout, Specialization
from tc.polyhedral.ir.relaid import CollapsedTensor

Item = TypeVar("Item")


def collapse_dimensions(specialization: Specialization) -> Iterator[tuple[Specialization, CollapsedTensor]]:
    """The program with two dimensions of one more tensor as one, as often as there are such."""
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    for tensor in [own.name for own in specialization.program.tensors if own.name not in aliased]:
        while (made := _found(tensor, specialization)) is not None:
            specialization = _collapsed(specialization, made)
            yield specialization, made


def _found(tensor: str, specialization: Specialization) -> CollapsedTensor | None:
    """Two dimensions that all accesses of a tensor count together."""
    layout = specialization.layouts[tensor]
    accesses = _accesses(tensor, specialization.program)
    if accesses is None or layout.extents or layout.packed:
        return None
    used, filled = accesses
    # Checks of what data choose name the dimension.
    if any(any(reads_in(subscript)) for own in (*used, *filled) for subscript in own):
        return None
    for far, near in permutations(range(len(layout.shape)), 2):
        length = layout.shape[near]
        if layout.strides[far] != length * layout.strides[near]:
            continue
        rest = [own for own in filled if _counted_together(own, far, near, length) is None]
        if len(rest) == len(used) + len(filled):
            continue
        if all(_counted_together(own, far, near, length) is not None for own in used):
            return CollapsedTensor(tensor, far, near)
    return None


_Accesses: TypeAlias = list[tuple[Expression, ...]]


def _accesses(tensor: str, program: Program) -> tuple[_Accesses, _Accesses] | None:
    """The subscripts of what reads it or adds to it, and of what fills it; None where a statement checks these."""
    used, filled = _Accesses(), _Accesses()
    for own in program.statements:
        parts = (own.value, *own.subscripts, *own.conditions, *own.required)
        read = [read.subscripts for part in parts for read in reads_in(part) if read.tensor == tensor]
        written = own.target == tensor
        if (read or written) and (own.counts or own.distinct or own.owned is not None):
            return None
        used += read
        if written:
            (used if read or own.reduction is not None else filled).append(own.subscripts)
    return used, filled


def _counted_together(subscripts: Sequence[Expression], far: int, near: int, length: int) -> Expression | None:
    """What counts the elements of rows of such a length, where one subscript is its quotient and one its remainder."""
    match subscripts[far], subscripts[near]:
        case (
            Binary(BinaryOperator.DIVIDE, whole, Literal(rows)),
            Binary(BinaryOperator.REMAINDER, also, Literal(row)),
        ) if whole == also and rows == row == length:
            return whole
        case _:
            return None


def _without(items: Sequence[Item], made: CollapsedTensor, one: Item) -> tuple[Item, ...]:
    """Something of each dimension, with one in the place of two."""
    return tuple(one if n == made.near else own for n, own in enumerate(items) if n != made.far)


def _collapsed(specialization: Specialization, made: CollapsedTensor) -> Specialization:
    program, layout = specialization.program, specialization.layouts[made.tensor]
    count, tensor = layout.shape[made.far] * layout.shape[made.near], program.tensor(made.tensor)
    one = replace(tensor, shape=_without(tensor.shape, made, Literal(count, INDEX_TYPE)))
    held = Layout(
        layout.type, _without(layout.shape, made, count), _without(layout.strides, made, layout.strides[made.near])
    )
    return replace(
        specialization,
        program=replace(
            program,
            tensors=tuple(one if own is tensor else own for own in program.tensors),
            statements=tuple(_in_statement(own, made, layout) for own in program.statements),
        ),
        layouts={**specialization.layouts, made.tensor: held},
    )


def _in_statement(statement: Statement, made: CollapsedTensor, layout: Layout) -> Statement:
    def one(subscripts: tuple[Expression, ...]) -> tuple[Expression, ...]:
        length = layout.shape[made.near]
        whole = _counted_together(subscripts, made.far, made.near, length)
        if whole is None:
            before = Binary(BinaryOperator.MULTIPLY, Literal(length, INDEX_TYPE), subscripts[made.far], INDEX_TYPE)
            whole = Binary(BinaryOperator.ADD, before, subscripts[made.near], INDEX_TYPE)
        return _without(subscripts, made, whole)

    def change(read: Read) -> Read:
        return replace(read, subscripts=one(read.subscripts)) if read.tensor == made.tensor else read

    changed = with_reads(statement, change)
    return replace(changed, subscripts=one(changed.subscripts)) if statement.target == made.tensor else changed
