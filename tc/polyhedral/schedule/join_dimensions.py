"""Dimensions that lie end to end in memory, as one: short rows that are kept are one long row.

``s(n,h,w) +=! x(n,c,h,w)`` adds up images whose rows follow each other without gaps.  One loop over ``h`` and ``w``
together reads long pieces of memory: ``s(n,r/W,r%W) +=! x(n,c,r/W,r%W)``.  All statements that touch what others write
are counted in the same way, or none of them: else they would share no loops.

This proposes; ``tc.polyhedral.proof.rewrites.verify_pulled`` says whether the instances are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Final

from tc.base.frozen import frozen
from tc.language.program.program import (
    INDEX_TYPE,
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
from tc.polyhedral.schedule.join_terms import joined, places_along, with_statement
from tc.polyhedral.schedule.scatter import length_of

# Rows of so many elements are read well one by one.
_LONG: Final = 512


@frozen
class _Pair:
    """The iterators that count rows, and the elements of a row; ``places``: the dimensions they choose, by tensor."""

    statement: str
    rows: IterationVariable
    row: IterationVariable
    places: Mapping[str, tuple[int, int]]


def join_dimensions(specialization: Specialization) -> Iterator[tuple[Specialization, PulledStatement]]:
    """The program with two dimensions of one more statement joined, of all that share them."""
    pairs = _together(specialization, _pairs(specialization))
    gains = any(_reads_columns(own, specialization) for own in pairs.values())
    for pair in pairs.values() if gains else ():
        statement = next(own for own in specialization.program.statements if own.name == pair.statement)
        changed, made = joined(statement, pair.rows, pair.row)
        specialization = with_statement(specialization, changed)
        yield specialization, made


def _pairs(specialization: Specialization) -> dict[str, _Pair]:
    """The rows of statements, of all whose accesses follow each other along them."""
    found = dict[str, _Pair]()
    for statement in specialization.program.statements:
        pair = _pair(statement, specialization)
        if pair is not None:
            found[statement.name] = pair
    return found


def _pair(statement: Statement, specialization: Specialization) -> _Pair | None:
    """Rows of what a statement writes, whose elements lie side by side."""
    plain = not (statement.blocks or statement.conditions or statement.counts or statement.atomic)
    if not plain or statement.owned is not None or is_scatter(statement):
        return None
    target = Read(statement.target, statement.subscripts, specialization.layouts[statement.target].type)
    reads = tuple(reads_in(statement.value))
    if any(read.tensor == statement.target for read in reads):
        return None
    bounds = iterators_in(end for own in statement.iterators for end in (own.begin, own.end))
    free = [
        own
        for own in statement.iterators
        if own.begin == Literal(0, INDEX_TYPE) and own.name not in bounds | used_as_values(statement.value)
    ]
    for rows, row in permutations(free, 2):
        length = length_of(row)
        if length is None or length_of(rows) is None or not 1 < length < _LONG:
            continue
        every = [places_along(read, rows, row, specialization) for read in (target, *reads)]
        places = dict(zip((read.tensor for read in (target, *reads)), every, strict=True))
        if None in every or not places[target.tensor] or _step(target, row, specialization) != 1:
            continue
        if all(own == places[read.tensor] for own, read in zip(every, (target, *reads), strict=True)):
            return _Pair(statement.name, rows, row, {name: own for name, own in places.items() if own})
    return None


def _step(read: Read, row: IterationVariable, specialization: Specialization) -> int:
    return specialization.layouts[read.tensor].strides[read.subscripts.index(IteratorReference(row.name))]


def _together(specialization: Specialization, pairs: Mapping[str, _Pair]) -> dict[str, _Pair]:
    """Those whose tensors, as far as the program writes them, all statements touch along the same rows."""
    statements = specialization.program.statements
    written = {own.target for own in statements}
    kept = dict(pairs)
    while True:
        wrong = {
            name
            for own in statements
            for tensor in {own.target, *(read.tensor for read in reads_in(own.value))} & written
            for name, pair in kept.items()
            if tensor in pair.places and _along(own, tensor, kept) != pair.places[tensor]
        }
        if not wrong:
            return kept
        kept = {name: pair for name, pair in kept.items() if name not in wrong}


def _along(statement: Statement, tensor: str, pairs: Mapping[str, _Pair]) -> tuple[int, int] | None:
    """The dimensions of a tensor that a statement's rows choose."""
    return pairs[statement.name].places.get(tensor) if statement.name in pairs else None


def _reads_columns(pair: _Pair, specialization: Specialization) -> bool:
    """Whether a statement adds up rows, each element of which it reads once, one beside the other."""
    statement = next(own for own in specialization.program.statements if own.name == pair.statement)
    names = {own.name for own in statement.iterators}
    moving = [own for own in reads_in(statement.value) if own.tensor in pair.places]
    reads = bool(moving) and all(
        iterators_in(own.subscripts) == names and _step(own, pair.row, specialization) == 1 for own in moving
    )
    return statement.reduction is not None and reads and len(names) > len(iterators_in(statement.subscripts))
