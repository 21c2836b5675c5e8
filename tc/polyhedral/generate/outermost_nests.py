"""The outermost loop nests on a GPU: each is a kernel, unless it is fused with others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import islpy as isl

from tc.language.isl.pieces import sets_of
from tc.polyhedral.analysis.extents import volume
from tc.polyhedral.analysis.ranges import Ranges
from tc.polyhedral.execution.launch_sizes import LaunchSizes, launch_sizes
from tc.polyhedral.execution.launches import launched_nests
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import Allocation, Barrier, Buffer, Loop, LoopKind, LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.transform.buffer_layouts import bytes_of


@dataclass(frozen=True)
class OutermostNest:
    """The loops, how many blocks and threads run them, and what they do.

    ``statements``: their names.  ``instances``: of the statements of the program.  ``reads`` and ``writes``: elements
    of tensors.  ``buffers``: those that the loops allocate.  ``meets``: threads wait for each other, or exchange what
    is in their registers.  ``launches``: in one call, one for each step around the loops.
    """

    loops: LoopTree
    sizes: LaunchSizes
    statements: tuple[str, ...]
    instances: int
    reads: isl.UnionSet
    writes: isl.UnionSet
    buffers: tuple[Buffer, ...]
    meets: bool
    launches: int

    @property
    def shared_bytes(self) -> int:
        """Of the memory that the threads of a block share."""
        return sum(bytes_of(buffer.layout) for buffer in self.buffers if buffer.shared)

    def conflicts(self, other: OutermostNest) -> tuple[str, ...]:
        """The tensors, as isl calls them, of which both touch an element that one of them writes."""
        found = self.writes.intersect(other.reads.union(other.writes)).union(self.reads.intersect(other.writes))
        return tuple(sorted({own.get_tuple_name() for own in sets_of(found)}))


def outermost_nests(root: LoopTree, scop: Scop, ranges: Ranges) -> Iterator[OutermostNest]:
    """The nests in the order in which they run; ``ranges``: of the open sizes."""
    copies = {name for promotion in scop.promotions for name in (promotion.loads, promotion.stores)}
    for _, nest, around in launched_nests(root, ranges):
        paths = list(loop_paths(nest, ()))
        names = tuple(dict.fromkeys(leaf.statement for leaf, _ in paths))
        steps = [step for _, path in paths for step in path]
        own = [statement for statement in scop.statements if statement.name in names]
        reads = writes = isl.UnionSet.empty(isl.Space.params_alloc(scop.context, 0))
        for statement in own:
            for relation in statement.reads:
                reads = reads.union(isl.UnionSet.from_set(relation.range()))
            for relation in statement.writes:
                writes = writes.union(isl.UnionSet.from_set(relation.range()))
        yield OutermostNest(
            loops=nest,
            sizes=launch_sizes(nest, around),
            launches=_launches(ranges, around),
            statements=names,
            instances=sum(
                volume(isl.UnionSet.from_set(statement.domain)) for statement in own if statement.name not in copies
            ),
            reads=reads,
            writes=writes,
            buffers=tuple({s.buffer.name: s.buffer for s in steps if isinstance(s, Allocation)}.values()),
            meets=any(isinstance(leaf, Barrier) for leaf, _ in paths)
            or any(isinstance(step, Loop) and step.kind is LoopKind.LANES for step in steps),
        )


def _launches(outside: Ranges, around: Ranges) -> int:
    """How many values the iterators around a launch have."""
    steps = (values for name, values in around.items() if name not in outside)
    return math.prod(int(values.most - values.least) + 1 for values in steps)
