"""Promotes results of products of halves to shared memory, from where threads store whole pieces of rows.

Matrix instructions leave each lane pairs of neighbours, four lanes 16 bytes of a row, which is half of what the
second-level cache takes at a time.  On an H200, products of 16,384 by 512 by 512 took 1.45 times as long without.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.polyhedral.analysis.box import Box, bounding_box, own_space
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.gpu.promotion.distribute_copies import distributed, piece_of
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.ir.loops import Buffer, LoopKind, Sharing
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Extension, Filter, Member, Node, Sequence
from tc.polyhedral.transform.buffer_layouts import Padding, bytes_of, padded_layout
from tc.polyhedral.transform.promotion import (
    Footprint,
    Placement,
    Promoted,
    accesses_to,
    promote_accesses,
    relation_of,
)

# Bytes of the elements whose pairs are too short, and of the shortest rows whose stores are worth a barrier.
_HALF: Final = 2
_ROW: Final = 64
# Of the shared memory, the part that tiles of operands are left at least.
_OPERANDS: Final = 2 / 3


def promote_rounded(
    scop: Scop, sequence: Sequence, domain: isl.UnionSet, above: Items[Member], bytes: int
) -> tuple[Scop, Sequence]:
    """The scop and the sequence in which branches that only write a result of halves do so in shared memory, if a part
    of so many ``bytes`` has room for it.  Another branch computes products by matrix instructions.
    """
    branches = []
    for branch in sequence.filters:
        scop, child = _in_shared(scop, branch, domain, above, bytes)
        branches.append(replace(branch, child=child))
    return scop, Sequence(tuple(branches))


def _in_shared(scop: Scop, branch: Filter, domain: isl.UnionSet, above: Items[Member], bytes: int) -> tuple[Scop, Node]:
    own = domain.intersect(branch.domain)
    for result in scop.buffers:
        accesses, others = (accesses_to(scop, result.name, points) for points in (own, domain))
        if not accesses or accesses != others or any(access.read is not None for access in accesses):
            continue
        prefix = tuple(member for member in above if member.kind is not LoopKind.THREAD)
        box = bounding_box([relation_of(scop.statement(access.statement), access) for access in accesses], prefix)
        if result.layout.type.itemsize != _HALF or box is None or box.extents[-1] * _HALF < _ROW:
            continue
        order = tuple(range(len(box.extents)))
        if bytes_of(padded_layout(result.layout.type, box, order, None)) > (1 - _OPERANDS) * bytes:
            continue
        placement = Placement(f"shared{len(scop.promotions)}_{result.name}", order, Sharing.BLOCK, Padding.BANKS)
        promoted = promote_accesses(scop, Footprint(accesses, prefix, box), placement, stored=True)
        if promoted.loads is None and promoted.stores is not None:
            return _stored(promoted, box, result, Filter(own, branch.child), above)
    return scop, branch.child


def _stored(promoted: Promoted, box: Box, result: Buffer, branch: Filter, above: Items[Member]) -> tuple[Scop, Node]:
    """The branch, and behind it what stores its result, in pieces where rows have them."""
    assert promoted.stores is not None, "it is a result"
    scop, copy = linearize_copies(promoted.scop, promoted.stores, box.extents)
    layout = next(own.buffer.layout for own in scop.promotions if own.buffer.name == promoted.buffer)
    piece = piece_of(copy, box, layout, result.layout)
    threads = [m.launched or extent_of(m.function, branch.domain) for m in above if m.kind is LoopKind.THREAD]
    dealt = distributed(copy.domain, math.prod(box.extents), piece, tuple(above), threads)
    stored = Filter(own_space(dealt.copies), dealt.loops)
    below = Sequence((Filter(branch.domain.universe(), branch.child), stored))
    return scop, Extension(promoted.buffer, dealt.instances, below, Sharing.BLOCK, dealt.functions)
