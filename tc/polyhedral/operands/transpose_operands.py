"""Transposed copies of operands that a product reads across memory.

``C(m,n) +=! A(k,m) * B(k,n)`` has vectors along ``n``, and for each of a few rows ``m`` one element of ``A``.  From one
step to the next these lie a row of ``A`` apart: each is in another line, and often in another page, and rows whose
length is a power of two share a few sets of the caches.  The copy ``A'(m,k) = A(k,m)`` is made once, and read along
memory (packing of both operands: Goto and van de Geijn, *Anatomy of high-performance matrix multiplication*, ACM
Transactions on Mathematical Software 34, 2008, Section 4).

This proposes; ``tc.polyhedral.proof.rewrites.verify_copied_operands`` says whether each read finds what the program
reads.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    IteratorReference,
    Read,
    Statement,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Layout, Specialization
from tc.language.program.within import ranges_in
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.analysis.strides import stride
from tc.polyhedral.ir.relaid import CopiedOperand
from tc.polyhedral.operands.copied import is_static, place_of, reads_alike, with_copy
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


def transpose_operands(specialization: Specialization) -> Iterator[tuple[Specialization, CopiedOperand]]:
    """The program with one more operand transposed, as often as there is one that gains by it."""
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    found: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for statement in specialization.program.statements:
        for read, order in _across(statement, specialization.layouts):
            if read.tensor not in aliased and statement.name not in found.setdefault((read.tensor, order), []):
                found[read.tensor, order].append(statement.name)
    for (tensor, order), readers in found.items():
        names = {own.name for own in specialization.program.tensors}
        steps = (1,) * len(order)
        made = CopiedOperand(tensor, fresh_name(f"{tensor}_transposed", names), order, steps, tuple(readers))
        place = place_of(specialization.program, made)
        if place is not None:
            specialization = with_copy(specialization, made, place)
            yield specialization, made


def _across(statement: Statement, layouts: Mapping[str, Layout]) -> Iterator[tuple[Read, tuple[int, ...]]]:
    """The operands of a product that steps read across memory, with the order in which they would read along it."""
    product = _Product.of(statement, layouts)
    if product is None:
        return
    for read in reads_in(statement.value):
        layout = layouts[read.tensor]
        usable = is_static(layout) and len(layout.shape) > 1 and read.tensor != statement.target
        order = product.order(read, layout) if usable else None
        if order is not None and reads_alike(statement, read):
            yield read, order


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
