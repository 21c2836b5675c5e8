"""Softmax weights that are normalized behind the sum that they go to.

``p(n,m) = e(n,m) / s(n)`` and ``o(n,f) +=! p(n,m) * v(m,f)``, with ``e(n,m) = exp(x(n,m) - h(n))`` and the greatest
``h(n)`` of its row, divide each weight, and wait for the sum of a row before they use the first one.  As ``o(n,f)`` is
linear in the weights, ``u(n,f) +=! e(n,m) * v(m,f)`` and ``o(n,f) = u(n,f) / s(n)`` give the same but for rounding
(Dao and others, *FlashAttention*, NeurIPS 2022, Section 3.1): the sum of a row is complete when it is needed first,
so that both sums share one pass over the row.  The numerator is 1 at most, and so in the range of halves.

This proposes, where ``Numerics(rescaled_softmax=True)`` allows it; ``tc.polyhedral.proof.rewrites.verify_factored``
says whether the sums are those of the program.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name, rename
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    DerivedOrigin,
    Expression,
    IteratorReference,
    Literal,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    Tensor,
    iterators_in,
    reads_in,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import is_factor, widened_term
from tc.language.program.written_elements import written_iterators
from tc.polyhedral.ir.hoisted import FactoredOut
from tc.polyhedral.schedule.scatter import length_of


def factor_out_sums(specialization: Specialization) -> Iterator[tuple[Specialization, FactoredOut]]:
    """The program with one more softmax normalized behind a product, as often as there is one."""
    for name in [own.name for own in specialization.program.statements]:
        found = _found(specialization, name)
        if found is not None:
            specialization, made = _factored(specialization, found)
            yield specialization, made


@frozen
class _Found:
    """``product``: the sum; ``weights``: the statement that divides; ``read``: of the weights, in the product."""

    product: Statement
    weights: Statement
    read: Read


def _found(specialization: Specialization, name: str) -> _Found | None:
    program = specialization.program
    product = next(own for own in program.statements if own.name == name)
    if product.reduction is not Reduction.ADD or not product.initialize or not _is_plain(product):
        return None
    if not _has_terms(product):
        return None
    type, places = widened_term(product.value).type, product.subscripts
    if type not in (ScalarType.FLOAT32, ScalarType.FLOAT64) or len(set(places)) < len(places):
        return None
    writers = [own for own in program.statements if own.target == product.target]
    if writers[0] is not product or any(read.tensor == product.target for read in reads_in(product.value)):
        return None
    for read in reads_in(product.value):
        weights = _only_writer(program, read.tensor)
        if weights is None or not is_factor(product.value, read) or not _Softmax(program).makes(weights):
            continue
        used = [r for own in program.statements for r in _reads(own) if r.tensor == read.tensor]
        if used == [read] and _is_invariant(product, weights, read):
            return _Found(product, weights, read)
    return None


def _is_plain(statement: Statement) -> bool:
    """Whether it runs for all of a box of numbers from 0 on, and writes at its iterators."""
    special = statement.blocks or statement.conditions or statement.counts or statement.required or statement.atomic
    ranges = all(own.begin == Literal(0, INDEX_TYPE) and _is_fixed(own.end) for own in statement.iterators)
    return ranges and not special and statement.owned is None and _at_iterators(statement.subscripts)


def _is_fixed(end: Expression) -> bool:
    return not iterators_in((end,)) and not any(reads_in(end))


def _has_terms(product: Statement) -> bool:
    """Whether it is known that each element of a sum has one."""
    written = {own.name for own in written_iterators(product)}
    return all(length_of(own) for own in product.iterators if own.name not in written)


def _at_iterators(subscripts: tuple[Expression, ...]) -> bool:
    return all(isinstance(own, IteratorReference) for own in subscripts)


def _lengths(statement: Statement) -> dict[str, Expression]:
    return {own.name: own.end for own in statement.iterators}


def _reads(statement: Statement) -> Iterator[Read]:
    for part in (statement.value, *statement.subscripts, *statement.conditions, *statement.required):
        yield from reads_in(part)


def _only_writer(program: Program, tensor: str) -> Statement | None:
    """The statement that writes a temporary, once for each element."""
    if program.tensor(tensor).role is not Role.TEMPORARY:
        return None
    found = _writer(program, tensor)
    return None if found is None or len(set(found.subscripts)) < len(found.iterators) else found


def _writer(program: Program, tensor: str) -> Statement | None:
    """The only statement that writes a tensor, at different iterators."""
    writers = [own for own in program.statements if own.target == tensor]
    if len(writers) != 1 or not _is_plain(writers[0]):
        return None
    return writers[0] if len(set(writers[0].subscripts)) == len(writers[0].subscripts) else None


def _divided(value: Expression) -> tuple[Expression, Read] | None:
    """The numerator and the denominator of weights, which may be rounded to a half."""
    if isinstance(value, Cast) and value.type.is_half:
        value = value.operand
    match value:
        case Binary(BinaryOperator.DIVIDE, numerator, Read() as sum):
            return numerator, sum
        case _:
            return None


@frozen
class _Softmax:
    """What the statements of a program say of exponentials and of their sums."""

    program: Program

    def makes(self, weights: Statement) -> bool:
        """Whether a statement divides exponentials, of which the greatest of a row is 1, by their sum."""
        found = _divided(weights.value) if weights.reduction is None else None
        exponential = None if found is None else self.exponential(found[0], weights)
        if found is None or exponential is None or not self.is_greatest(exponential, weights):
            return False
        return self.is_sum(found[1], exponential, weights)

    def exponential(self, value: Expression, reader: Statement) -> Expression | None:
        """``exp(x - h)`` at the iterators of a reader, which may read it from a temporary; None for anything else."""
        while isinstance(value, Cast) and value.operand.type.is_floating:
            value = value.operand
        if isinstance(value, Read):
            made = _only_writer(self.program, value.tensor)
            names = _places(made.subscripts, value.subscripts) if made is not None else None
            if made is None or names is None or made.reduction is not None:
                return None
            if not self.is_settled(value.tensor, reader):
                return None
            if {names[own]: length for own, length in _lengths(made).items()} != _lengths(reader):
                return None
            value = rename(made.value, {}, names)
            while isinstance(value, Cast) and value.operand.type.is_floating:
                value = value.operand
        match value:
            case Call("exp", (Binary(BinaryOperator.SUBTRACT, _, Read()),), _):
                return value
            case _:
                return None

    def is_greatest(self, exponential: Expression, reader: Statement) -> bool:
        """Whether it subtracts the greatest number of its row, of those that it is made from."""
        assert isinstance(exponential, Call)
        difference = exponential.arguments[0]
        assert isinstance(difference, Binary)
        assert isinstance(difference.right, Read)
        greatest = _writer(self.program, difference.right.tensor)
        if greatest is None or greatest.reduction is not Reduction.MAXIMUM or not greatest.initialize:
            return False
        if not all(self.is_settled(read.tensor, greatest) for read in reads_in(difference.left)):
            return False
        return self.goes_over(greatest, difference.right, difference.left, reader)

    def is_sum(self, sum: Read, exponential: Expression, reader: Statement) -> bool:
        """Whether what is read is the sum of all exponentials of a row."""
        adding = _writer(self.program, sum.tensor)
        if adding is None or adding.reduction is not Reduction.ADD or not adding.initialize:
            return False
        if not self.is_settled(sum.tensor, reader):
            return False
        own = self.exponential(adding.value, adding)
        return own is not None and self.goes_over(replace(adding, value=own), sum, exponential, reader)

    def goes_over(self, reduction: Statement, read: Read, term: Expression, reader: Statement) -> bool:
        """Whether a reduction has this term for all iterations of the reader that read the same element."""
        names = _places(reduction.subscripts, read.subscripts)
        if names is None:
            return False
        others = [own.name for own in reduction.iterators if own.name not in names]
        free = [own.name for own in reader.iterators if own.name not in names.values()]
        if len(others) != len(free):
            return False
        names |= dict(zip(others, free, strict=True))
        same = {names[own]: length for own, length in _lengths(reduction).items()} == _lengths(reader)
        return same and rename(reduction.value, {}, names) == term

    def is_settled(self, tensor: str, reader: Statement) -> bool:
        """Whether nothing writes a tensor from a statement on."""
        late = self.program.statements[self.program.statements.index(reader) :]
        return not any(own.target == tensor for own in late)


def _places(written: tuple[Expression, ...], read: tuple[Expression, ...]) -> dict[str, str] | None:
    """Which iterator of a reader each iterator of a writer is; None where subscripts are no different iterators."""
    pairs = list(zip(written, read, strict=True))
    if not _at_iterators((*written, *read)) or len(set(read)) < len(read):
        return None
    return {a.name: b.name for a, b in pairs if isinstance(a, IteratorReference) and isinstance(b, IteratorReference)}


def _sum_of(found: _Found) -> Read | None:
    """The denominator, at the subscripts of the product."""
    divided = _divided(found.weights.value)
    names = _places(found.weights.subscripts, found.read.subscripts)
    if divided is None or names is None:
        return None
    renamed = rename(divided[1], {}, names)
    return renamed if isinstance(renamed, Read) else None


def _is_invariant(product: Statement, weights: Statement, read: Read) -> bool:
    """Whether all terms of a sum are divided by the same."""
    sum = _sum_of(_Found(product, weights, read))
    written = {own.name for own in written_iterators(product)}
    return sum is not None and iterators_in(sum.subscripts) <= written and sum.tensor != product.target


def _factored(specialization: Specialization, found: _Found) -> tuple[Specialization, FactoredOut]:
    program, product, weights = specialization.program, found.product, found.weights
    divided, sum = _divided(weights.value), _sum_of(found)
    assert divided is not None
    assert sum is not None
    numerator = divided[0]
    undivided = Cast(numerator, weights.value.type) if isinstance(weights.value, Cast) else numerator
    type = widened_term(product.value).type
    made = FactoredOut(
        weights.name,
        product.name,
        fresh_name(f"{product.name}_divided", {own.name for own in program.statements}),
        fresh_name(f"{product.target}_sum", {own.name for own in program.tensors} | set(program.sizes)),
    )
    origin = DerivedOrigin("normalized behind the sum", product.origin)
    value: Expression = Binary(BinaryOperator.DIVIDE, Read(made.tensor, product.subscripts, type), sum, type)
    target = specialization.layouts[product.target]
    value = value if target.type is type else Cast(value, target.type)
    kept = tuple(written_iterators(product))
    dividing = Statement(made.divided, kept, (), product.target, product.subscripts, None, False, value, (), origin)
    statements = list[Statement]()
    for own in program.statements:
        if own is product:
            statements += [replace(own, target=made.tensor, value=widened_term(own.value)), dividing]
        else:
            statements.append(replace(own, value=undivided) if own is weights else own)
    tensors = (
        *program.tensors,
        Tensor(made.tensor, type, program.tensor(product.target).shape, Role.TEMPORARY, origin),
    )
    layouts = {**specialization.layouts, made.tensor: Layout(type, target.shape, contiguous_strides(target.shape))}
    after = replace(program, tensors=tensors, statements=tuple(statements))
    return replace(specialization, program=after, layouts=layouts), made
