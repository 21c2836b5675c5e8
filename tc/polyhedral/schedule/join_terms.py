"""Loops over terms that lie end to end in memory, as one loop: short rows are one long row.

``y(n,c) +=! x(n,c,h,w)`` adds up ``H`` rows of ``W`` elements without gaps between them, which are ``H * W`` elements
in a row: ``y(n,c) +=! x(n,c,r/W,r%W)``.  Vectors of a loop over ``w`` alone would be cut off behind every row.

This proposes; ``tc.polyhedral.proof.rewrites.verify_pulled`` says whether the instances are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import permutations
from types import MappingProxyType
from typing import Final

from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.algebra.single_values import settled
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Read,
    Statement,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.analysis.reads import used_as_values
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.schedule.scatter import length_of

# Rows that are multiples of vectors, or of all lanes of a sum, fill them; of much longer ones the rest takes little.
_VECTOR: Final = 16
_LANES: Final = 64
_LONG: Final = 512


def join_terms(specialization: Specialization) -> Iterator[tuple[Specialization, PulledStatement]]:
    """The program with two more loops over terms joined, as often as there are such."""
    for name in [own.name for own in specialization.program.statements]:
        statement = next(own for own in specialization.program.statements if own.name == name)
        while (pair := _short_rows(statement, specialization)) is not None:
            statement, made = joined(statement, *pair)
            specialization = with_statement(specialization, statement)
            yield specialization, made


def with_statement(specialization: Specialization, changed: Statement) -> Specialization:
    """The program with another statement of the same name."""
    program = specialization.program
    statements = tuple(changed if own.name == changed.name else own for own in program.statements)
    return replace(specialization, program=replace(program, statements=statements))


def _short_rows(
    statement: Statement, specialization: Specialization
) -> tuple[IterationVariable, IterationVariable] | None:
    """The iterators that count rows, and the elements of a row, of all that a reduction reads along them."""
    plain = statement.reduction is not None and not (statement.blocks or statement.conditions or statement.counts)
    if not plain or statement.atomic or statement.owned is not None or is_scatter(statement):
        return None
    if any(read.tensor == statement.target for read in reads_in(statement.value)):
        return None
    kept = iterators_in(statement.subscripts) | used_as_values(statement.value)
    terms = [own for own in statement.iterators if own.name not in kept and own.begin == Literal(0, INDEX_TYPE)]
    for rows, row in permutations(terms, 2):
        length = length_of(row)
        if length is None or length_of(rows) is None or length >= _LONG or _fills_lanes(length):
            continue
        bounds = iterators_in(end for own in statement.iterators for end in (own.begin, own.end))
        if {rows.name, row.name} & bounds:
            continue
        steps = [_step(read, rows, row, specialization) for read in reads_in(statement.value)]
        if 1 in steps and None not in steps:
            return rows, row
    return None


def _fills_lanes(length: int) -> bool:
    """Whether vectors of a row leave no element over."""
    return length % _LANES == 0 or (length < _LANES and length % _VECTOR == 0)


def _step(read: Read, rows: IterationVariable, row: IterationVariable, specialization: Specialization) -> int | None:
    """How far the elements of a row are apart in memory; 0 where the read moves along neither, None with gaps."""
    places = places_along(read, rows, row, specialization)
    if not places:
        return None if places is None else 0
    return specialization.layouts[read.tensor].strides[places[1]]


def places_along(
    read: Read, rows: IterationVariable, row: IterationVariable, specialization: Specialization
) -> tuple[int, int] | tuple[()] | None:
    """The dimensions that rows and their elements choose; none where neither does, None where rows have gaps."""
    used = [{rows.name, row.name} & iterators_in((subscript,)) for subscript in read.subscripts]
    if not any(used):
        return ()
    layout, length = specialization.layouts[read.tensor], length_of(row)
    whole = [IteratorReference(own.name) in read.subscripts for own in (rows, row)]
    if sum(map(bool, used)) != 2 or not all(whole) or layout.extents or layout.packed or length is None:
        return None
    far, near = (read.subscripts.index(IteratorReference(own.name)) for own in (rows, row))
    return (far, near) if layout.strides[far] == length * layout.strides[near] else None


def joined(
    statement: Statement,
    rows: IterationVariable,
    row: IterationVariable,
    single: Mapping[str, Literal] = MappingProxyType({}),
) -> tuple[Statement, PulledStatement]:
    """The statement with one iterator in the place of two; ``single``: values of others, which take their place."""
    count, length = length_of(rows), length_of(row)
    assert count is not None
    assert length is not None
    name = fresh_name(f"{rows.name}{row.name}", {own.name for own in statement.iterators})
    whole, size = IteratorReference(name), Literal(length, INDEX_TYPE)
    values: dict[str, Expression] = {
        rows.name: Binary(BinaryOperator.DIVIDE, whole, size, INDEX_TYPE),
        row.name: Binary(BinaryOperator.REMAINDER, whole, size, INDEX_TYPE),
    }
    values |= single
    one = IterationVariable(name, Literal(0, INDEX_TYPE), Literal(count * length, INDEX_TYPE))
    kept = (own for own in statement.iterators if own is not row and own.name not in single)
    iterators = tuple(one if own is rows else own for own in kept)
    changed = replace(
        statement,
        iterators=iterators,
        subscripts=tuple(settled(part, values) for part in statement.subscripts),
        value=settled(statement.value, values),
        required=tuple(
            replace(own, subscripts=tuple(settled(part, values) for part in own.subscripts))
            for own in statement.required
        ),
        origin=DerivedOrigin("rows that lie end to end, as one", statement.origin),
    )
    every = {own.name: values.get(own.name, IteratorReference(own.name)) for own in statement.iterators}
    return changed, PulledStatement(statement.name, every)
