"""Sums of products of matrices, of which a convolution has one for each tap: what they are added up over."""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import pieces_of
from tc.language.program.terms import matrix_factors
from tc.polyhedral.analysis.extents import sides_of
from tc.polyhedral.ir.scop import Scop, ScopStatement, reads_by_position


@frozen
class Summed:
    """The iterators over which a statement adds up.

    ``steps``: the longest one of both factors, that of a product of matrices.  ``taps``: all others that have more than
    one value, and how many.  ``ahead``: the iterators of the statement with which no subscript of a factor decreases.
    """

    steps: str
    taps: Mapping[str, int]
    ahead: frozenset[str]


def summed(statement: ScopStatement, scop: Scop) -> Summed | None:
    """Over what a statement adds up products; None where it does not, and where no such iterator is of both factors.

    It may read copies of the factors: what counts is what they are copies of.
    """
    factors = matrix_factors(statement.body.value, scop.products)
    if factors is None or not statement.accumulates or len(statement.writes) > 1:
        return None
    reads = [statement.reads[at] for at, own in reads_by_position(statement, scop.promotions) if own.read in factors]
    # Data may choose what is written or read.
    if not all(relation.is_single_valued() for relation in (*statement.writes, *reads)):
        return None
    (results,) = statement.writes
    extents, kept = sides_of(statement.domain), set[int]().union(*moved_by(results))
    both = set(range(len(extents))).intersection(*(set[int]().union(*moved_by(relation)) for relation in reads)) - kept
    if not both:
        return None
    steps = max(sorted(both), key=lambda place: extents[place])
    named = list(zip(statement.body.iterators, extents, strict=False))
    taps = {name: extent for place, (name, extent) in enumerate(named) if place not in {*kept, steps} and extent > 1}
    ahead = (name for place, (name, _) in enumerate(named) if all(_grows(relation, place) for relation in reads))
    return Summed(named[steps][0], taps, frozenset(ahead))


def _grows(relation: isl.Map, place: int) -> bool:
    """Whether every subscript of the elements is an affine function that does not decrease with an iterator."""
    functions = relation.as_pw_multi_aff()
    every = (pieces_of(functions.get_at(dimension)) for dimension in range(relation.dim(isl.dim_type.out)))
    parts = [part for own in every for _, part in own]
    factors = [part.get_coefficient_val(isl.dim_type.in_, place) for part in parts]
    return all(part.dim(isl.dim_type.div) == 0 for part in parts) and all(
        factor.is_int() and factor.is_nonneg() for factor in factors
    )


def moved_by(relation: isl.Map) -> list[set[int]]:
    """For every subscript of the elements, the iterators that it depends on, by position."""
    functions, iterators = relation.as_pw_multi_aff(), range(relation.dim(isl.dim_type.in_))
    found: list[set[int]] = []
    for dimension in range(relation.dim(isl.dim_type.out)):
        parts = [part for _, part in pieces_of(functions.get_at(dimension))]
        found.append({n for n in iterators if any(part.involves_dims(isl.dim_type.in_, n, 1) for part in parts)})
    return found
