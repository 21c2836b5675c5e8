"""Choosing the loop of every outermost nest whose iterations are spread over the cores."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.loops import LoopKind
from tc.polyhedral.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence
from tc.polyhedral.vectorize import extent_of

# Waking another core costs a few microseconds: below this many instances one core is done earlier.
WORTH_SPREADING = 1 << 14
# With this many chunks for two cores the last one to finish leaves little idle time.
ENOUGH_CHUNKS = 16


def parallelize_tree(tree: ScheduleTree) -> ScheduleTree:
    """Mark one coincident member of every outermost band as parallel, and move it to the front."""
    return replace(tree, root=_visit(tree.root, tree.domain))


def volume(domain: isl.UnionSet) -> int:
    """Number of points in the bounding boxes of the sets: an upper bound of the number of instances."""
    total = 0
    pieces: list[isl.Set] = []
    domain.foreach_set(pieces.append)
    for piece in pieces:
        extents = (
            int(piece.dim_max_val(i).to_python()) - int(piece.dim_min_val(i).to_python()) + 1
            for i in range(piece.dim(isl.dim_type.set))
        )
        total += math.prod(extents)
    return total


def _visit(node: Node, domain: isl.UnionSet) -> Node:
    match node:
        case Leaf() | Extension():
            return node
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=_visit(f.child, domain.intersect(f.domain))) for f in filters))
        case Band():
            return _visit_band(node, domain) if volume(domain) >= WORTH_SPREADING else node
        case _:
            assert_never(node)


def _visit_band(band: Band, domain: isl.UnionSet) -> Node:
    chunks = [extent_of(m.function, domain) if m.coincident else 0 for m in band.members]
    # A loop that serves the vector lanes is taken only where no other one is parallel.
    ranked = [
        (member.kind is LoopKind.SEQUENTIAL, min(count, ENOUGH_CHUNKS), -position)
        for position, (count, member) in enumerate(zip(chunks, band.members, strict=True))
        if count > 1
    ]
    _, most, negative = max(ranked, default=(False, 0, 0))
    if most < 2 or not band.permutable:
        return replace(band, child=_visit(band.child, domain))
    position = -negative
    chosen = replace(band.members[position], kind=LoopKind.PARALLEL)
    return replace(band, members=(chosen, *band.members[:position], *band.members[position + 1 :]))
