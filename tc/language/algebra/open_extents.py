"""Extents as functions of the sizes that stay open: from isl to ``Extent``s, which calls evaluate without isl."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.algebra.extents import Writing, image_of
from tc.language.algebra.fold import fold
from tc.language.algebra.polynomial import Atoms
from tc.language.isl.affine import Frame
from tc.language.isl.pieces import basic_sets_of, pieces_of
from tc.language.isl.session import MAX_OPERATIONS, is_out_of_operations, isl_context
from tc.language.program.extent import Choice, Extent, Term
from tc.language.program.program import INDEX_TYPE, Binary, Call, Expression, Literal, SizeReference
from tc.language.program.specialization import Sizes


def open_extent(
    writings: Sequence[Writing], sizes: Sizes, atoms: Atoms, max_operations: int = MAX_OPERATIONS
) -> Expression | None:
    """One past the greatest subscript of several statements, 0 where nothing is written.

    None where isl cannot express it.  All sizes but these are numbers.  What the statements write is united before its
    greatest element is sought: even and odd rows are all rows, though the last of each depends on how many there are.
    """
    try:
        with isl_context(max_operations) as context:
            outer = Frame(context, "", (), sizes=sizes)
            # Below 0 nothing is written; -1 stands for what has no instance.
            written = isl.Set.universe(outer.space().add_dims(isl.dim_type.set, 1))
            written = written.fix_val(isl.dim_type.set, 0, isl.Val.negone(context))
            for writing in writings:
                names, conditions = writing.related(atoms)
                frame = Frame(context, "", tuple(names), sizes=sizes)
                ranges = {name: writing.ranges[name] for name in names}
                image = image_of(writing.subscript, ranges, conditions, frame, atoms)
                if image is None:
                    return None
                written = written.union(image.reset_tuple_id())
            last = written.intersect_params(outer.possible().params()).coalesce().dim_max(0)
            extent, _ = extent_of(last.add_constant_val(isl.Val.one(context)), outer)
            return expression_of(extent, sizes)
    except isl.Error as error:
        if not is_out_of_operations(error):
            raise
        return None


def extent_of(function: isl.PwAff, frame: Frame) -> tuple[Extent, int]:
    """A function of the frame's sizes, which has a value for all of them, and the greatest one; 0 where it is negative.

    The frame has no iterators and no other parameters.  The function is one of parameters.
    """
    possible = frame.possible().params()
    function = function.max(frame.constant(0).project_domain_on_params()).intersect_domain(possible).coalesce()
    # Where a domain says that a quotient has no remainder, isl writes a fraction, of which it finds no extremes.
    greatest = function.floor().max_val().to_python()
    pieces = pieces_of(function.gist(possible))
    values: list[isl.Aff] = []
    for _, value in pieces:
        if not any(value.plain_is_equal(other) for other in values):
            values.append(value)
    extents = [_extent(value, frame) for value in values]
    if len(extents) == 1:
        return extents[0], greatest
    for choice in Choice:
        combined = reduce(isl.PwAff.min if choice is Choice.LEAST else isl.PwAff.max, map(isl.PwAff.from_aff, values))
        if possible.is_subset(combined.eq_set(function)):
            return _one(Term(1, choice, tuple(extents)), frame), greatest
    guarded = (
        _guarded(part, _extent(value, frame), greatest, frame)
        for domain, value in pieces
        for part in basic_sets_of(domain.compute_divs())
    )
    return _one(Term(1, Choice.GREATEST, (_number(0, frame), *guarded)), frame), greatest


def _guarded(part: isl.BasicSet, value: Extent, greatest: int, frame: Frame) -> Extent:
    """The value, of ``greatest`` at most, where the constraints of a part hold; 0 or less elsewhere.

    A constraint holds where its function c is not negative: ``(c + 1) * greatest`` is above all values there.
    """
    guards: list[Extent] = []
    for constraint in part.get_constraints():
        function = constraint.get_aff()
        for side in (function, function.neg()) if constraint.is_equality() else (function,):
            limit = side.add_constant_val(isl.Val.one(frame.context)).scale_val(_val(greatest, frame))
            guards.append(_extent(limit, frame))
    return _one(Term(1, Choice.LEAST, (value, *guards)), frame) if guards else value


def _extent(function: isl.Aff, frame: Frame) -> Extent:
    """A function in one piece, rounded down where it is a fraction."""
    divisor = function.get_denominator_val().to_python()
    whole = function.scale_val(_val(divisor, frame))
    constant = whole.get_constant_val().to_python()
    factors = [whole.get_coefficient_val(isl.dim_type.param, n).to_python() for n in range(len(frame.sizes))]
    terms: list[Term] = []
    for position in range(whole.dim(isl.dim_type.div)):
        factor = whole.get_coefficient_val(isl.dim_type.div, position).to_python()
        if factor:
            terms.append(Term(factor, Choice.LEAST, (_extent(whole.get_div(position), frame),)))
    if divisor == 1 and len(terms) == 1 and terms[0].factor == 1:  # k + x / d is (k d + x) / d
        (quotient,) = terms[0].operands
        divisor, terms = quotient.divisor, list(quotient.terms)
        constant = constant * divisor + quotient.constant
        factors = [own * divisor + other for own, other in zip(factors, quotient.factors, strict=True)]
    return Extent(constant, tuple(factors), divisor, tuple(terms))


def _one(term: Term, frame: Frame) -> Extent:
    return Extent(0, (0,) * len(frame.sizes), 1, (term,))


def _number(value: int, frame: Frame) -> Extent:
    return Extent(value, (0,) * len(frame.sizes))


def _val(value: int, frame: Frame) -> isl.Val:
    return isl.Val.int_from_si(frame.context, value)


# --- as expressions ------------------------------------------------------------------------------------------------


def expression_of(extent: Extent, sizes: Sizes) -> Expression:
    """An extent as an expression of sizes, whose quotients truncate."""
    total: Expression = Literal(extent.constant, INDEX_TYPE)
    for (name, _), factor in zip(sizes, extent.factors, strict=True):
        total = _plus(total, factor, SizeReference(name))
    for term in extent.terms:
        operands = [expression_of(operand, sizes) for operand in term.operands]
        chosen = reduce(lambda one, other: Call(term.choice.value, (one, other), INDEX_TYPE), operands)
        total = _plus(total, term.factor, chosen)
    if extent.divisor == 1:
        return total
    # What may be negative is moved above 0 by a multiple of the divisor, and back.
    moved = max(0, -_ends(extent, sizes)[0])
    total = _plus(total, moved * extent.divisor, Literal(1, INDEX_TYPE))
    quotient = Binary(BinaryOperator.DIVIDE, total, Literal(extent.divisor, INDEX_TYPE), INDEX_TYPE)
    return _plus(quotient, -moved, Literal(1, INDEX_TYPE))


def _plus(total: Expression, factor: int, further: Expression) -> Expression:
    """``total + factor * further``, folded."""
    multiple = fold(Binary(BinaryOperator.MULTIPLY, Literal(factor, INDEX_TYPE), further, INDEX_TYPE))
    return fold(Binary(BinaryOperator.ADD, total, multiple, INDEX_TYPE)) if factor else total


def _ends(extent: Extent, sizes: Sizes) -> tuple[int, int]:
    """What an extent is not below, and not above."""
    ends = [(extent.constant, extent.constant)]
    ends += [_multiple(factor, (1, most)) for factor, (_, most) in zip(extent.factors, sizes, strict=True)]
    for term in extent.terms:
        operands = [_ends(operand, sizes) for operand in term.operands]
        ends.append(
            _multiple(term.factor, (term.choice.of(o[0] for o in operands), term.choice.of(o[1] for o in operands)))
        )
    return sum(end[0] for end in ends) // extent.divisor, sum(end[1] for end in ends) // extent.divisor


def _multiple(factor: int, ends: tuple[int, int]) -> tuple[int, int]:
    first, last = factor * ends[0], factor * ends[1]
    return min(first, last), max(first, last)
