"""When a definition runs each instance: ``[place, step, ..., place, step, place, iterators]``, lexicographically.

A block has its place among the statements around it, and runs all its statements in each of its steps; blocks stand in
blocks.  Within one statement and step nothing is ordered: any order of its instances is legal.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

import islpy as isl

# The numbers of the blocks around a statement, outermost first.
Blocks = tuple[int, ...]


def places(blocks: Items[Blocks]) -> tuple[tuple[int, ...], ...]:
    """Of every statement, its place among the statements around each of its blocks, and in the innermost of these.

    A block stands where its first statement does.
    """
    first: dict[Blocks, int] = {}
    for position, around in enumerate(blocks):
        for depth in range(1, len(around) + 1):
            first.setdefault(around[:depth], position)
    return tuple(
        (*(first[around[:depth]] for depth in range(1, len(around) + 1)), position)
        for position, around in enumerate(blocks)
    )


def original_order(statements: Items[tuple[Blocks, isl.Set]], context: isl.Context) -> isl.UnionMap:
    """``{ instance -> time }`` of all statements: their blocks, and their domains, whose first dimensions are steps."""
    found = []
    for (_, domain), standing in zip(statements, places([blocks for blocks, _ in statements]), strict=True):
        times = isl.Map.identity(domain.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
        for depth, place in enumerate(standing):
            times = _with_constant(times, 2 * depth, place)
        found.append(times.intersect_domain(domain))
    width = max((times.dim(isl.dim_type.out) for times in found), default=0)
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    for times in found:
        padded = times
        for dimension in range(times.dim(isl.dim_type.out), width):
            padded = _with_constant(padded, dimension, 0)
        union = union.union(isl.UnionMap.from_map(padded))
    return union


def runs_later(first: isl.Space, blocks: Blocks, second: isl.Space, others: Blocks, *, is_behind: bool) -> isl.Map:
    """``{ first -> second }``: pairs of instances where the first is later than the second.

    ``is_behind``: whether the first stands behind the second in the text.
    """
    space = first.map_from_domain_and_range(second)
    shared = 0
    while shared < min(len(blocks), len(others)) and blocks[shared] == others[shared]:
        shared += 1
    if shared == 0:
        return isl.Map.universe(space) if is_behind else isl.Map.empty(space)
    return isl.Map.lex_ge_first(space, shared) if is_behind else isl.Map.lex_gt_first(space, shared)


def in_one_step(space: isl.Space, depth: int) -> isl.Map:
    """The pairs of instances of one statement, or of two in the same blocks, so many, in the same step."""
    return isl.Map.lex_le_first(space, depth).intersect(isl.Map.lex_ge_first(space, depth))


def _with_constant(times: isl.Map, dimension: int, value: int) -> isl.Map:
    times = times.insert_dims(isl.dim_type.out, dimension, 1)
    return times.fix_val(isl.dim_type.out, dimension, isl.Val.int_from_si(times.get_ctx(), value))
