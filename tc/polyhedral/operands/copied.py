"""Copies of operands that products read in the place of these: in another order, or of every other element."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.algebra.single_values import settled, single_values
from tc.language.program.affine_form import affine_form
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.polyhedral.ir.relaid import CopiedOperand

# Elements of a line, and of rows that lie in few sets.
_LINE: Final = 16
_SETS: Final = 256


def with_copy(specialization: Specialization, made: CopiedOperand, place: int) -> Specialization:
    """The program with the copy made in front of the statement at this place, and read by the ``readers``."""
    program, layout = specialization.program, specialization.layouts[made.tensor]
    tensor = program.tensor(made.tensor)
    origin = DerivedOrigin(f"a copy of {made.tensor}", tensor.origin)
    shape = made.shape(layout.shape)
    extents = tuple(Literal(extent, INDEX_TYPE) for extent in shape)
    copy = Tensor(made.copy, layout.type, extents, Role.TEMPORARY, origin)
    statements = [_reading(own, made) if own.name in made.readers else own for own in program.statements]
    statements.insert(place, _copying(tensor, shape, made, program, origin))
    return replace(
        specialization,
        program=replace(program, tensors=(*program.tensors, copy), statements=tuple(statements)),
        layouts={**specialization.layouts, made.copy: Layout(layout.type, shape, _strides(shape))},
    )


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Rows one after the other, a line apart where they would share a few sets of the caches."""
    row = shape[-1] + (_LINE if shape[-1] % _SETS == 0 else 0)
    return (*contiguous_strides((*shape[:-1], row))[:-1], 1)


def _copying(
    tensor: Tensor, shape: tuple[int, ...], made: CopiedOperand, program: Program, origin: DerivedOrigin
) -> Statement:
    taken = {*program.sizes, *(own.name for own in program.tensors)}
    own = dict[int, IterationVariable]()
    for dimension, extent in sorted(zip(made.order, shape, strict=True)):
        name = fresh_name(f"i{dimension}", taken | {other.name for other in own.values()})
        own[dimension] = IterationVariable(name, Literal(0, INDEX_TYPE), Literal(extent, INDEX_TYPE))
    places = {dimension: IteratorReference(iterator.name) for dimension, iterator in own.items()}
    return Statement(
        name=fresh_name(f"{made.readers[0]}_copy", {statement.name for statement in program.statements}),
        iterators=tuple(own[dimension] for dimension in made.order),
        conditions=(),
        target=made.copy,
        subscripts=tuple(places[dimension] for dimension in made.order),
        reduction=None,
        initialize=False,
        value=Read(made.tensor, tuple(_times(places[n], step) for n, step in enumerate(made.steps)), tensor.type),
        required=(),
        origin=origin,
    )


def _times(place: Expression, step: int) -> Expression:
    own = Literal(step, INDEX_TYPE)
    return place if step == 1 else Binary(BinaryOperator.MULTIPLY, own, place, INDEX_TYPE)


def _reading(statement: Statement, made: CopiedOperand) -> Statement:
    single = single_values(statement)

    def place(subscript: Expression, step: int) -> Expression:
        if step == 1:
            return subscript
        (iterator,) = affine_form(settled(subscript, single)).factors
        return iterator

    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        if isinstance(found, Read) and found.tensor == made.tensor:
            places = [place(own, step) for own, step in zip(found.subscripts, made.steps, strict=True)]
            return replace(found, tensor=made.copy, subscripts=tuple(places[dimension] for dimension in made.order))
        return found

    return replace(statement, value=change(statement.value))


def place_of(program: Program, made: CopiedOperand) -> int | None:
    """In front of the first reader, where a copy shares no innermost loop with what writes the tensor.

    None if that comes later, or goes on there.
    """
    first = next(n for n, statement in enumerate(program.statements) if statement.name in made.readers)
    written = any(statement.target == made.tensor for statement in program.statements[first:])
    return None if written else first


def reads_alike(statement: Statement, read: Read) -> bool:
    """Whether all reads of the tensor have these subscripts, and none is in a subscript or a condition."""
    others = (*statement.subscripts, *statement.conditions, *statement.required)
    inside = any(own.tensor == read.tensor for part in others for own in reads_in(part))
    return not inside and all(own == read for own in reads_in(statement.value) if own.tensor == read.tensor)


def is_static(layout: Layout) -> bool:
    """Whether sizes and strides are numbers."""
    return not layout.extents and not layout.packed
