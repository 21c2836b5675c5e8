"""When the definition runs each instance: ``[place, step, ..., place, step, place, iterators]``, lexicographically.

A block has its place among the statements around it, and runs all its statements in each of its steps; blocks stand in
blocks.  Within one statement and step nothing is ordered: any order of its instances is legal.
"""

from __future__ import annotations

from collections.abc import Sequence as Items

import islpy as isl

from tc.polyhedral.ir.scop import ScopStatement


def places(statements: Items[ScopStatement]) -> tuple[tuple[int, ...], ...]:
    """Of every statement, its place among the statements around each of its blocks, and in the innermost of these.

    A block stands where its first statement does.
    """
    first: dict[tuple[int, ...], int] = {}
    for position, statement in enumerate(statements):
        for depth in range(1, len(statement.blocks) + 1):
            first.setdefault(statement.blocks[:depth], position)
    return tuple(
        (*(first[s.blocks[:depth]] for depth in range(1, len(s.blocks) + 1)), position)
        for position, s in enumerate(statements)
    )


def common_blocks(first: ScopStatement, second: ScopStatement) -> int:
    """How many blocks two statements share, from the outermost one on."""
    count = 0
    for a, b in zip(first.blocks, second.blocks, strict=False):
        if a != b:
            break
        count += 1
    return count


def original_order(statements: Items[ScopStatement], context: isl.Context) -> isl.UnionMap:
    """``{ instance -> time }`` of all statements."""
    found = []
    for statement, standing in zip(statements, places(statements), strict=True):
        times = isl.Map.identity(statement.domain.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
        for depth, place in enumerate(standing):
            times = _with_constant(times, 2 * depth, place)
        found.append(times.intersect_domain(statement.domain))
    width = max((times.dim(isl.dim_type.out) for times in found), default=0)
    union = isl.UnionMap.empty(isl.Space.params_alloc(context, 0))
    for times in found:
        padded = times
        for dimension in range(times.dim(isl.dim_type.out), width):
            padded = _with_constant(padded, dimension, 0)
        union = union.union(isl.UnionMap.from_map(padded))
    return union


def _with_constant(times: isl.Map, dimension: int, value: int) -> isl.Map:
    times = times.insert_dims(isl.dim_type.out, dimension, 1)
    return times.fix_val(isl.dim_type.out, dimension, isl.Val.int_from_si(times.get_ctx(), value))
