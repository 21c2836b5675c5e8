"""Asynchronous copies of software-pipelined loops: where they are awaited.

A pipelined loop copies the tile of a later iteration while it computes on its own.  Its first iterations, the prologue,
only copy.  The barrier at its end commits the copies of an iteration as a group, and waits for the group that the next
iteration reads; so it stands in every iteration, in those of the prologue, too.
"""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.gpu.barriers.thread_conflicts import PLACES, Where, of_outermost
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Await, Rotation, Scop


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


def await_of(barrier: isl.Set, values: isl.Map, above: tuple[LoopKind, ...], rotation: Rotation) -> Await:
    """When a pipelined copy must be complete; ``values``: of the members above the copy, and further ones."""
    name, depth = barrier.get_tuple_name(), len(above)
    first = of_outermost(values, depth)
    for position, kind in enumerate(above):
        if kind is LoopKind.THREAD:
            first = first.project_out(isl.dim_type.out, position, 1).insert_dims(isl.dim_type.out, position, 1)
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
