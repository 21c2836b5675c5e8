"""Where streams of tiles stand in loops, and what else their kernels run, for the proof of them."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass

import islpy as isl

from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.ir.loops import GroupMma, Loop, Scheduled


@dataclass(frozen=True)
class StreamLeaf:
    """A leaf of a kernel: ``{ loop iterators -> instance }``, these loops, and the matrix instructions around it.

    ``inside``: it is in the loop of the stream.
    """

    node: Scheduled
    loops: tuple[Loop, ...]
    instances: isl.Map
    matrices: GroupMma | None
    inside: bool


@dataclass(frozen=True)
class StreamPlace:
    """A loop that is a stream, what stands above it, the threads of a block along each loop, and all of its kernel."""

    loop: Loop
    above: tuple[Step, ...]
    block: tuple[int, ...]
    leaves: tuple[StreamLeaf, ...]


def stream_places(
    paths: Items[tuple[Scheduled, tuple[Step, ...]]], instances: Items[isl.Map], blocks: Items[tuple[int, ...]]
) -> Iterator[StreamPlace]:
    """Every stream once.  ``paths``: of all leaves, with their instances and the threads of their blocks."""
    known: list[Loop] = []
    for (_, path), block in zip(paths, blocks, strict=True):
        for depth, step in enumerate(path):
            if not isinstance(step, Loop) or step.stream is None or any(step is own for own in known):
                continue
            known.append(step)
            kernel = next(own for own in path if isinstance(own, Loop))
            leaves = (
                _leaf(node, other, own, step)
                for (node, other), own in zip(paths, instances, strict=True)
                if any(part is kernel for part in other)
            )
            yield StreamPlace(step, path[:depth], block, tuple(leaves))


def _leaf(node: Scheduled, path: tuple[Step, ...], instances: isl.Map, stream: Loop) -> StreamLeaf:
    loops = tuple(step for step in path if isinstance(step, Loop))
    matrices = next((step for step in path if isinstance(step, GroupMma)), None)
    return StreamLeaf(node, loops, instances, matrices, any(step is stream for step in path))
