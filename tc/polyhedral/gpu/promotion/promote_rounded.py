"""Promotes a result of a product of halves to shared memory, from where threads store whole pieces of rows.

Matrix instructions leave each lane pairs of neighbours, four lanes 16 bytes of a row, which is half of what the
second-level cache takes at a time.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import Final

import islpy as isl

from tc.base.frozen import frozen
from tc.polyhedral.analysis.box import Box, bounding_box
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.gpu.promotion.distribute_copies import piece_of, stored_behind, thread_counts
from tc.polyhedral.gpu.promotion.linearize_copies import linearize_copies
from tc.polyhedral.gpu.tensor.tile_shapes import are_warpgroups
from tc.polyhedral.ir.loops import Buffer, LoopKind, Sharing
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Filter, Member, Node, Sequence
from tc.polyhedral.transform.buffer_layouts import VECTOR_BYTES, Padding, bytes_of, padded_layout
from tc.polyhedral.transform.promotion import (
    Footprint,
    Placement,
    Promoted,
    accesses_to,
    promote_accesses,
    relation_of,
)

# Bytes of elements whose pairs are too short, of the shortest rows whose stores are worth a barrier, and of a store.
_HALF: Final = 2
_ROW: Final = 64
_PIECE: Final = 8
# Stages that operands have at least beside a result, where no number of them is asked for: with fewer, threads wait for
# copies longer than for stores.
_STAGES: Final = 3


@frozen
class RoundedRoom:
    """``bytes``: of shared memory.  ``stages``: how many tiles of operands are in it at a time; None: some.  ``steps``:
    elements of each row and column of operands in such a tile.
    """

    bytes: int
    stages: int | None
    steps: int

    def beside(self, box: Box, threads: Items[int]) -> int:
        """Bytes that tiles of the operands of a result in a box leave; ``threads``: of a block, x last."""
        sides = math.prod(box.extents[:-1]) + box.extents[-1]
        padding = 0 if are_warpgroups(threads) else VECTOR_BYTES // _HALF
        return self.bytes - (self.stages or _STAGES) * sides * (self.steps + padding) * _HALF


def promote_rounded(
    scop: Scop, sequence: Sequence, domain: isl.UnionSet, above: Items[Member], room: RoundedRoom
) -> tuple[Scop, Sequence]:
    """The scop, and the sequence in which one branch that only writes a result of halves does so in shared memory.

    Others compute products by matrix instructions.  Nothing changes where there is no room, or rows have no pieces.
    """
    below = (member for _, members in paths_below(sequence, domain) for member in members)
    if not any(member.digit for member in below):
        return scop, sequence  # no warps multiply matrices
    for place, branch in enumerate(sequence.filters):
        found = _in_shared(scop, branch, domain, above, room)
        if found is not None:
            branches = list(sequence.filters)
            branches[place] = replace(branch, child=found[1])
            return found[0], Sequence(tuple(branches))
    return scop, sequence


def _in_shared(
    scop: Scop, branch: Filter, domain: isl.UnionSet, above: Items[Member], room: RoundedRoom
) -> tuple[Scop, Node] | None:
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
        if bytes_of(padded_layout(result.layout.type, box, order, None)) > room.beside(box, thread_counts(above, own)):
            continue
        placement = Placement(f"shared{len(scop.promotions)}_{result.name}", order, Sharing.BLOCK, Padding.BANKS)
        promoted = promote_accesses(scop, Footprint(accesses, prefix, box), placement, stored=True)
        if promoted.loads is None and promoted.stores is not None:
            found = _stored(promoted, box, result, Filter(own, branch.child), above)
            if found is not None:
                return found
    return None


def _stored(
    promoted: Promoted, box: Box, result: Buffer, branch: Filter, above: Items[Member]
) -> tuple[Scop, Node] | None:
    """The branch, and behind it what stores its result in pieces; None where rows have none that are long enough."""
    assert promoted.stores is not None, "it is a result"
    scop, copy = linearize_copies(promoted.scop, promoted.stores, box.extents)
    layout = next(own.buffer.layout for own in scop.promotions if own.buffer.name == promoted.buffer)
    piece = piece_of(copy, box, layout, result.layout)
    if piece * _HALF < _PIECE:
        return None
    return scop, stored_behind(copy, box, piece, promoted.buffer, branch, above)
