"""Dimensions that lie end to end in memory, as one: short rows that are kept are one long row.

``s(n,h,w) +=! x(n,c,h,w)`` adds up images whose rows follow each other without gaps.  One loop over ``h`` and ``w``
together reads long pieces of memory: ``s(n,r/W,r%W) +=! x(n,c,r/W,r%W)``.  Products of matrices with images, as
``y(n,f,h,w) +=! x(n,c,h,w) * k(f,c)``, are products of two matrices then, whose columns fill vectors.  All statements
that touch what others write are counted in the same way, or none of them, as they would share no loops; but what fills
a temporary from arguments may do that row by row, in front of them.

This proposes; ``tc.polyhedral.proof.rewrites.verify_pulled`` says whether the instances are those of the program.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import Final

from tc.base.frozen import frozen
from tc.language.algebra.single_values import settled, single_values
from tc.language.program.program import (
    INDEX_TYPE,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Role,
    Statement,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Specialization
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.analysis.reads import used_as_values
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.ir.pulled import PulledStatement
from tc.polyhedral.schedule.join_terms import joined, places_along, with_statement
from tc.polyhedral.schedule.scatter import length_of

# Rows of so many elements are read well one by one.
_LONG: Final = 512


@frozen
class _Pair:
    """The iterators that count rows, and the elements of a row; ``places``: the dimensions they choose, by tensor.

    ``single``: others in the same subscripts, which have one value, as those of a window of one element.
    """

    statement: str
    rows: IterationVariable
    row: IterationVariable
    places: Mapping[str, tuple[int, int]]
    single: Mapping[str, Literal]


def join_dimensions(specialization: Specialization) -> Iterator[tuple[Specialization, PulledStatement]]:
    """The program with two dimensions of one more statement joined, of all that share them."""
    pairs = _together(specialization, _pairs(specialization))
    gains = any(
        _reads_columns(own, specialization)
        or (_is_product(own, specialization) and _is_matrix(own, specialization, pairs))
        for own in pairs.values()
    )
    for pair in pairs.values() if gains else ():
        statement = next(own for own in specialization.program.statements if own.name == pair.statement)
        changed, made = joined(statement, pair.rows, pair.row, pair.single)
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
    if statement.reduction is not None and any(read.tensor == statement.target for read in reads):
        return None
    bounds = iterators_in(end for own in statement.iterators for end in (own.begin, own.end))
    single = {name: value for name, value in single_values(statement).items() if name not in bounds}
    free = [
        own
        for own in statement.iterators
        if own.begin == Literal(0, INDEX_TYPE)
        and own.name not in bounds | used_as_values(statement.value) | set(single)
    ]
    for rows, row in permutations(free, 2):
        length = length_of(row)
        if length is None or length_of(rows) is None or not 1 < length < _LONG:
            continue
        beside = _beside(rows, row, (target, *reads), single)
        accesses = [_settled(read, beside) for read in (target, *reads)]
        every = [places_along(read, rows, row, specialization) for read in accesses]
        places = dict(zip((read.tensor for read in accesses), every, strict=True))
        if None in every or not places[target.tensor] or _step(accesses[0], row, specialization) != 1:
            continue
        if all(own == places[read.tensor] for own, read in zip(every, accesses, strict=True)):
            return _Pair(statement.name, rows, row, {name: own for name, own in places.items() if own}, beside)
    return None


def _beside(
    rows: IterationVariable, row: IterationVariable, reads: Sequence[Read], single: Mapping[str, Literal]
) -> dict[str, Literal]:
    """The iterators of one value in subscripts of these."""
    inside = [iterators_in((subscript,)) for read in reads for subscript in read.subscripts]
    names = frozenset[str]().union(*(own for own in inside if {rows.name, row.name} & own))
    return {name: value for name, value in single.items() if name in names}


def _settled(read: Read, values: Mapping[str, Expression]) -> Read:
    return replace(read, subscripts=tuple(settled(subscript, values) for subscript in read.subscripts))


def _step(read: Read, row: IterationVariable, specialization: Specialization) -> int:
    return specialization.layouts[read.tensor].strides[read.subscripts.index(IteratorReference(row.name))]


def _together(specialization: Specialization, pairs: Mapping[str, _Pair]) -> dict[str, _Pair]:
    """Those whose tensors, as far as the program writes them, all statements touch along the same rows."""
    statements = specialization.program.statements
    written = {own.target for own in statements}
    fill = {own.name for own in statements if own.name not in pairs and _fills(own, specialization.program, written)}
    kept = dict(pairs)
    while True:
        wrong = {
            name
            for own in statements
            for tensor in _touched(own) & written
            for name, pair in kept.items()
            if tensor in pair.places and own.name not in fill and _along(own, tensor, kept) != pair.places[tensor]
        }
        if not wrong:
            return kept
        kept = {name: pair for name, pair in kept.items() if name not in wrong}


def _touched(statement: Statement) -> set[str]:
    return {statement.target, *(read.tensor for read in reads_in(statement.value))}


def _fills(statement: Statement, program: Program, written: Collection[str]) -> bool:
    """Whether a statement makes a temporary of arguments alone."""
    temporary = program.tensor(statement.target).role is Role.TEMPORARY
    reads = {read.tensor for read in reads_in(statement.value)}
    return temporary and statement.reduction is None and not statement.blocks and not reads & set(written)


def _along(statement: Statement, tensor: str, pairs: Mapping[str, _Pair]) -> tuple[int, int] | None:
    """The dimensions of a tensor that a statement's rows choose."""
    return pairs[statement.name].places.get(tensor) if statement.name in pairs else None


def _reads_columns(pair: _Pair, specialization: Specialization) -> bool:
    """Whether a statement adds up rows, each element of which it reads once, one beside the other."""
    statement = next(own for own in specialization.program.statements if own.name == pair.statement)
    names = {own.name for own in statement.iterators} - set(pair.single)
    moving = [_settled(own, pair.single) for own in reads_in(statement.value) if own.tensor in pair.places]
    reads = bool(moving) and all(
        iterators_in(own.subscripts) == names and _step(own, pair.row, specialization) == 1 for own in moving
    )
    return statement.reduction is not None and reads and len(names) > len(iterators_in(statement.subscripts))


def _is_product(pair: _Pair, specialization: Specialization) -> bool:
    """Whether a statement multiplies matrices, of which the rows are columns: one operand does not move along them."""
    statement = next(own for own in specialization.program.statements if own.name == pair.statement)
    if statement.reduction is None:
        return False
    single = single_values(statement)
    written = iterators_in(statement.subscripts)
    kept = [own.name for own in statement.iterators if own.name in written and own.name not in single]
    reduced = [own.name for own in statement.iterators if own.name not in written and own.name not in single]
    reads = [own.subscripts for own in reads_in(statement.value)]
    pairs = [set(own) for own in product_loops(reads, kept, reduced)]
    return bool(reduced) and any({name, pair.row.name} in pairs and {name, pair.rows.name} in pairs for name in kept)


def _is_matrix(pair: _Pair, specialization: Specialization, pairs: Mapping[str, _Pair]) -> bool:
    """Whether the tensors that the rows are of are matrices for everything that touches them, or fills them."""
    statements = specialization.program.statements
    written = {own.target for own in statements}
    return all(
        _along(own, tensor, pairs) == places or (own.target == tensor and _fills(own, specialization.program, written))
        for tensor, places in pair.places.items()
        for own in statements
        if tensor in _touched(own)
    )
