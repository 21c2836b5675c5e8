"""Transposed copies of operands that a product reads across memory.

``C(m,n) +=! A(k,m) * B(k,n)`` has vectors along ``n``, and for each of a few rows ``m`` one element of ``A``.  From one
step to the next these lie a row of ``A`` apart: each is in another line, and often in another page, and rows whose
length is a power of two share a few sets of the caches.  The copy ``A'(m,k) = A(k,m)`` is made once, and read along
memory (packing of both operands: Goto and van de Geijn, *Anatomy of high-performance matrix multiplication*, ACM
Transactions on Mathematical Software 34, 2008, Section 4).

This proposes; ``tc.polyhedral.proof.rewrites.verify_transposed`` says whether each read finds what the program reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    INDEX_TYPE,
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
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.ir.transposed import TransposedOperand
from tc.polyhedral.schedule.scatter import length_of

# Shorter loops are not worth a copy: lanes are the times that each element of it is read, in vectors.
_LEAST_LANES: Final = 32
_LEAST_STEPS: Final = 64
_LEAST_ROWS: Final = 16
# Lanes of one register tile read an element of the operand once; lines of so many steps stay in a first-level cache.
_ONE_TILE: Final = 64
_FEW_STEPS: Final = 256
# Elements between two steps, from which on the lines of a few rows do not follow each other.
_FAR: Final = 64
# Elements of a line, and of rows that lie in few sets.
_LINE: Final = 16
_SETS: Final = 256


def transpose_operands(specialization: Specialization) -> Iterator[tuple[Specialization, TransposedOperand]]:
    """The program with one more operand transposed, as often as there is one that gains by it."""
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for statement in specialization.program.statements:
        for read, order in _across(statement, specialization.layouts):
            if read.tensor not in aliased and statement.name not in found.setdefault((read.tensor, order), []):
                found[read.tensor, order].append(statement.name)
    for (tensor, order), readers in found.items():
        names = {own.name for own in specialization.program.tensors}
        made = TransposedOperand(tensor, fresh_name(f"{tensor}_transposed", names), order, tuple(readers))
        place = _place(specialization.program, made)
        if place is not None:
            specialization = transposed(specialization, made, place)
            yield specialization, made


def transposed(specialization: Specialization, made: TransposedOperand, place: int) -> Specialization:
    """The program with the copy made in front of the statement at this place, and read by the ``readers``."""
    program, layout = specialization.program, specialization.layouts[made.tensor]
    tensor = program.tensor(made.tensor)
    origin = DerivedOrigin(f"{made.tensor} in another order", tensor.origin)
    shape = tuple(layout.shape[dimension] for dimension in made.order)
    extents = tuple(tensor.shape[dimension] for dimension in made.order)
    copy = Tensor(made.copy, layout.type, extents, Role.TEMPORARY, origin)
    statements = [_reading(own, made) if own.name in made.readers else own for own in program.statements]
    statements.insert(place, _copying(tensor, layout, made, program, origin))
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
    tensor: Tensor, layout: Layout, made: TransposedOperand, program: Program, origin: DerivedOrigin
) -> Statement:
    taken = {*program.sizes, *(own.name for own in program.tensors)}
    iterators = list[IterationVariable]()
    for extent in layout.shape:
        name = fresh_name(f"i{len(iterators)}", taken | {own.name for own in iterators})
        iterators.append(IterationVariable(name, Literal(0, INDEX_TYPE), Literal(extent, INDEX_TYPE)))
    own = tuple(IteratorReference(iterator.name) for iterator in iterators)
    return Statement(
        name=fresh_name(f"{made.readers[0]}_transpose", {statement.name for statement in program.statements}),
        iterators=tuple(iterators[dimension] for dimension in made.order),
        conditions=(),
        target=made.copy,
        subscripts=tuple(own[dimension] for dimension in made.order),
        reduction=None,
        initialize=False,
        value=Read(made.tensor, own, tensor.type),
        required=(),
        origin=origin,
    )


def _reading(statement: Statement, made: TransposedOperand) -> Statement:
    def change(expression: Expression) -> Expression:
        found = rebuild(expression, change)
        if isinstance(found, Read) and found.tensor == made.tensor:
            return replace(
                found, tensor=made.copy, subscripts=tuple(found.subscripts[dimension] for dimension in made.order)
            )
        return found

    return replace(statement, value=change(statement.value))


def _place(program: Program, made: TransposedOperand) -> int | None:
    """In front of the first reader, where a copy shares no innermost loop with what writes the tensor.

    None if that comes later, or goes on there.
    """
    first = next(n for n, statement in enumerate(program.statements) if statement.name in made.readers)
    written = any(statement.target == made.tensor for statement in program.statements[first:])
    return None if written else first


def _across(statement: Statement, layouts: Mapping[str, Layout]) -> Iterator[tuple[Read, tuple[int, ...]]]:
    """The operands of a product that steps read across memory, with the order in which they would read along it."""
    product = _Product.of(statement, layouts)
    if product is None:
        return
    for read in reads_in(statement.value):
        layout = layouts[read.tensor]
        order = product.order(read, layout) if _is_static(layout) and read.tensor != statement.target else None
        if order is not None and _reads_alike(statement, read):
            yield read, order


def _reads_alike(statement: Statement, read: Read) -> bool:
    """Whether all reads of the tensor have these subscripts, and none is in a subscript or a condition."""
    others = (*statement.subscripts, *statement.conditions, *statement.required)
    inside = any(own.tensor == read.tensor for part in others for own in reads_in(part))
    return not inside and all(own == read for own in reads_in(statement.value) if own.tensor == read.tensor)


def _is_static(layout: Layout) -> bool:
    return not layout.extents and not layout.packed and len(layout.shape) > 1


@frozen
class _Product:
    """A product of matrices: the iterators along ``lanes``, over ``rows`` of results, and over ``steps``."""

    lanes: str
    rows: frozenset[str]
    steps: tuple[str, ...]
    lengths: Mapping[str, int]

    @classmethod
    def of(cls, statement: Statement, layouts: Mapping[str, Layout]) -> _Product | None:
        """None where a statement is none with long loops."""
        if statement.reduction is None or statement.blocks or is_scatter(statement) or ranges_in(statement.value):
            return None
        lengths = {own.name: length for own in statement.iterators if (length := length_of(own)) is not None}
        target = layouts[statement.target]
        written = [own.name for own in written_iterators(statement)]
        steps = tuple(own.name for own in statement.iterators if own.name not in written)
        along = [name for name in written if stride(statement.subscripts, target, name) == 1]
        reads = [read.subscripts for read in reads_in(statement.value)]
        reduced = [name for name in steps if lengths.get(name) != 1]
        pairs = [pair for pair in product_loops(reads, written, reduced) if along and along[0] in pair]
        if not pairs or len(lengths) < len(statement.iterators) or lengths[along[0]] < _LEAST_LANES:
            return None
        if math.prod(lengths[name] for name in steps) < _LEAST_STEPS:
            return None
        rows = frozenset(name for pair in pairs for name in pair if name != along[0])
        return cls(along[0], rows, steps, lengths)

    def order(self, read: Read, layout: Layout) -> tuple[int, ...] | None:
        """The dimensions of an operand with the one that steps go along last; None where there is no such one."""
        used = iterators_in(read.subscripts)
        strides = {name: stride(read.subscripts, layout, name) for name in used}
        rows = [name for name in self.rows & used if strides[name] == 1 and self.lengths[name] >= _LEAST_ROWS]
        steps = [name for name in self.steps if name in used]
        far = [name for name in steps if (own := strides[name]) is not None and abs(own) >= _FAR]
        if self.lanes in used or not rows or not steps or far != steps:
            return None
        step = max(steps, key=lambda name: self.lengths[name])
        dimensions = [n for n, own in enumerate(read.subscripts) if own == IteratorReference(step)]
        if len(dimensions) != 1 or self.lengths[step] < _LEAST_STEPS:
            return None
        if self.lengths[self.lanes] <= _ONE_TILE and math.prod(self.lengths[name] for name in steps) <= _FEW_STEPS:
            return None
        return (*_without(range(len(layout.shape)), dimensions[0]), dimensions[0])


def _without(items: Sequence[int], item: int) -> tuple[int, ...]:
    return tuple(own for own in items if own != item)
