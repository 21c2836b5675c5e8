"""Copies into shared memory, dealt out to the threads of a block.

The elements of a tile are counted row by row, in pieces of up to 16 bytes where whole pieces lie side by side in both
places, and the threads take the pieces in turn: neighbours copy neighbours, and none rests because rows are short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final

import islpy as isl

from tc.language.specialization import Layout
from tc.polyhedral.box import Box
from tc.polyhedral.loops import LoopKind
from tc.polyhedral.scop import ScopStatement
from tc.polyhedral.tree import Band, Leaf, Member, Node

# What one instruction of a thread moves at most, and what is worth it.
_PIECES: Final = (16, 8)


@dataclass(frozen=True)
class Dealt:
    """``loops``: those of one thread.  ``instances``: ``{ [values of the members] -> copy }``."""

    loops: Node
    instances: isl.UnionMap


def deal_out(
    copy: ScopStatement, extents: Items[int], piece: int, members: Items[Member], threads: Items[int]
) -> Dealt:
    """The copies of a tile with these extents, in pieces of so many elements.

    ``members``: those above the copies, whose domain begins with the values of all but the threads.  ``threads``: of a
    block, for every member that is one, in the same order.
    """
    domain = copy.domain
    context, depth = domain.get_ctx(), len(members) - len(threads)
    local = isl.LocalSpace.from_space(domain.get_space())

    def variable(position: int) -> isl.PwAff:
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))

    def number(value: int) -> isl.Val:
        return isl.Val.int_from_si(context, value)

    count = isl.PwAff.from_aff(isl.Aff.zero_on_domain(local))
    for dimension, extent in enumerate(extents):
        place, last = variable(depth + dimension), dimension == len(extents) - 1
        own = place.scale_down_val(number(piece)).floor() if last and piece > 1 else place
        count = count.scale_val(number(extent // piece if last else extent)).add(own)
    functions: list[isl.PwAff] = []
    for most in reversed(threads):
        functions.insert(0, count.mod_val(number(most)))
        count = count.scale_down_val(number(most)).floor()
    values = isl.Map.from_domain(domain)
    prefix = iter(range(depth))
    for member in members:
        function = functions.pop(0) if member.kind is LoopKind.THREAD else variable(next(prefix))
        values = values.flat_range_product(isl.Map.from_pw_aff(function))
    loops: list[Member] = []
    if math.prod(extents) // piece > math.prod(threads):
        loops.append(Member(isl.UnionPwAff.from_pw_aff(count), coincident=True))
    if piece > 1:
        lane = variable(depth + len(extents) - 1).mod_val(number(piece))
        loops.append(Member(isl.UnionPwAff.from_pw_aff(lane), coincident=True, kind=LoopKind.VECTOR))
    node = Band(tuple(loops), permutable=True, child=Leaf()) if loops else Leaf()
    return Dealt(node, isl.UnionMap.from_map(values.reverse()))


def piece_of(copy: ScopStatement, box: Box, source: Layout, target: Layout) -> int:
    """How many neighbours a thread can copy at a time: whole pieces of rows that begin at multiples of a piece.

    What is between rows, and where tiles begin, is a multiple of it in both places; that the tensor itself begins at
    one is for the kernel to see.
    """
    for bytes in _PIECES:
        piece = bytes // source.type.itemsize
        if piece > 1 and _comes_in_pieces(box, source, target, piece) and _is_whole(copy.domain, piece):
            return piece
    return 1


def _comes_in_pieces(box: Box, source: Layout, target: Layout, piece: int) -> bool:
    if not box.extents or box.extents[-1] % piece or box.steps[-1] != 1:
        return False
    constant, coefficients = box.offsets[-1]
    if any(value % piece for value in (constant, *coefficients)):
        return False
    return all(
        layout.strides[-1] == 1 and all(stride % piece == 0 for stride in layout.strides[:-1])
        for layout in (source, target)
    )


def _is_whole(domain: isl.Set, piece: int) -> bool:
    """Whether the copies of a piece are all there, or none of them is."""
    outer = [f"p{n}" for n in range(domain.dim(isl.dim_type.set) - 1)]
    text = (
        f"{{ [{', '.join([*outer, 'a'])}] -> [{', '.join([*outer, 'b'])}] : floor(a / {piece}) = floor(b / {piece}) }}"
    )
    pieces = isl.Map.read_from_str(domain.get_ctx(), text)
    name = domain.get_tuple_name()
    pieces = pieces.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(isl.dim_type.out, name)
    return bool(domain.apply(pieces).is_subset(domain))
