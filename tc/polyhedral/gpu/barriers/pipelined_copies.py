"""Asynchronous copies, most of them of software-pipelined loops: where they are awaited.

A pipelined loop copies the tile of a later iteration while it computes on its own.  Its first iterations, the prologue,
only copy.  The barrier at its end commits the copies of an iteration as a group, and waits for the group that the next
iteration reads; so it stands in every iteration, in those of the prologue, too.  What is copied once, such as a
row that stays, is awaited at the first barrier behind it.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from typing import Final

import islpy as isl

from tc.polyhedral.analysis.extents import volume
from tc.polyhedral.gpu.barriers.thread_conflicts import PLACES, Where, of_outermost
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Await, Rotation, Scop

# Elements that each thread copies in several pieces, which would follow each other.
_MANY: Final = 16


def pipelined_copies(scop: Scop, where: Where, above: tuple[LoopKind, ...]) -> dict[str, Rotation]:
    """The copies below, by name, into slots for iterations of the innermost member; ``above``: the kinds of all."""
    depth = 0 if above[-1] in PLACES else sum(kind is not LoopKind.THREAD for kind in above)
    return {
        statement.name: access.rotation
        for statement in scop.statements
        for access in statement.promoted
        if access.rotation is not None and access.writes and access.depth == depth
        if statement.name in where
    }


def without_gaps(barrier: isl.Set, step: int) -> isl.Set:
    """The barrier at every ``step``-th value between the first and the last value of its last subscript."""
    names = [f"v{n}" for n in range(barrier.dim(isl.dim_type.set) - 1)]
    ends = [", ".join([*names, end]) for end in "ab"]
    text = f"{{ [{ends[0]}] -> [{ends[1]}] : exists n : n >= 0 and b = a + {step} n }}"
    later = isl.Map.read_from_str(barrier.get_ctx(), text)
    bare = barrier.reset_tuple_id()
    filled = bare.apply(later).intersect(bare.apply(later.reverse()))
    return filled.coalesce().set_tuple_name(barrier.get_tuple_name())


def copies_before(scop: Scop, branches: Items[Where], above: tuple[LoopKind, ...]) -> Where:
    """The copies to shared memory that are made once, outside of all loops but those over blocks and threads."""
    if any(kind not in PLACES for kind in above):
        return {}
    copies = {own.loads for own in scop.promotions if own.buffer.shared and own.rotation is None and not own.gathered}
    return {name: values for branch in branches for name, values in branch.items() if name in copies}


def awaits_once(barrier: isl.Set, copies: Where, above: tuple[LoopKind, ...]) -> dict[str, Await]:
    """When copies outside of all loops must be complete: at the one instance of a barrier behind them.

    There are none where each thread copies so little that it waits once anyway.
    """
    elements = sum(volume(isl.UnionSet.from_set(values.domain())) for values in copies.values())
    if elements < _MANY * volume(isl.UnionSet.from_set(barrier)):
        return {}
    name, found = barrier.get_tuple_name(), dict[str, Await]()
    for copy, values in copies.items():
        first = _of_all_threads(values, above).set_tuple_name(isl.dim_type.out, name).intersect_range(barrier)
        found[copy] = Await(name, first, isl.Map.empty(barrier.get_space().map_from_set()), 0)
    return found


def await_of(barrier: isl.Set, values: isl.Map, above: tuple[LoopKind, ...], rotation: Rotation) -> Await:
    """When a pipelined copy must be complete; ``values``: of the members above the copy, and further ones."""
    name, depth = barrier.get_tuple_name(), len(above)
    first = _of_all_threads(values, above)
    names = [f"v{n}" for n in range(depth)]
    further = (
        f"{{ {name}[{', '.join(names)}] -> {name}[{', '.join([*names[:-1], f'{names[-1]} + {rotation.step}'])}] }}"
    )
    return Await(
        name,
        first.set_tuple_name(isl.dim_type.out, name).intersect_range(barrier),
        isl.Map.read_from_str(barrier.get_ctx(), further),
        rotation.slots - 2,
    )


def _of_all_threads(values: isl.Map, above: tuple[LoopKind, ...]) -> isl.Map:
    """``{ copy -> [values of the members above] }``, with every thread in the place of its own."""
    found = of_outermost(values, len(above))
    for position, kind in enumerate(above):
        if kind is LoopKind.THREAD:
            found = found.project_out(isl.dim_type.out, position, 1).insert_dims(isl.dim_type.out, position, 1)
    return found
