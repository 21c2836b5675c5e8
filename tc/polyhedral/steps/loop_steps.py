"""Steps that show in the loops around statements: tiles, their order, who runs them, lanes."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from typing import Final

import islpy as isl

from tc.base.counted import counted
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.steps.loops_around import LoopAround, Nest
from tc.polyhedral.steps.step import Rule

# Whoever runs the iterations of such loops, and the rule that has it so.
_MAPPED: Final = {
    LoopKind.BLOCK: (Rule.MAP_WORKGROUPS, "blocks"),
    LoopKind.THREAD: (Rule.MAP_LOCAL, "threads"),
    LoopKind.PARALLEL: (Rule.MAP_GLOBAL, "parts that cores share"),
}


def loop_steps(nest: Nest, vector_bytes: int) -> Iterator[tuple[Rule, str]]:
    """The steps of one statement; ``vector_bytes``: of a vector register, 0 where the target's compiler has none."""
    yield from _tiles(nest)
    yield from _order(nest)
    for kind, (rule, whom) in _MAPPED.items():
        shared = [loop for loop in nest.loops if loop.member.kind is kind]
        if shared:
            yield rule, f"{_texts(shared)} to {' x '.join(str(loop.extent) for loop in shared)} {whom}"
    yield from _lanes(nest, vector_bytes)


def _texts(loops: Items[LoopAround]) -> str:
    return ", ".join(loop.text for loop in loops)


def _tiles(nest: Nest) -> Iterator[tuple[Rule, str]]:
    """A loop that is cut shows as several."""
    for iterator in dict.fromkeys(loop.iterator for loop in nest.loops if loop.tile):
        sizes = dict.fromkeys(loop.tile for loop in nest.loops if loop.tile and loop.iterator == iterator)
        if sum(loop.iterator == iterator for loop in nest.loops) > 1:
            yield Rule.SPLIT_JOIN, f"strip-mining: {iterator} in tiles of {' and of '.join(map(str, sizes))}"


def _order(nest: Nest) -> Iterator[tuple[Rule, str]]:
    """Loops that do not stand in the order of the statement's iterators."""
    own = nest.statement.body.iterators[: nest.statement.domain.dim(isl.dim_type.set)]
    counted_loops = [loop for loop in nest.loops if loop.iterator in own]
    places = [own.index(loop.iterator) for loop in counted_loops if loop.iterator is not None]
    if places != sorted(places):
        yield Rule.INTERCHANGE, f"{_texts(counted_loops)} instead of {', '.join(own)}"


def _lanes(nest: Nest, vector_bytes: int) -> Iterator[tuple[Rule, str]]:
    body = nest.statement.body
    for loop in nest.loops:
        match loop.member.kind:
            case LoopKind.VECTOR:
                lanes = vector_bytes // body.value.type.itemsize
                width = f", up to {lanes} lanes" if lanes > 1 else ""
                yield Rule.AS_VECTOR, f"along {loop.text}, {counted(loop.extent, 'element')}{width}"
            case LoopKind.REDUCTION if vector_bytes:
                yield Rule.PARTIAL_REDUCTION, f"lanes have a part each, along {loop.text}"
            case LoopKind.LANES:
                yield Rule.PARTIAL_REDUCTION, f"the lanes of a warp exchange their parts, along {loop.text}"
            case _:
                pass
