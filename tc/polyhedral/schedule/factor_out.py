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

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.rewriting import fresh_name
from tc.language.program.program import (
    Binary,
    Call,
    Cast,
    DerivedOrigin,
    Expression,
    IteratorReference,
    Program,
    Read,
    Reduction,
    Role,
    Statement,
    Tensor,
    iterators_in,
    reads_in,
    rebuild,
)
from tc.language.program.specialization import Layout, Specialization, contiguous_strides
from tc.language.program.terms import is_factor, widened_term
from tc.language.program.written_elements import is_scatter, written_iterators
from tc.polyhedral.ir.hoisted import FactoredOut


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
    type = widened_term(product.value).type
    if type not in (ScalarType.FLOAT32, ScalarType.FLOAT64) or is_scatter(product):
        return None
    writers = [own for own in program.statements if own.target == product.target]
    if writers[0] is not product or any(read.tensor == product.target for read in reads_in(product.value)):
        return None
    for read in reads_in(product.value):
        weights = _only_writer(program, read.tensor)
        if weights is None or not is_factor(product.value, read) or not _normalizes(program, weights):
            continue
        used = [r for own in program.statements for r in _reads(own) if r.tensor == read.tensor]
        if used == [read] and _is_invariant(product, weights, read):
            return _Found(product, weights, read)
    return None


def _is_plain(statement: Statement) -> bool:
    special = statement.blocks or statement.conditions or statement.counts or statement.required or statement.atomic
    return not special and statement.owned is None


def _reads(statement: Statement) -> Iterator[Read]:
    for part in (statement.value, *statement.subscripts, *statement.conditions, *statement.required):
        yield from reads_in(part)


def _only_writer(program: Program, tensor: str) -> Statement | None:
    """The statement that writes a temporary, once for each element, at its own iterators."""
    if program.tensor(tensor).role is not Role.TEMPORARY:
        return None
    writers = [own for own in program.statements if own.target == tensor]
    places = tuple(IteratorReference(own.name) for own in writers[0].iterators) if writers else ()
    if len(writers) != 1 or not _is_plain(writers[0]) or set(writers[0].subscripts) - set(places):
        return None
    return writers[0]


def _divided(value: Expression) -> tuple[Expression, Read] | None:
    """The numerator and the denominator of weights, which may be rounded to a half."""
    if isinstance(value, Cast) and value.type.is_half:
        value = value.operand
    match value:
        case Binary(BinaryOperator.DIVIDE, numerator, Read() as sum):
            return numerator, sum
        case _:
            return None


def _normalizes(program: Program, weights: Statement) -> bool:
    """Whether a statement divides an exponential, 1 at most, by something that the program writes before."""
    found = _divided(weights.value) if weights.reduction is None else None
    if found is None:
        return False
    numerator, sum = found
    before = program.statements[: program.statements.index(weights)]
    if any(own.target == sum.tensor for own in program.statements if own not in before):
        return False
    inlined = {own.name: own.name for own in weights.iterators}
    if isinstance(numerator, Read):
        exponential = _only_writer(program, numerator.tensor)
        if exponential is None or exponential.reduction is not None:
            return False
        inlined = _places(exponential.subscripts, numerator.subscripts)
        numerator = exponential.value
    match numerator:
        case Call("exp", (Binary(BinaryOperator.SUBTRACT, own, Read() as most),), _):
            return bool(inlined) and _is_greatest(program, own, most)
        case _:
            return False


def _is_greatest(program: Program, value: Expression, most: Read) -> bool:
    """Whether what is read is the greatest value of a row."""
    writers = [own for own in program.statements if own.target == most.tensor]
    if len(writers) != 1 or writers[0].reduction is not Reduction.MAXIMUM or not writers[0].initialize:
        return False
    names = _places(writers[0].subscripts, most.subscripts)
    others = [own.name for own in writers[0].iterators if own.name not in names]
    free = [own.name for own in _iterators(value) if own.name not in names.values()]
    if len(others) != len(free) or not _is_plain(writers[0]):
        return False
    return _renamed(writers[0].value, {**names, **dict(zip(others, free, strict=True))}) == value


def _iterators(value: Expression) -> list[IteratorReference]:
    return [IteratorReference(name) for name in sorted(iterators_in((value,)))]


def _places(written: tuple[Expression, ...], read: tuple[Expression, ...]) -> dict[str, str]:
    """Which iterator of a reader each iterator of a writer is; nothing where subscripts are no iterators."""
    pairs = list(zip(written, read, strict=True))
    if not all(isinstance(a, IteratorReference) and isinstance(b, IteratorReference) for a, b in pairs):
        return {}
    return {a.name: b.name for a, b in pairs if isinstance(a, IteratorReference) and isinstance(b, IteratorReference)}


def _renamed(expression: Expression, names: Mapping[str, str]) -> Expression:
    if isinstance(expression, IteratorReference):
        return IteratorReference(names.get(expression.name, expression.name))
    return rebuild(expression, lambda part: _renamed(part, names))


def _sum_of(found: _Found) -> Read | None:
    """The denominator, at the subscripts of the product."""
    divided = _divided(found.weights.value)
    names = _places(found.weights.subscripts, found.read.subscripts)
    if divided is None or not names:
        return None
    renamed = _renamed(divided[1], names)
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
