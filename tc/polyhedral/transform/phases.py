"""Loops in phases: where statements walk ``a*u + v`` with ``v`` below ``a``, lanes lie along ``u``.

A gradient through a window that slides by its own width writes ``d_I(2*w+j)`` and reads ``O(w)``.  Along the loop over
``2*w+j``, neither reads of ``O`` nor iterators are regular.  It is strip-mined by ``a``: the loop over ``u`` is one for
lanes, and inside of it there is a copy of the body for each value of ``v`` (superword-level parallelism of interleaved
data: Nuzman, Rosen and Zaks, *Auto-vectorization of interleaved data for SIMD*, PLDI 2006).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import functions_of, pieces_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Member

# As many copies of a body at most.
MOST_PHASES: Final = 4


@frozen
class Phased:
    """A loop as two: ``lanes`` counts what is done in all phases, ``phase`` is for copies of the body."""

    lanes: Member
    phase: Member


def in_phases(member: Member, domain: isl.UnionSet) -> Phased | None:
    """The loop in phases; None where none of its statements walks in some, or they differ in their number."""
    if not member.coincident:
        return None
    walks = [_Walk.of(function, domain) for function in functions_of(member.function)]
    counts = {walk.phases for walk in walks if walk is not None and walk.phases is not None}
    if None in walks or len(counts) != 1:
        return None
    (count,) = counts
    parts = [walk.parts(count) for walk in walks if walk is not None and count is not None]
    outer, inner = (_union(functions) for functions in zip(*parts, strict=True))
    return Phased(
        replace(member, function=outer), replace(member, function=inner, kind=LoopKind.FULLY_UNROLLED, in_group=True)
    )


@frozen
class _Walk:
    """What one statement walks: ``phases`` times the iterator ``slow``, and the iterator ``fast``; None: just that."""

    function: isl.Aff
    slow: int | None
    fast: int
    phases: int | None

    @classmethod
    def of(cls, function: isl.PwAff, domain: isl.UnionSet) -> _Walk | None:
        """None where it is no such walk."""
        pieces = pieces_of(function)
        if len(pieces) != 1 or pieces[0][1].dim(isl.dim_type.div):
            return None
        aff = pieces[0][1]
        if not aff.get_constant_val().is_zero() or any(_slopes(aff, isl.dim_type.param)):
            return None
        slopes = dict(_slopes(aff, isl.dim_type.in_))
        match sorted(slopes.items(), key=lambda item: item[1]):
            case [(fast, 1)]:
                return cls(aff, None, fast, None)
            case [(fast, 1), (slow, phases)] if 1 < phases <= MOST_PHASES:
                space = domain.extract_set(aff.get_domain_space())
                least, most = space.dim_min_val(fast), space.dim_max_val(fast)
                whole = least.is_zero() and most.is_int() and most.to_python() == phases - 1
                return cls(aff, slow, fast, phases) if whole else None
            case _:
                return None

    def parts(self, count: int) -> tuple[isl.Aff, isl.Aff]:
        """The quotient of the function by a number of phases, and the remainder."""
        if self.slow is None:
            divisor = isl.Val.int_from_si(self.function.get_ctx(), count)
            return self.function.scale_down_val(divisor).floor(), self.function.mod_val(divisor)
        space = isl.LocalSpace.from_space(self.function.get_domain_space())
        slow, fast = (isl.Aff.var_on_domain(space, isl.dim_type.set, place) for place in (self.slow, self.fast))
        return slow, fast


def _slopes(function: isl.Aff, kind: isl.dim_type) -> Iterator[tuple[int, int]]:
    """The variables of a kind that a function depends on, with their coefficients."""
    for place in range(function.dim(kind)):
        slope = function.get_coefficient_val(kind, place)
        if not slope.is_zero():
            yield place, int(slope.to_python()) if slope.is_int() else 0


def _union(functions: tuple[isl.Aff, ...]) -> isl.UnionPwAff:
    found = isl.UnionPwAff.from_aff(functions[0])
    for function in functions[1:]:
        found = found.union_add(isl.UnionPwAff.from_aff(function))
    return found
