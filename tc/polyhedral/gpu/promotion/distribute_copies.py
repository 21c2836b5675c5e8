"""Distributes copies into shared memory over the threads of a block.

The elements of a tile are numbered row by row, as vectors of up to 16 bytes where both sides are contiguous and
aligned, and assigned to the threads cyclically: accesses are coalesced, and no thread idles because rows are short.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final

import islpy as isl

from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import Box, own_space
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.loops import LoopKind, Sharing
from tc.polyhedral.ir.scop import ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, Sequence

# What one instruction of a thread moves at most, and what is worth it: asynchronous copies have four bytes at least.
_PIECES: Final = (16, 8, 4)


@dataclass(frozen=True)
class Distributed:
    """Copies, with the loops of one thread over them; ``functions``: of every member above, its value at each copy."""

    copies: isl.Set
    functions: tuple[isl.PwAff, ...]
    loops: Node

    @property
    def instances(self) -> isl.UnionMap:
        """``{ [values of the members] -> copy }``."""
        values = isl.Map.from_domain(self.copies)
        for function in self.functions:
            values = values.flat_range_product(isl.Map.from_pw_aff(function))
        return isl.UnionMap.from_map(values.reverse())


def thread_counts(members: Items[Member], domain: isl.UnionSet) -> list[int]:
    """The threads of a block along each loop over them, in the order of the members."""
    along = [member for member in members if member.kind is LoopKind.THREAD]
    return [member.launched or extent_of(member.function, domain) for member in along]


def stored_behind(
    copy: ScopStatement, box: Box, piece: int, buffer: str, node: Filter, members: Items[Member]
) -> Extension:
    """The node with a shared buffer, and behind it the linearized stores of what is in it, as vectors of ``piece``."""
    threads = thread_counts(members, node.domain)
    dealt = distributed(copy.domain, math.prod(box.extents), piece, members, threads)
    stored = Filter(own_space(dealt.copies), dealt.loops)
    below = Sequence((Filter(node.domain.universe(), node.child), stored))
    return Extension(buffer, dealt.instances, below, Sharing.BLOCK, dealt.functions)


def distributed(
    copies: isl.Set, volume: int, piece: int, members: Items[Member], threads: Items[int], ahead: int = 0
) -> Distributed:
    """Distributes the linearized copies of a tile of ``volume`` elements over threads, as vectors of ``piece``
    elements.

    ``members``: those above; the copies' subscripts begin with their values, except for threads.  ``threads``: the
    extent of every thread member, in the same order.  ``ahead``: by how much earlier the copies run, in values of the
    last member.
    """
    context, depth = copies.get_ctx(), len(members) - len(threads)
    local = isl.LocalSpace.from_space(copies.get_space())

    def variable(position: int) -> isl.PwAff:
        return isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))

    def number(value: int) -> isl.Val:
        return isl.Val.int_from_si(context, value)

    if depth < copies.dim(isl.dim_type.set):
        count = variable(depth).scale_down_val(number(piece)).floor()
    else:
        count = isl.PwAff.from_aff(isl.Aff.zero_on_domain(local))
    turns: list[isl.PwAff] = []
    for most in reversed(threads):
        turns.insert(0, count.mod_val(number(most)))
        count = count.scale_down_val(number(most)).floor()
    prefix = iter(range(depth))
    functions = [turns.pop(0) if m.kind is LoopKind.THREAD else variable(next(prefix)) for m in members]
    if ahead:
        functions[-1] = functions[-1].sub(isl.PwAff.from_aff(isl.Aff.val_on_domain(local, number(ahead))))
    loops: list[Member] = []
    if volume // piece > math.prod(threads):
        loops.append(Member(isl.UnionPwAff.from_pw_aff(count), coincident=True))
    if piece > 1:
        lane = variable(depth).mod_val(number(piece))
        loops.append(Member(isl.UnionPwAff.from_pw_aff(lane), coincident=True, kind=LoopKind.VECTOR))
    node = Band(tuple(loops), permutable=True, child=Leaf()) if loops else Leaf()
    return Distributed(copies, tuple(function.intersect_domain(copies) for function in functions), node)


def piece_of(copy: ScopStatement, box: Box, source: Layout, target: Layout) -> int:
    """The number of elements in one vector copy: rows must consist of whole, aligned vectors on both sides.

    Offsets of rows and tiles are multiples of it; the alignment of the tensor itself is checked by the kernel.
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
        layout.steps[-1] == 1 and all(isinstance(step, int) and step % piece == 0 for step in layout.steps[:-1])
        for layout in (source, target)
    )


def _is_whole(domain: isl.Set, piece: int) -> bool:
    """Whether all or none of the elements of every vector are copied."""
    outer = [f"p{n}" for n in range(domain.dim(isl.dim_type.set) - 1)]
    text = (
        f"{{ [{', '.join([*outer, 'a'])}] -> [{', '.join([*outer, 'b'])}] : floor(a / {piece}) = floor(b / {piece}) }}"
    )
    pieces = isl.Map.read_from_str(domain.get_ctx(), text)
    name = domain.get_tuple_name()
    pieces = pieces.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(isl.dim_type.out, name)
    return bool(domain.apply(pieces).is_subset(domain))
