"""Keeps partial results in the registers of a warp's lanes, which combine them without shared memory.

The statement that combines them runs on all threads, and each adds up the partial results of its warp: one loop over
the lanes, which is printed as a butterfly of warp shuffles (``tc.codegen.printer.lane_totals``).  Proven by
``tc.polyhedral.proof.verify_lanes``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence as Items
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.base.types import ScalarType
from tc.language.program.program import Read
from tc.polyhedral.analysis.box import Box, bounding_box, prefix_map
from tc.polyhedral.analysis.extents import with_all_values
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.ir.loops import LANES, Buffer, LoopKind, Sharing
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, Sequence, statement_names
from tc.polyhedral.transform.promotion import (
    Access,
    Footprint,
    Placement,
    promote_accesses,
    reads_uncovered,
    relation_of,
)


def promote_to_lanes(
    scop: Scop,
    temporary: Buffer,
    accesses: Items[Access],
    node: Node,
    domain: isl.UnionSet,
    above: tuple[Member, ...],
    most: int,
) -> tuple[Scop, Node] | None:
    """The scop and the subtree with the temporary in lanes; None where it is nothing that the lanes of a warp combine.

    ``above``: the members around the subtree, those of blocks and threads among them.  ``most``: elements that a thread
    may keep, but for a single one.
    """
    reads = [access for access in accesses if access.read is not None]
    if len(reads) != 1 or not _can_be_exchanged(temporary.layout.type):
        return None
    combining = scop.statement(reads[0].statement)
    x = max(position for position, member in enumerate(above) if member.kind is LoopKind.THREAD)
    prefix = tuple(member for position, member in enumerate(above) if position != x)
    relations = [relation_of(scop.statement(access.statement), access) for access in accesses]
    box = bounding_box(relations, prefix)
    if box is None or not _has_warps(box) or reads_uncovered(scop, accesses, prefix):
        return None
    if math.prod(box.extents[:-1]) > max(1, most):
        return None
    own = [relation for access, relation in zip(accesses, relations, strict=True) if access.read is None]
    if not all(_is_in_own_lane(relation, above, x) for relation in own):
        return None
    inner = next(members for name, members in paths_below(node, domain) if name == combining.name)
    found = _last_loop(combining, above, inner)
    if found is None:
        return None
    lane, around = found
    read = relations[accesses.index(reads[0])]
    if not _combines_lanes(combining, read, (*above, *around, lane), x, box.extents[-1]):
        return None
    marked = _marked(node, domain, combining.name, lane)
    if marked is None:
        return None
    buffer, order = f"lanes{len(scop.promotions)}_{temporary.name}", tuple(range(len(box.extents)))
    promoted = promote_accesses(
        scop, Footprint(accesses, prefix, box), Placement(buffer, order, Sharing.LANES), stored=False
    )
    return promoted.scop, Extension(buffer, promoted.instances, marked, Sharing.LANES)


def has_warps_along_x(threads: Items[int]) -> bool:
    """Whether neighbours along x are the lanes of warps; ``threads``: of a block along every dimension, x last."""
    return len(threads) == 1 or threads[-1] % LANES == 0


def _can_be_exchanged(type: ScalarType) -> bool:
    """Whether warp shuffles support the type: values of four and of eight bytes."""
    return type is not ScalarType.BOOL and type.itemsize in (4, 8)


def _has_warps(box: Box) -> bool:
    """Whether there are subscripts, the last of which counts the threads of whole warps."""
    if not box.extents:
        return False
    constant, factors = box.offsets[-1]
    return constant == 0 and not any(factors) and box.steps[-1] == 1 and box.extents[-1] % LANES == 0


def _is_in_own_lane(relation: isl.Map, above: Items[Member], x: int) -> bool:
    """Whether the last subscript is the number of the thread along x."""
    touched = prefix_map(relation.domain(), above).reverse().apply_range(relation)
    own = touched.equate(isl.dim_type.in_, x, isl.dim_type.out, touched.dim(isl.dim_type.out) - 1)
    return bool(touched.is_subset(own))


def _last_loop(
    statement: ScopStatement, above: Items[Member], inner: Items[Member]
) -> tuple[Member, tuple[Member, ...]] | None:
    """The last loop inside, and the other ones: members that those above them leave more than one value."""
    loops: list[Member] = []
    for member in inner:
        if not _is_function(prefix_map(statement.domain, (*above, *loops, member)).range()):
            loops.append(member)
    return (loops[-1], tuple(loops[:-1])) if loops else None


def _is_function(values: isl.Set) -> bool:
    """Whether the last value follows from the others."""
    last = values.dim(isl.dim_type.set) - 1
    graph = isl.Map.from_range(values).move_dims(isl.dim_type.in_, 0, isl.dim_type.out, 0, last)
    return bool(graph.is_single_valued())


def _combines_lanes(statement: ScopStatement, read: isl.Map, loops: Items[Member], x: int, threads: int) -> bool:
    """Whether so many threads along x run the last of the loops, in which each of them reads all lanes of its warp.

    All of them read the same but for the lane.
    """
    if not (statement.accumulates and isinstance(statement.body.value, Read)):
        return False
    values = prefix_map(statement.domain, loops)
    touched, lane = values.reverse().apply_range(read), values.dim(isl.dim_type.out) - 1
    touched = touched.reset_tuple_id(isl.dim_type.out)
    last = touched.dim(isl.dim_type.out) - 1
    names = ", ".join(f"v{n}" for n in range(lane + 1))
    element = ", ".join(f"e{n}" for n in range(last + 1))
    text = f"{{ [{names}] -> [{element}] : e{last} = {LANES} * floor(v{x} / {LANES}) + v{lane} }}"
    if not touched.is_subset(isl.Map.read_from_str(read.get_ctx(), text)):
        return False
    points = values.range()
    every = points
    for position, count in ((x, threads), (lane, LANES)):
        every = with_all_values(every, position, isl.Val.int_from_si(read.get_ctx(), count - 1))
    others = touched.project_out(isl.dim_type.out, last, 1)
    for position in (x, lane):
        others = others.project_out(isl.dim_type.in_, position, 1).insert_dims(isl.dim_type.in_, position, 1)
    return bool(every.is_subset(points) and others.is_single_valued())


def _marked(node: Node, domain: isl.UnionSet, name: str, lane: Member) -> Node | None:
    """The subtree in which the loop is one over lanes, with nothing but the statement inside.

    What other loops there were inside have one iteration.
    """
    match node:
        case Leaf():
            return None
        case Band(members, _, child) if any(member is lane for member in members):
            position = next(number for number, member in enumerate(members) if member is lane)
            if statement_names(domain) != (name,) or not _is_single(child):
                return None
            return replace(node, members=(*members[:position], replace(lane, kind=LoopKind.LANES)), child=Leaf())
        case Band(child=child) | Extension(child=child):
            found = _marked(child, domain, name, lane)
            return None if found is None else replace(node, child=found)
        case Sequence(filters):
            for position, branch in enumerate(filters):
                inside = domain.intersect(branch.domain)
                if name in statement_names(inside):
                    found = _marked(branch.child, inside, name, lane)
                    if found is None:
                        return None
                    changed = replace(branch, child=found)
                    return Sequence((*filters[:position], changed, *filters[position + 1 :]))
            return None
        case _:
            assert_never(node)


def _is_single(node: Node) -> bool:
    """Whether there are only loops below."""
    match node:
        case Leaf():
            return True
        case Band(child=child):
            return _is_single(child)
        case Sequence() | Extension():
            return False
        case _:
            assert_never(node)
