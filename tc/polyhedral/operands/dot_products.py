"""Sums of products, several steps at a time: as instructions for dot products of words take them.

``C(m,n) +=! int32(A(m,k)) * int32(B(k,n))`` becomes ``C(m,n) +=! byte_dot(A'(m,q), B'(q,n))``, where a word of ``A'``
and ``B'`` holds the bytes of the steps ``4*q`` to ``4*q+3``, with zeros behind the last step.  The rest of the compiler
sees a product of words.  ``C(m,n) +=! A(m,k) * B(k,n)`` of bfloat16 becomes ``C(m,n) +=! pair_dot(A'(m,q), B'(q,n))``
of words of two in the same way: its products are exact in float32, in which they are added up (``vdpbf16ps``).  Without
an instruction for bytes, they become words of two integers of 16 bits, ``short_dot`` (``pmaddwd``).

``vpdpbusd`` of x86 and ``usdot`` of aarch64 multiply unsigned bytes by signed ones: where both are signed, the
highest bit of one is flipped, which adds 128 to it; what that adds to the sum is 128 times the sum of the other
operand.  All of that is exact modulo 2^32 (Intel 64 and IA-32 Architectures Software Developer's Manual, VPDPBUSD,
PMADDWD and VDPBF16PS).

This proposes; ``tc.polyhedral.proof.rewrites.verify_dots`` says whether sums have the terms of the program.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tc.base.dots import Dot
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
from tc.language.program.terms import bfloat16_factors
from tc.language.program.written_elements import is_scatter
from tc.polyhedral.ir.dotted import FLIPPED, ONES, Dots, Word, word_of
from tc.polyhedral.schedule.scatter import length_of

# Fewer steps, or fewer uses of each element, are not worth copies.
_LEAST_STEPS: Final = 16
_LEAST_USES: Final = 8


def dot_products(specialization: Specialization, dots: Sequence[Dot]) -> Iterator[tuple[Specialization, Dots]]:
    """The program with one more sum of products by words, as often as there is one that gains by it.

    ``dots``: those that the processor has instructions for.
    """
    aliased = {name for pair in specialization.signature.aliases for name in pair}
    for statement in specialization.program.statements:
        found = next(filter(None, (_Found.of(statement, dot, specialization) for dot in dots)), None)
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


def dot_operands(statement: Statement, dot: Dot, target: ScalarType) -> tuple[Read, Read] | None:
    """The operands of a sum of products that a dot product may take, of different tensors; ``target``: its type."""
    if statement.reduction is not Reduction.ADD:
        return None
    match dot, statement.value:
        case (
            Dot.BYTES | Dot.SHORTS,
            Binary(
                BinaryOperator.MULTIPLY, Cast(Read() as left, ScalarType.INT32), Cast(Read() as right, ScalarType.INT32)
            ),
        ) if {left.type, right.type} <= set(word_of(dot).elements) and target is ScalarType.INT32:
            found = left, right
        case Dot.PAIRS, value if target in (ScalarType.FLOAT32, ScalarType.BFLOAT16):
            factors = bfloat16_factors(value)
            if factors is None:
                return None
            found = factors
        case _:
            return None
    return None if found[0].tensor == found[1].tensor else found


@frozen
class _Found:
    """A sum of products of two reads; ``step``: the iterator of the sum that both move along one dimension."""

    statement: Statement
    dot: Dot
    left: Read
    right: Read
    step: IterationVariable

    @classmethod
    def of(cls, statement: Statement, dot: Dot, specialization: Specialization) -> _Found | None:
        """None for other statements, and for sums that are short or use their operands only a few times."""
        plain = not (statement.blocks or statement.conditions or statement.counts or is_scatter(statement))
        operands = dot_operands(statement, dot, specialization.layouts[statement.target].type)
        if not plain or operands is None:
            return None
        left, right = operands
        lengths = {own.name: length_of(own) for own in statement.iterators}
        static = all(
            not own.extents and not own.packed
            for own in (specialization.layouts[read.tensor] for read in (left, right))
        )
        if None in lengths.values() or not static:
            return None
        for own in statement.iterators:
            steps = lengths[own.name] or 0
            whole = all(_is_whole(read, own.name, steps, specialization) for read in (left, right))
            if whole and own.name not in iterators_in(statement.subscripts) and steps >= _LEAST_STEPS:
                uses = min(_uses(read, lengths) for read in (left, right))
                return cls(statement, dot, left, right, own) if uses >= _LEAST_USES else None
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

    def made(self) -> tuple[Specialization, Dots]:
        statement, program = self.found.statement, self.specialization.program
        left, right, step = self.found.left, self.found.right, self.found.step
        names = {own.name for own in program.tensors}
        flipped = self._flipped()
        copied = [read for read in (left, right) if flipped is not None or not self._lies_in_words(read)]
        copies = {read.tensor: fresh_name(f"{read.tensor}_words", names) for read in copied}
        words = fresh_name(f"{step.name}_words", {own.name for own in statement.iterators} | names | set(program.sizes))
        sums = None if flipped is None else fresh_name(f"{statement.target}_sums", names)
        made = Dots(statement.name, self.found.dot, step.name, words, tuple(copies.items()), flipped, sums)
        # Of unsigned bytes come first, where one of both is signed.
        operands = sorted((left, right), key=lambda read: self._is_signed(read, made))
        parts = [self._copy(read, made) for read in operands if read.tensor in copies]
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
        if self.found.dot is not Dot.BYTES or left.type is not right.type:
            return None
        return left.tensor if left.type is ScalarType.INT8 else right.tensor

    def _lies_in_words(self, read: Read) -> bool:
        """Whether whole words lie side by side in memory, and are read one by one: lanes have another element each."""
        statement, layout = self.found.statement, self.specialization.layouts[read.tensor]
        along = _dimension(read, self.found.step.name)
        steps = word_of(self.found.dot).steps
        if along is None or layout.strides[along] != 1 or layout.shape[along] % steps:
            return False
        if read.type.itemsize * steps != ScalarType.INT32.itemsize:
            return False
        target = self.specialization.layouts[statement.target]
        lanes = iterators_in(own for own, step in zip(statement.subscripts, target.strides, strict=True) if step == 1)
        return not set(lanes) & set(iterators_in(read.subscripts))

    def _is_signed(self, read: Read, made: Dots) -> bool:
        return (read.type is ScalarType.INT8) != (read.tensor == made.flipped)

    def _copy(self, read: Read, made: Dots) -> _Part:
        """The words of an operand."""
        layout, own = self.specialization.layouts[read.tensor], self.specialization.program.tensor(read.tensor)
        along, word = _dimension(read, made.iterator), made.word
        assert along is not None
        steps = layout.shape[along]
        shape = tuple(-(-steps // word.steps) if n == along else extent for n, extent in enumerate(layout.shape))
        iterators = self._iterators(shape)
        places = [IteratorReference(iterator.name) for iterator in iterators]
        origin = DerivedOrigin(f"words of {word.steps} elements of {read.tensor}", own.origin)

        value = self._word(replace(read, subscripts=tuple(places)), along, made)
        name = dict(made.copies)[read.tensor]
        return self._part(name, shape, iterators, tuple(places), value, origin, None)

    def _word(self, read: Read, along: int, made: Dots) -> Expression:
        """The word of elements of an operand that its subscripts choose, of which one counts words."""
        word, steps = made.word, self.specialization.layouts[read.tensor].shape[along]

        def element(number: int) -> Expression:
            place = _step(word, read.subscripts[along], number)
            own = tuple(place if n == along else subscript for n, subscript in enumerate(read.subscripts))
            value = Cast(replace(read, subscripts=own), word.term)
            if steps % word.steps == 0:
                return value
            bound = Binary(BinaryOperator.LESS, place, Literal(steps, INDEX_TYPE), ScalarType.BOOL)
            return Select(bound, value, _zero(read, made), word.term)

        function = word.made_flipped if read.tensor == made.flipped else word.made
        return Call(function, tuple(map(element, range(word.steps))), ScalarType.INT32)

    def _sum(self, read: Read, made: Dots) -> _Part:
        """The sums of the bytes of the operand whose bits are as they were, by its words."""
        assert made.sums is not None
        layout, own = self.specialization.layouts[read.tensor], self.specialization.program.tensor(read.tensor)
        along = _dimension(read, made.iterator)
        steps = made.word.steps
        shape = tuple(-(-extent // steps) if n == along else extent for n, extent in enumerate(layout.shape))
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

    def _dots(self, operands: list[Read], made: Dots) -> Iterator[Statement]:
        """The sum itself, and what takes from it what flipped bits add."""
        statement, copies, step = self.found.statement, dict(made.copies), self.found.step
        count = -(-(length_of(step) or 0) // made.word.steps)
        words = IterationVariable(made.words, Literal(0, INDEX_TYPE), Literal(count, INDEX_TYPE))
        values: Mapping[str, Expression] = {made.iterator: IteratorReference(made.words)}

        def word(read: Read) -> Expression:
            subscripts = tuple(_renamed(own, values) for own in read.subscripts)
            if read.tensor in copies:
                return Read(copies[read.tensor], subscripts, ScalarType.INT32)
            along = _dimension(read, step.name)
            assert along is not None
            return self._word(replace(read, subscripts=subscripts), along, made)

        target = self.specialization.layouts[statement.target].type
        dot = Call(made.word.dot, tuple(map(word, operands)), made.word.term)
        yield replace(
            statement,
            iterators=tuple(words if own.name == made.iterator else own for own in statement.iterators),
            value=Cast(dot, target) if target.is_half else dot,
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


def _zero(read: Read, made: Dots) -> Literal:
    """The element that becomes 0: flipped bits are those of the byte that is copied."""
    if read.tensor != made.flipped:
        return Literal(0.0 if made.word.term.is_floating else 0, made.word.term)
    return Literal(-FLIPPED if read.type is ScalarType.INT8 else FLIPPED, ScalarType.INT32)


def _step(word: Word, words: Expression, number: int) -> Expression:
    """The step of one element of a word, in terms of what counts words."""
    first = Binary(BinaryOperator.MULTIPLY, Literal(word.steps, INDEX_TYPE), words, INDEX_TYPE)
    return first if number == 0 else Binary(BinaryOperator.ADD, first, Literal(number, INDEX_TYPE), INDEX_TYPE)
