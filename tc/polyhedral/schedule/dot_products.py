"""Sums of products of bytes, four steps at a time: as instructions for dot products of bytes take them.

``C(m,n) +=! int32(A(m,k)) * int32(B(k,n))`` becomes ``C(m,n) +=! byte_dot(A'(m,q), B'(q,n))``, where a word of ``A'``
and ``B'`` holds the bytes of the steps ``4*q`` to ``4*q+3``, with zeros behind the last step.  The rest of the compiler
sees a product of words.  x86's ``vpdpbusd`` multiplies unsigned bytes by signed ones: where both are signed, the
highest bit of one is flipped, which adds 128 to it; what that adds to the sum is 128 times the sum of the other
operand.  All of it is exact modulo 2^32 (Intel 64 and IA-32 Architectures Software Developer's Manual, VPDPBUSD).

This proposes; ``tc.polyhedral.proof.rewrites.verify_dots`` says whether sums have the terms of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Select,
    Statement,
    Tensor,
    iterators_in,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.dotted import FLIPPED, ONES, WORD, ByteDots
from tc.polyhedral.schedule.scatter import length_of

_BYTES: Final = (ScalarType.INT8, ScalarType.UINT8)
# Fewer steps, or fewer uses of each byte, are not worth copies.
_LEAST_STEPS: Final = 16
_LEAST_USES: Final = 8


def dot_products(specialization: Specialization) -> Iterator[tuple[Specialization, ByteDots]]:
    """The program with one more sum of products of bytes by words, as often as there is one that gains by it."""
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    for statement in specialization.program.statements:
        found = _Found.of(statement, specialization)
        if found is None or {found.left.tensor, found.right.tensor} & aliased:
            continue
        written = (own.target for own in _from(specialization.program, statement.name))
        if not {found.left.tensor, found.right.tensor} & set(written):
            specialization, made = _Dots(specialization, found).made()
            yield specialization, made


def _from(program: Program, name: str) -> Iterator[Statement]:
    """The statement of that name and those behind it."""
    place = next(n for n, own in enumerate(program.statements) if own.name == name)
    yield from program.statements[place:]


@frozen
class _Found:
    """A sum of products of two reads of bytes; ``step``: the iterator of the sum that both move along one dimension."""

    statement: Statement
    left: Read
    right: Read
    step: IterationVariable

    @classmethod
    def of(cls, statement: Statement, specialization: Specialization) -> _Found | None:
        """None for other statements, and for sums that are short or use their operands only a few times."""
        plain = not (statement.blocks or statement.conditions or statement.counts or is_scatter(statement))
        match statement.value:
            case Binary(
                BinaryOperator.MULTIPLY, Cast(Read() as left, ScalarType.INT32), Cast(Read() as right, ScalarType.INT32)
            ) if statement.reduction is Reduction.ADD and plain and left.tensor != right.tensor:
                pass
            case _:
                return None
        lengths = {own.name: length_of(own) for own in statement.iterators}
        static = all(
            not own.extents and not own.packed
            for own in (specialization.layouts[read.tensor] for read in (left, right))
        )
        if None in lengths.values() or not static or not {left.type, right.type} <= set(_BYTES):
            return None
        for own in statement.iterators:
            steps = lengths[own.name] or 0
            whole = all(_is_whole(read, own.name, steps, specialization) for read in (left, right))
            if whole and own.name not in iterators_in(statement.subscripts) and steps >= _LEAST_STEPS:
                uses = min(_uses(read, lengths) for read in (left, right))
                return cls(statement, left, right, own) if uses >= _LEAST_USES else None
        return None


def _uses(read: Read, lengths: Mapping[str, int | None]) -> int:
    """How many instances read each element."""
    moving = iterators_in(read.subscripts)
    return math.prod(length or 0 for name, length in lengths.items() if name not in moving)


def _is_whole(read: Read, iterator: str, steps: int, specialization: Specialization) -> bool:
    """Whether an iterator moves along one dimension of a read alone, from its first element to its last."""
    along = _dimension(read, iterator)
    return along is not None and specialization.layouts[read.tensor].shape[along] == steps


def _dimension(read: Read, iterator: str) -> int | None:
    """The only dimension of a read that an iterator moves along, with it as its subscript; None if there is none."""
    places = [n for n, own in enumerate(read.subscripts) if iterator in iterators_in((own,))]
    return places[0] if len(places) == 1 and read.subscripts[places[0]] == IteratorReference(iterator) else None


@frozen
class _Dots:
    specialization: Specialization
    found: _Found

    def made(self) -> tuple[Specialization, ByteDots]:
        statement, program = self.found.statement, self.specialization.program
        left, right, step = self.found.left, self.found.right, self.found.step
        names = {own.name for own in program.tensors}
        copies = {read.tensor: fresh_name(f"{read.tensor}_words", names) for read in (left, right)}
        words = fresh_name(f"{step.name}_words", {own.name for own in statement.iterators} | names | set(program.sizes))
        flipped = self._flipped()
        sums = None if flipped is None else fresh_name(f"{statement.target}_sums", names)
        made = ByteDots(statement.name, step.name, words, tuple(copies.items()), flipped, sums)
        # Of unsigned bytes come first, where one of both is signed.
        operands = sorted((left, right), key=lambda read: self._is_signed(read, made))
        parts = [self._copy(read, made) for read in operands]
        if flipped is not None:
            parts.append(self._sum(left if right.tensor == flipped else right, made))
        statements = list[Statement]()
        for own in program.statements:
            if own.name == statement.name:
                statements += [part.statement for part in parts]
                statements += self._dots(operands, made)
            else:
                statements.append(own)
        tensors = tuple(part.tensor for part in parts)
        layouts = {part.tensor.name: part.layout for part in parts}
        changed = replace(program, tensors=(*program.tensors, *tensors), statements=tuple(statements))
        return replace(self.specialization, program=changed, layouts={**self.specialization.layouts, **layouts}), made

    def _flipped(self) -> str | None:
        """The operand of whose bytes the highest bit is flipped: the first of two signed ones, the second of others."""
        left, right = self.found.left, self.found.right
        if left.type is not right.type:
            return None
        return left.tensor if left.type is ScalarType.INT8 else right.tensor

    def _is_signed(self, read: Read, made: ByteDots) -> bool:
        return (read.type is ScalarType.INT8) != (read.tensor == made.flipped)

    def _copy(self, read: Read, made: ByteDots) -> _Part:
        """The words of an operand."""
        layout, own = self.specialization.layouts[read.tensor], self.specialization.program.tensor(read.tensor)
        along = _dimension(read, made.iterator)
        assert along is not None
        steps = layout.shape[along]
        shape = tuple(-(-steps // WORD) if n == along else extent for n, extent in enumerate(layout.shape))
        iterators = self._iterators(shape)
        places = [IteratorReference(iterator.name) for iterator in iterators]
        origin = DerivedOrigin(f"words of four bytes of {read.tensor}", own.origin)

        def byte(number: int) -> Expression:
            place = _plus(_times(WORD, places[along]), number)
            inside = replace(read, subscripts=tuple(place if n == along else here for n, here in enumerate(places)))
            value = Cast(inside, ScalarType.INT32)
            if steps % WORD == 0:
                return value
            bound = Binary(BinaryOperator.LESS, place, Literal(steps, INDEX_TYPE), ScalarType.BOOL)
            return Select(bound, value, _zero(read, made), ScalarType.INT32)

        function = "byte_word_flipped" if read.tensor == made.flipped else "byte_word"
        value = Call(function, tuple(map(byte, range(WORD))), ScalarType.INT32)
        name = dict(made.copies)[read.tensor]
        return self._part(name, shape, iterators, tuple(places), value, origin, None)

    def _sum(self, read: Read, made: ByteDots) -> _Part:
        """The sums of the bytes of the operand whose bits are as they were, by its words."""
        assert made.sums is not None
        layout, own = self.specialization.layouts[read.tensor], self.specialization.program.tensor(read.tensor)
        along = _dimension(read, made.iterator)
        shape = tuple(-(-extent // WORD) if n == along else extent for n, extent in enumerate(layout.shape))
        iterators = self._iterators(shape)
        places = tuple(IteratorReference(iterator.name) for iterator in iterators)
        words = Read(dict(made.copies)[read.tensor], places, ScalarType.INT32)
        ones = Literal(ONES, ScalarType.INT32)
        operands = (ones, words) if read.type is ScalarType.INT8 else (words, ones)
        kept = tuple(place for n, place in enumerate(places) if n != along)
        origin = DerivedOrigin(f"sums of bytes of {read.tensor}", own.origin)
        value = Call("byte_dot", operands, ScalarType.INT32)
        return self._part(
            made.sums,
            tuple(e for n, e in enumerate(shape) if n != along),
            iterators,
            kept,
            value,
            origin,
            Reduction.ADD,
        )

    def _iterators(self, shape: tuple[int, ...]) -> tuple[IterationVariable, ...]:
        program = self.specialization.program
        taken = {*program.sizes, *(own.name for own in program.tensors)}
        found = list[IterationVariable]()
        for extent in shape:
            name = fresh_name(f"i{len(found)}", taken | {own.name for own in found})
            found.append(IterationVariable(name, Literal(0, INDEX_TYPE), Literal(extent, INDEX_TYPE)))
        return tuple(found)

    def _part(
        self,
        name: str,
        shape: tuple[int, ...],
        iterators: tuple[IterationVariable, ...],
        subscripts: tuple[IteratorReference, ...],
        value: Expression,
        origin: DerivedOrigin,
        reduction: Reduction | None,
    ) -> _Part:
        tensor = Tensor(
            name, ScalarType.INT32, tuple(Literal(extent, INDEX_TYPE) for extent in shape), Role.TEMPORARY, origin
        )
        names = {own.name for own in self.specialization.program.statements}
        own = fresh_name(f"{self.found.statement.name}_{name}", names)
        statement = Statement(own, iterators, (), name, subscripts, reduction, reduction is not None, value, (), origin)
        return _Part(tensor, Layout(ScalarType.INT32, shape, contiguous_strides(shape)), statement)

    def _dots(self, operands: list[Read], made: ByteDots) -> Iterator[Statement]:
        """The sum itself, and what takes from it what flipped bits add."""
        statement, copies, step = self.found.statement, dict(made.copies), self.found.step
        count = -(-(length_of(step) or 0) // WORD)
        words = IterationVariable(made.words, Literal(0, INDEX_TYPE), Literal(count, INDEX_TYPE))
        values: Mapping[str, Expression] = {made.iterator: IteratorReference(made.words)}
        reads = tuple(
            Read(copies[read.tensor], tuple(_renamed(own, values) for own in read.subscripts), ScalarType.INT32)
            for read in operands
        )
        yield replace(
            statement,
            iterators=tuple(words if own.name == made.iterator else own for own in statement.iterators),
            value=Call("byte_dot", reads, ScalarType.INT32),
        )
        if made.sums is None:
            return
        other = next(read for read in operands if read.tensor != made.flipped)
        kept = tuple(own for own in other.subscripts if own != IteratorReference(made.iterator))
        factor = Literal(-FLIPPED if other.type is ScalarType.INT8 else FLIPPED, ScalarType.INT32)
        yield replace(
            statement,
            name=fresh_name(f"{statement.name}_unflip", {own.name for own in self.specialization.program.statements}),
            iterators=tuple(own for own in statement.iterators if own.name != made.iterator),
            value=Binary(BinaryOperator.MULTIPLY, Read(made.sums, kept, ScalarType.INT32), factor, ScalarType.INT32),
            initialize=False,
            required=(),
        )


@frozen
class _Part:
    """A tensor, and the statement that writes it."""

    tensor: Tensor
    layout: Layout
    statement: Statement


def _renamed(subscript: Expression, values: Mapping[str, Expression]) -> Expression:
    return values.get(subscript.name, subscript) if isinstance(subscript, IteratorReference) else subscript


def _zero(read: Read, made: ByteDots) -> Literal:
    """The byte that becomes 0: flipped bits are those of the byte that is copied."""
    if read.tensor != made.flipped:
        return Literal(0, ScalarType.INT32)
    return Literal(-FLIPPED if read.type is ScalarType.INT8 else FLIPPED, ScalarType.INT32)


def _times(factor: int, value: Expression) -> Expression:
    return Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), value, INDEX_TYPE)


def _plus(value: Expression, number: int) -> Expression:
    return value if number == 0 else Binary(BinaryOperator.ADD, value, Literal(number, INDEX_TYPE), INDEX_TYPE)
