"""Scatters that several threads share, without changing what their elements become.

``T(I(b), d) += v(b, d)`` may write any row, so its instances run one after the other.  Two rewritings give threads
work, as statements that every later pass and proof treats like any other:

*owners*: ``T(I(b), d) += v(b, d)`` for all owners ``o``, each of whom writes only the rows that are his, and looks at
all of ``I``.  An element has one owner, so its terms come in the same order, however many owners there are.
*parts*: ``P(p, I(b), d) +=! v(b, d)`` for the ``b`` of each part, and ``T(e, d) += P(p, e, d)``.  That is for few
elements and many terms, of which owners would have to look at too many.

Where machines have *atomic* updates, and the result is the same in any order, the statement is marked instead: its
instances may run at the same time.  Updates of one element wait for each other, so where elements are few, they are
those of parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name, map_statement
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    DerivedOrigin,
    Expression,
    IterationVariable,
    IteratorReference,
    Literal,
    Owned,
    Program,
    Read,
    Role,
    Statement,
    Tensor,
    in_terms_of,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import float32_term
from tc.language.program.written_elements import is_scatter, over_elements, scatters, written_iterators
from tc.polyhedral.ir.splits import Share, Shared


def share_scatters(
    specialization: Specialization, shares: Sequence[Share]
) -> tuple[Specialization, tuple[Shared, ...]]:
    """The program with these scatters shared, and what was done to each."""
    sharing = _Sharing(specialization)
    by_name = {share.statement: share for share in shares}
    statements: list[Statement] = []
    for statement in specialization.program.statements:
        share = by_name.get(statement.name)
        if share is None:
            statements.append(statement)
        elif share.parts > 1:
            statements += sharing.in_parts(statement, share)
        elif share.atomic:
            statements.append(sharing.atomic(statement))
        else:
            statements.append(sharing.owned(statement, share))
    program = replace(specialization.program, tensors=tuple(sharing.tensors), statements=tuple(statements))
    return replace(specialization, program=program, layouts=sharing.layouts), tuple(sharing.done)


@frozen
class Extents:
    """Of a scatter: ``elements`` that data choose among, ``terms`` for each row of ``width`` others.

    ``batches``: how many of these others have places of their own, as ``n`` in ``T(n, I(n, b))``.
    """

    elements: int
    terms: int
    width: int
    batches: int


def extents_of(statement: Statement, specialization: Specialization) -> Extents | None:
    """The sizes of a scatter; None where a range depends on other iterators, or on open sizes."""
    lengths = {i.name: length_of(i) for i in statement.iterators}
    if None in lengths.values():
        return None
    known = {name: length for name, length in lengths.items() if length is not None}
    shape = specialization.layouts[statement.target].shape
    chosen = math.prod(e for e, subscript in zip(shape, statement.subscripts, strict=True) if scatters(subscript))
    kept = {iterator.name for iterator in written_iterators(statement)}
    width = math.prod(length for name, length in known.items() if name in kept)
    terms = math.prod(length for name, length in known.items() if name not in kept)
    placed = iterators_in([subscript for subscript in statement.subscripts if scatters(subscript)])
    batches = math.prod(length for name, length in known.items() if name in kept & placed)
    return Extents(chosen, terms, width, batches)


def length_of(iterator: IterationVariable) -> int | None:
    """How many values an iterator has; None where that depends on something."""
    match iterator.begin, iterator.end:
        case Literal(begin), Literal(end):
            return max(0, int(end) - int(begin))
        case _:
            return None


def dealt(statement: Statement) -> IterationVariable | None:
    """The longest loop over terms that parts may share; None where there is none.

    It begins at 0, and neither a range nor a condition has it.
    """
    if statement.blocks or any(read.tensor == statement.target for read in reads_in(statement.value)):
        return None
    used = iterators_in([*(b for i in statement.iterators for b in (i.begin, i.end)), *statement.conditions])
    kept = {iterator.name for iterator in written_iterators(statement)}
    found = [
        iterator
        for iterator in statement.iterators
        if iterator.name not in used | kept and iterator.begin == Literal(0, INDEX_TYPE) and length_of(iterator)
    ]
    return max(found, key=lambda iterator: length_of(iterator) or 0, default=None)


class _Sharing:
    """Collects the tensors of partial results."""

    def __init__(self, specialization: Specialization) -> None:
        self.program: Program = specialization.program
        self.tensors = list(specialization.program.tensors)
        self.layouts = dict(specialization.layouts)
        self.done: list[Shared] = []

    def atomic(self, statement: Statement) -> Statement:
        """The statement, whose instances may update an element at the same time."""
        self.done.append(Shared(statement.name, {}, atomic=True))
        return replace(statement, atomic=True)

    def owned(self, statement: Statement, share: Share) -> Statement:
        """The statement with an outermost loop over owners of ranges of the longest dimension that data choose in."""
        shape = self.layouts[statement.target].shape
        dimension = max(
            (d for d, subscript in enumerate(statement.subscripts) if scatters(subscript)), key=lambda d: shape[d]
        )
        rows = -(-max(1, shape[dimension]) // share.owners)
        name = fresh_name("owner", {iterator.name for iterator in statement.iterators})
        owner = IterationVariable(name, _literal(0), _literal(max(1, -(-shape[dimension] // rows))))
        begin = _binary(BinaryOperator.MULTIPLY, IteratorReference(name), _literal(rows))
        owned = Owned(dimension, begin, _binary(BinaryOperator.ADD, begin, _literal(rows)))
        self.done.append(Shared(statement.name, {}))
        outer = len(statement.blocks)
        iterators = (*statement.iterators[:outer], owner, *statement.iterators[outer:])
        return replace(statement, iterators=iterators, owned=owned)

    def in_parts(self, statement: Statement, share: Share) -> Iterator[Statement]:
        """The statement into partial results, and the one that combines them."""
        chosen = dealt(statement)
        assert chosen is not None, "the plan asks for what can be had"
        length = length_of(chosen) or 0
        rounds = -(-length // share.parts)
        taken = {iterator.name for iterator in statement.iterators}
        part, step = fresh_name(f"{chosen.name}_part", taken), fresh_name(f"{chosen.name}_step", taken)
        # Neighbouring threads update other parts, and one thread reads a run.
        slow, fast, run = (step, part, share.parts) if share.atomic else (part, step, rounds)
        number = _binary(
            BinaryOperator.ADD,
            _binary(BinaryOperator.MULTIPLY, _literal(run), IteratorReference(slow)),
            IteratorReference(fast),
        )
        values = {chosen.name: number}
        self.done.append(Shared(statement.name, values, share.atomic))
        split = map_statement(statement, lambda expression: in_terms_of(expression, values))
        conditions = split.conditions
        if length != rounds * share.parts:
            inside = Binary(BinaryOperator.LESS, number, _literal(length), ScalarType.BOOL)
            conditions = (*conditions, inside)
        counted = IterationVariable(part, _literal(0), _literal(share.parts))
        steps = IterationVariable(step, _literal(0), _literal(rounds))
        place = next(n for n, old in enumerate(split.iterators) if old.name == chosen.name)
        before, after = split.iterators[:place], split.iterators[place + 1 :]
        iterators = (*before, steps, counted, *after) if share.atomic else (counted, *before, steps, *after)
        kept = tuple(IteratorReference(iterator.name) for iterator in written_iterators(statement))
        whole = over_elements(statement, self.program.tensor(statement.target).shape)
        partials = self.partials(statement, share.parts)
        origin = DerivedOrigin("a scatter in parts", statement.origin)
        yield replace(
            split,
            iterators=iterators,
            conditions=conditions,
            target=partials.name,
            subscripts=(IteratorReference(part), *filter(scatters, split.subscripts), *kept),
            initialize=True,
            value=float32_term(split.value) if split.value.type.is_half else split.value,
            atomic=share.atomic,
            origin=origin,
        )
        elements = (own for own, old in zip(whole.subscripts, statement.subscripts, strict=True) if scatters(old))
        yield replace(
            whole,
            name=fresh_name(f"{statement.name}_total", {own.name for own in self.program.statements}),
            iterators=(*whole.iterators, counted),
            value=Read(partials.name, (IteratorReference(part), *elements, *kept), partials.type),
            required=(),
            origin=origin,
        )

    def partials(self, statement: Statement, parts: int) -> Tensor:
        """A new temporary: for each part, for all elements that data choose and each written iterator."""
        shape = self.layouts[statement.target].shape
        chosen = (e for e, subscript in zip(shape, statement.subscripts, strict=True) if scatters(subscript))
        ends = (int(i.end.value) for i in written_iterators(statement) if isinstance(i.end, Literal))
        extents = (parts, *chosen, *(max(0, end) for end in ends))
        type = computation_type(self.layouts[statement.target].type)
        name = fresh_name(f"{statement.target}_parts", {tensor.name for tensor in self.tensors})
        origin = DerivedOrigin("partial results", statement.origin)
        tensor = Tensor(name, type, tuple(map(_literal, extents)), Role.TEMPORARY, origin)
        self.tensors.append(tensor)
        self.layouts[name] = Layout(type, extents, contiguous_strides(extents))
        return tensor


def scattering(specialization: Specialization) -> Iterator[Statement]:
    """The scatters of a program."""
    return (statement for statement in specialization.program.statements if is_scatter(statement))


def _literal(value: int) -> Literal:
    return Literal(value, INDEX_TYPE)


def _binary(operator: BinaryOperator, left: Expression, right: Expression) -> Expression:
    return Binary(operator, left, right, INDEX_TYPE)
