"""Collapses two loops that walk contiguous memory into one: rows without gaps between them are one long row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.language.isl.pieces import functions_of, pieces_of
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import accesses, used_as_values
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.ir.scop import ScopStatement
from tc.polyhedral.ir.tree import Member

# As many as the blocks of a grid have threads: where blocks take turns, isl looks for minutes for which row is whose.
_LONGEST: Final = 1 << 38


def linearize_last(
    members: tuple[Member, ...],
    statements: tuple[ScopStatement, ...],
    layouts: Mapping[str, Layout],
    kept: int,
) -> tuple[Member, ...]:
    """The members with as many as possible, after the first ``kept`` ones, joined with the last.

    Two loops are joined where every access of every statement moves, along the outer one, by as many elements as the
    inner one has iterations.
    """
    while len(members) - kept >= 2:
        outer, inner = members[-2:]
        if outer.coincident != inner.coincident or not all(_end_to_end(outer, inner, s, layouts) for s in statements):
            return members
        length, *others = (extent_of(inner.function, isl.UnionSet.from_set(s.domain)) for s in statements)
        rows = max(extent_of(outer.function, isl.UnionSet.from_set(s.domain)) for s in statements)
        if any(other != length for other in others) or rows * length > _LONGEST:
            return members
        size = isl.Val.int_from_si(inner.function.get_ctx(), length)
        members = (*members[:-2], replace(inner, function=outer.function.scale_val(size).add(inner.function)))
    return members


def _end_to_end(outer: Member, inner: Member, statement: ScopStatement, layouts: Mapping[str, Layout]) -> bool:
    body = statement.body
    across, along = iterator_of(outer.function, body), _fastest(inner, statement)
    if across is None or along is None or not _is_free(inner, statement) or not _is_plain(outer, across, statement):
        return False
    if _least(inner, statement) != 0 or {across, along} & used_as_values(body.value):
        return False
    length = extent_of(inner.function, isl.UnionSet.from_set(statement.domain))
    for tensor, subscripts in accesses(body):
        far, near = (stride(subscripts, layouts[tensor], name) for name in (across, along))
        if far is None or near is None or far != length * near:
            return False
    return True


def _fastest(member: Member, statement: ScopStatement) -> str | None:
    """The iterator along which a plain or joined member moves by one; None for any other."""
    names = statement.body.iterators[: statement.domain.dim(isl.dim_type.set)]
    own = _function(member, statement)
    found = [name for n, name in enumerate(names) if _coefficient(own, n) == 1]
    return found[0] if len(found) == 1 else None


def _is_free(member: Member, statement: ScopStatement) -> bool:
    """Whether the iterators of a member take all of their values, whatever the others are."""
    domain, function = statement.domain, _function(member, statement)
    free = domain
    for position in range(domain.dim(isl.dim_type.set)):
        if function.involves_dims(isl.dim_type.in_, position, 1):
            free = free.eliminate(isl.dim_type.set, position, 1)
            free = free.lower_bound_val(isl.dim_type.set, position, domain.dim_min_val(position))
            free = free.upper_bound_val(isl.dim_type.set, position, domain.dim_max_val(position))
    return bool(free.is_equal(domain))


def _is_plain(member: Member, iterator: str, statement: ScopStatement) -> bool:
    position = statement.body.iterators.index(iterator)
    return _coefficient(_function(member, statement), position) == 1


def _least(member: Member, statement: ScopStatement) -> int:
    own = isl.UnionSet.from_set(statement.domain)
    return int(isl.UnionPwAff.intersect_domain(member.function, own).floor().min_val().to_python())


def _function(member: Member, statement: ScopStatement) -> isl.PwAff:
    own = isl.UnionSet.from_set(isl.Set.universe(statement.domain.get_space()))
    pieces = functions_of(member.function.intersect_domain(own))
    return pieces[0]


def _coefficient(function: isl.PwAff, position: int) -> int | None:
    """By how much an affine function grows with an iterator where no division in it does; None for any other function.

    Of the points of a tile it is what it is without the tile.
    """
    pieces = [piece for _, piece in pieces_of(function)]
    if len(pieces) != 1:
        return None
    value = pieces[0].get_coefficient_val(isl.dim_type.in_, position)
    return int(value.to_python()) if value.is_int() else None
