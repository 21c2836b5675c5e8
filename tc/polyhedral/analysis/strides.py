"""Strides: how far apart in memory neighbouring iterations access a tensor, for vectorization and tiling.

Where they depend on sizes that stay open, offsets have products of sizes and loop variables.  A loop variable in such a
product has no slope that is known, so that whoever asks for neighbouring elements finds them along dimensions with
strides that are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from itertools import permutations

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.isl.affine import parameter_name
from tc.language.isl.pieces import functions_of, pieces_of
from tc.language.program.affine_form import coefficient
from tc.language.program.extent import Choice, Extent
from tc.language.program.program import (
    Binary,
    Expression,
    Literal,
    Read,
    iterators_in,
)
from tc.language.program.specialization import Layout, OpenStride, Sizes
from tc.polyhedral.analysis.offsets import Arguments, Forms, LinearForm, recombined, subscript_form
from tc.polyhedral.analysis.ranges import Ranges
from tc.polyhedral.analysis.reads import accesses
from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    StatementBody,
)


def iterator_of(function: isl.UnionPwAff, body: StatementBody) -> str | None:
    """The one iterator of the statement that a band member depends on; None for none or several."""
    used = _iterators_of(_piece_of(function, body), body)
    return used[0] if len(used) == 1 else None


def is_skewed(function: isl.UnionPwAff, body: StatementBody) -> bool:
    """Whether a band member counts a sum of iterators of the statement that is no dimension of what it writes."""
    piece = _piece_of(function, body)
    if piece is None or len(_iterators_of(piece, body)) < 2:
        return False
    if not piece.isa_aff():
        return True
    plain = piece.as_aff()
    factors = [plain.get_coefficient_val(isl.dim_type.in_, n).to_python() for n in range(len(body.iterators))]
    written = ([coefficient(subscript, name) for name in body.iterators] for subscript in body.subscripts)
    return not any(found in (factors, [-factor for factor in factors]) for found in written)


def is_sampled(function: isl.UnionPwAff, body: StatementBody) -> bool:
    """Whether neighbouring iterations of a statement are several iterations of a band member apart."""
    piece = _piece_of(function, body)
    if piece is None or len(_iterators_of(piece, body)) != 1 or not piece.isa_aff():
        return False
    plain = piece.as_aff()
    factors = [plain.get_coefficient_val(isl.dim_type.in_, n).to_python() for n in range(len(body.iterators))]
    return max(map(abs, factors)) > 1


def _piece_of(function: isl.UnionPwAff, body: StatementBody) -> isl.PwAff | None:
    """The function of the instances of one statement."""
    pieces = functions_of(function)
    return next((p for p in pieces if p.get_domain_space().get_tuple_name(isl.dim_type.set) == body.name), None)


def _iterators_of(piece: isl.PwAff | None, body: StatementBody) -> list[str]:
    if piece is None:
        return []
    dimensions = range(piece.dim(isl.dim_type.in_))
    values = [value for _, value in pieces_of(piece)]  # bounds of the domain do not matter
    return [body.iterators[i] for i in dimensions if any(v.involves_dims(isl.dim_type.in_, i, 1) for v in values)]


def stride(subscripts: tuple[Expression, ...], layout: Layout, iterator: str) -> int | None:
    """Distance in elements between the elements of neighbouring iterations; None where it is not constant.

    Nor is it where it depends on open sizes.
    """
    total = 0
    parts = tuple(zip(subscripts, layout.steps, strict=True))
    for subscript, step in parts:
        factor = coefficient(subscript, iterator)
        if factor is None:
            whole = _end_to_end(parts)
            return None if whole is None else _stride(whole, iterator)
        if factor and not isinstance(step, int):
            return None
        total += factor * step if isinstance(step, int) else 0
    return total


def _stride(parts: Iterable[tuple[Expression, int]], iterator: str) -> int | None:
    total = 0
    for subscript, step in parts:
        factor = coefficient(subscript, iterator)
        if factor is None:
            return None
        total += factor * step
    return total


def _end_to_end(parts: Sequence[tuple[Expression, int | OpenStride]]) -> list[tuple[Expression, int]] | None:
    """The subscripts with what was divided in the place of quotients and remainders of rows that lie end to end.

    None where nothing is so, or a stride is open.
    """
    found = [(subscript, step) for subscript, step in parts if isinstance(step, int)]
    if len(found) < len(parts):
        return None
    whole = one = _one_pair_less(found)
    while one is not None:
        whole, one = one, _one_pair_less(one)
    return whole


def _one_pair_less(found: Sequence[tuple[Expression, int]]) -> list[tuple[Expression, int]] | None:
    for (quotient, far), (remainder, near) in permutations(found, 2):
        match quotient, remainder:
            case (
                Binary(BinaryOperator.DIVIDE, whole, Literal(size)),
                Binary(BinaryOperator.REMAINDER, also, Literal(row)),
            ) if whole == also and size == row and far == int(size) * near:
                rest = [own for own in found if own not in ((quotient, far), (remainder, near))]
                return [*rest, (whole, near)]
            case _:
                pass
    return None


def greatest_stride(subscripts: tuple[Expression, ...], layout: Layout, iterator: str) -> int | None:
    """``stride`` with the greatest sizes, for choices among loops that are right for all sizes.

    Where sizes are open, neighbours are told from others as if they were: 0 and 1 are so for all of them.
    """
    found = stride(subscripts, layout, iterator)
    if found is not None or not layout.packed:
        return found
    total = 0
    for subscript, step in zip(subscripts, layout.strides, strict=True):
        factor = coefficient(subscript, iterator)
        if factor is None:
            return None
        total += factor * step
    return None if -1 <= total <= 1 else total


def is_turned(read: Read, layout: Layout, iterator: str | None) -> bool:
    """Whether the iterator walks across the rows of a tensor, which another iterator goes along."""
    if iterator is None or greatest_stride(read.subscripts, layout, iterator) in (None, 0, 1):
        return False
    used = [iterators_in((subscript,)) for subscript in read.subscripts]
    names = frozenset().union(*used)
    # Every subscript has one of its own, so that nothing lies between the elements that are read.
    plain = all(len(own) <= 1 for own in used) and sum(map(len, used)) == len(names)
    return plain and any(stride(read.subscripts, layout, name) == 1 for name in names)


def scattered_accesses(body: StatementBody, layouts: Mapping[str, Layout], iterator: str) -> int:
    """How many accesses of the statement are neither contiguous, in one direction or the other, nor constant."""
    found = (stride(subscripts, layouts[tensor], iterator) for tensor, subscripts in accesses(body))
    return sum(step not in (-1, 0, 1) for step in found)


# --- strides that depend on open sizes ----------------------------------------------------------------------------


def extent_index(extent: int | Extent, sizes: Sizes) -> IndexExpression:
    """An extent as an expression of the loops' variables for the sizes."""
    if isinstance(extent, int):
        return IndexLiteral(extent)
    factors: dict[IndexExpression, int] = {}
    pairs: list[tuple[IndexExpression, int]] = [
        (IndexVariable(parameter_name(name)), factor) for (name, _), factor in zip(sizes, extent.factors, strict=True)
    ]
    for term in extent.terms:
        operator = IndexOperator.MINIMUM if term.choice is Choice.LEAST else IndexOperator.MAXIMUM
        operands = tuple(extent_index(operand, sizes) for operand in term.operands)
        pairs.append((operands[0] if len(operands) == 1 else IndexOperation(operator, operands), term.factor))
    for part, factor in pairs:
        factors[part] = factors.get(part, 0) + factor
    total = LinearForm(extent.constant, {part: factor for part, factor in factors.items() if factor}).expression()
    if extent.divisor == 1:
        return total
    return IndexOperation(IndexOperator.FLOOR_DIVIDE, (total, IndexLiteral(extent.divisor)))


def moved(form: LinearForm, step: int | OpenStride, sizes: Sizes) -> LinearForm:
    """How far a subscript moves the element: the form times a stride."""
    if isinstance(step, int):
        return form.times(step)
    product = stride_index(step, sizes)
    factors = {_product(product, term): factor * step.factor for term, factor in form.factors.items()}
    if form.constant:
        factors[product] = form.constant * step.factor
    return LinearForm(0, factors)


def stride_index(step: OpenStride, sizes: Sizes) -> IndexExpression:
    """The product of the extents alone, without the factor."""
    return reduce(_product, (extent_index(extent, sizes) for extent in step.extents))


def offset_form(forms: Iterable[LinearForm], layout: Layout, sizes: Sizes) -> LinearForm:
    """Where the element with these subscripts is."""
    total = LinearForm()
    for form, step in zip(forms, layout.steps, strict=True):
        total = total.plus(moved(form, step, sizes))
    return total


def element_offset(
    subscripts: Iterable[Expression],
    layout: Layout,
    arguments: Arguments,
    sizes: Sizes,
    ranges: Ranges,
    forms: Forms | None = None,
) -> LinearForm | None:
    """Where an element is; None where that depends on data.  ``ranges``, ``forms``: as of ``subscript_form``."""
    found: list[LinearForm] = []
    for subscript in subscripts:
        form = subscript_form(subscript, arguments, ranges, forms)
        if form is None:
            return None
        found.append(form)
    return recombined(offset_form(found, layout, sizes))


def span_form(layout: Layout, sizes: Sizes) -> LinearForm:
    """One past the last element, where no stride is negative; anything where there are no elements."""
    total = LinearForm(1)
    for extent, step in zip(layout.bounds, layout.steps, strict=True):
        last = LinearForm(-1)
        if isinstance(extent, int):
            last = last.plus(LinearForm(extent))
        else:
            last = last.plus(LinearForm(0, {extent_index(extent, sizes): 1}))
        total = total.plus(moved(last, step, sizes))
    return total


def _product(left: IndexExpression, right: IndexExpression) -> IndexExpression:
    return IndexOperation(IndexOperator.MULTIPLY, (left, right))
