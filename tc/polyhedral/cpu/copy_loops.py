"""Loops of the copies into and out of the buffers of a processor."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import replace

import islpy as isl

from tc.base.types import ScalarType
from tc.language.program.program import Read
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.linearize import linearize_last
from tc.polyhedral.analysis.strides import iterator_of, stride
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import ScopStatement
from tc.polyhedral.ir.tree import Band, Leaf, Member, Node

# Blocks of this many elements in two dimensions of a copy that turns rows into columns stay in the first cache.
_BLOCK = 16


def copy_loops(
    copy: ScopStatement, depth: int, order: Items[int], layouts: Mapping[str, Layout], *, lanes: bool, registers: bool
) -> Node:
    """Loops over the local subscripts, in the order of the buffer's dimensions, its contiguous one innermost.

    ``registers``: the buffer is a register tile.  Else dimensions that lie end to end are walked as one.
    """
    kind = LoopKind.REGISTER if registers else LoopKind.SEQUENTIAL
    members: tuple[Member, ...] = ()
    for dimension in order:
        function = _function(_subscript(copy, depth, dimension, len(order)))
        members = (*members, Member(function, coincident=True, kind=kind))
    if not members:
        return Leaf()
    own = isl.UnionSet.from_set(copy.domain)
    *outer, last = members
    if copy.promoted[0].panels is not None:
        along = replace(last, function=_function(_local(copy, depth + order[-1])))
        if lanes and _step(along, copy, layouts) == 1:
            last = replace(last, kind=LoopKind.VECTOR)
        walked = linearize_last(tuple(outer), (copy,), layouts, 0)
        members = (*(member for member in walked if extent_of(member.function, own) > 1), last)
    elif registers:
        # Rows that lie side by side in the tensor stand next to the lanes, so that they can be stored as columns.
        outer.sort(key=lambda m: (extent_of(m.function, own) > 1, _step(m, copy, layouts) == 1))
        members = (*outer, replace(last, kind=LoopKind.VECTOR) if lanes else last)
    elif list(order) != sorted(order):
        outer = [m for m in linearize_last(tuple(outer), (copy,), layouts, 0) if extent_of(m.function, own) > 1]
        members = (*outer, last)
        if layouts[copy.body.target].type not in (ScalarType.FLOAT32, ScalarType.FLOAT64) and outer:
            members = (*outer[:-1], *_blocks((outer[-1], last)))
    else:
        *outer, last = linearize_last(members, (copy,), layouts, 0)
        members = (*outer, replace(last, kind=LoopKind.VECTOR) if lanes else last)
    return Band(members, permutable=True, child=Leaf())


def _local(copy: ScopStatement, dimension: int) -> isl.Aff:
    """An iterator of a copy, as a function of all of them."""
    return isl.Aff.var_on_domain(isl.LocalSpace.from_space(copy.domain.get_space()), isl.dim_type.set, dimension)


def _function(aff: isl.Aff) -> isl.UnionPwAff:
    return isl.UnionPwAff.from_pw_aff(isl.PwAff.from_aff(aff))


def _subscript(copy: ScopStatement, depth: int, dimension: int, count: int) -> isl.Aff:
    """A local subscript behind a prefix; where there are panels, their number is the last of so many."""
    panels = copy.promoted[0].panels
    if panels is None or dimension not in (panels.dimension, count - 1):
        return _local(copy, depth + dimension)
    cut = _local(copy, depth + panels.dimension)
    size = isl.Val.int_from_si(copy.domain.get_ctx(), panels.size)
    return cut.mod_val(size) if dimension == panels.dimension else cut.scale_down_val(size).floor()


def _step(member: Member, copy: ScopStatement, layouts: Mapping[str, Layout]) -> int | None:
    """How far the tensor's element moves along a local subscript."""
    iterator = iterator_of(member.function, copy.body)
    tensors = [(copy.body.target, copy.body.subscripts)]
    if isinstance(copy.body.value, Read):
        tensors.append((copy.body.value.tensor, copy.body.value.subscripts))
    outside = next((t, s) for t, s in tensors if not any(a.buffer == t for a in copy.promoted))
    return None if iterator is None else stride(outside[1], layouts[outside[0]], iterator)


def _blocks(members: tuple[Member, Member]) -> tuple[Member, ...]:
    """Both loops in blocks, for types that no vector code turns."""
    size = isl.Val.int_from_si(members[0].function.get_ctx(), _BLOCK)
    tiles = (replace(m, function=m.function.scale_down_val(size).floor()) for m in members)
    return (*tiles, *(replace(m, function=m.function.mod_val(size)) for m in members))
