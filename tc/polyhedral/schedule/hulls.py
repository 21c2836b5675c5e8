"""Affine hulls of pairs and of domains, as plain numbers: what affine functions of instances have to say of them.

A difference of affine functions that is 0 on pairs is 0 on their hull, too: nothing is lost where pairs shall coincide
(the partitions of Lim and Lam, POPL 1997).  One hull answers for all groups of statements, and for all functions.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from fractions import Fraction
from typing import TypeAlias

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.unnamed import Unnamed

Number: TypeAlias = int | Fraction
Row: TypeAlias = list[Number]

# An iterator of one end of a pair: 0 for the first end, 1 for the second.
Variable: TypeAlias = tuple[int, int]
# An iterator of a statement.
Own: TypeAlias = tuple[str, int]


@frozen
class Hull:
    """The affine hull of the pairs of two statements, for all sizes.

    ``point``: one of its points, where sizes are 0.  ``directions``, and those along which sizes change, ``growing``,
    span it.  What is not among them is 0; sizes themselves are left out.  ``moves``: of each direction along which what
    coincides stays equal at both ends, the iterators that move, with both ends of one statement taken together.
    """

    first: str
    second: str
    point: Mapping[Variable, Number]
    directions: tuple[Mapping[Variable, Number], ...]
    growing: tuple[Mapping[Variable, Number], ...]
    moves: tuple[tuple[Own, ...], ...]


@frozen
class Span:
    """``point``, ``directions`` and ``growing`` of a hull, whatever its statements are called."""

    point: Mapping[Variable, Number]
    directions: tuple[Mapping[Variable, Number], ...]
    growing: tuple[Mapping[Variable, Number], ...]


Spans: TypeAlias = dict[Unnamed, Span | None]


def hull_of(pairs: isl.Map, spans: Spans) -> Hull | None:
    """The hull of the pairs; None where there are none.  ``spans``: those found before, and then this one."""
    key = Unnamed(pairs)
    if key not in spans:
        spans[key] = _span_of(pairs)
    span = spans[key]
    if span is None:
        return None
    first, second = (str(pairs.get_tuple_name(side)) for side in (isl.dim_type.in_, isl.dim_type.out))
    # Of one statement, functions that coincide are equal at both ends of any pair, too.
    equal = [span.point, *span.directions] if first == second else span.directions
    moves = tuple(_moved(direction, (first, second)) for direction in equal)
    return Hull(first, second, span.point, span.directions, span.growing, moves)


def _span_of(pairs: isl.Map) -> Span | None:
    """What the affine hull of the pairs is spanned by; None where there are none."""
    hull = pairs.affine_hull()
    if hull.plain_is_empty():
        return None
    kinds = (isl.dim_type.div, isl.dim_type.in_, isl.dim_type.out, isl.dim_type.param, isl.dim_type.cst)
    counts = [hull.dim(kind) for kind in kinds[:-1]]
    equations = reduced(_rows(hull.equalities_matrix(*kinds)), sum(counts))
    free = [column for column in range(counts[0], sum(counts)) if column not in equations]
    begins = (counts[0], counts[0] + counts[1])
    variables = {begins[0] + n: (0, n) for n in range(counts[1])} | {begins[1] + n: (1, n) for n in range(counts[2])}
    point = {variables[column]: -row[-1] for column, row in equations.items() if column in variables and row[-1]}
    directions: list[Mapping[Variable, Number]] = []
    growing: list[Mapping[Variable, Number]] = []
    for moved in free:
        own = {
            variables[column]: -row[moved] for column, row in equations.items() if column in variables and row[moved]
        }
        if moved in variables:
            own[variables[moved]] = 1
        if own:
            (directions if moved in variables else growing).append(own)
    return Span(point, tuple(directions), tuple(growing))


def _moved(direction: Mapping[Variable, Number], names: tuple[str, str]) -> tuple[Own, ...]:
    moved: dict[Own, Number] = {}
    for (end, position), value in direction.items():
        own = names[end], position
        moved[own] = moved.get(own, 0) + (value if end else -value)
    return tuple(own for own, value in moved.items() if value)


def equations_of(domain: isl.Set) -> Mapping[int, Row]:
    """The equations that all instances satisfy, in reduced form: each by the iterator that it gives the value of.

    A row has the coefficients of all iterators; what else is in it is left out.
    """
    hull = domain.affine_hull()
    kinds = (isl.dim_type.div, isl.dim_type.set, isl.dim_type.param, isl.dim_type.cst)
    matrix = hull.equalities_matrix(*kinds)
    divisions, width = hull.dim(isl.dim_type.div), hull.dim(isl.dim_type.set)
    found = reduced(_rows(matrix), divisions + width)
    return {
        column - divisions: row[divisions : divisions + width] for column, row in found.items() if column >= divisions
    }


def _rows(matrix: isl.Mat) -> list[Row]:
    width = matrix.cols()
    return [[matrix.get_element_val(n, column).to_python() for column in range(width)] for n in range(matrix.rows())]


def reduced(rows: list[Row], width: int) -> dict[int, Row]:
    """The reduced row echelon form of equations, by the column of each pivot, which is among the first ``width``."""
    found: dict[int, Row] = {}
    for column in range(width):
        pivot = next((row for row in rows if row[column]), None)
        if pivot is None:
            continue
        rows = [_without(row, pivot, column) for row in rows if row is not pivot]
        own = [_quotient(value, pivot[column]) for value in pivot]
        found = {place: _without(row, own, column) for place, row in found.items()}
        found[column] = own
    return found


def _without(row: Row, pivot: Row, column: int) -> Row:
    """The row with such a multiple of another one added that the column is 0."""
    if not row[column]:
        return row
    factor = _quotient(row[column], pivot[column])
    return [value - factor * other for value, other in zip(row, pivot, strict=True)]


def _quotient(value: Number, divisor: Number) -> Number:
    if divisor in (1, -1):
        return value * divisor
    found = Fraction(value) / divisor
    return found.numerator if found.denominator == 1 else found


def is_combination(row: Items[Number], others: Items[Items[Number]]) -> bool:
    """Whether a row is a linear combination of others."""
    if any(value and not any(other[column] for other in others) for column, value in enumerate(row)):
        return False
    left = list(row)
    for column, pivot in reduced([list(other) for other in others], len(left)).items():
        left = _without(left, pivot, column)
    return not any(left)
