"""What is launched: every outermost nest of loops, once or for each step around it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.polyhedral.analysis.ranges import Ranges, iterator_range
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.launch_sizes import LaunchSizes, launch_sizes
from tc.polyhedral.ir.loops import Block, Loop, LoopKind, LoopTree

# The positions in blocks that lead to a nest.
_Positions = tuple[int, ...]


def launched_nests(root: LoopTree, ranges: Ranges) -> Iterator[tuple[_Positions, LoopTree, Ranges]]:
    """The nests in the order of the text, where they stand, and the ranges of what is around them."""
    match root:
        case Block(children):
            for position, child in enumerate(children):
                for below, nest, around in _steps_or_nest(child, ranges):
                    yield (position, *below), nest, around
        case _:
            yield from _steps_or_nest(root, ranges)


def _steps_or_nest(tree: LoopTree, ranges: Ranges) -> Iterator[tuple[_Positions, LoopTree, Ranges]]:
    match tree:
        case Loop(kind=LoopKind.LAUNCH):
            yield from launched_nests(tree.body, {**ranges, tree.iterator: iterator_range(tree, ranges)})
        case _:
            yield (), tree, ranges


def steps_above_nest(path: tuple[Step, ...]) -> int:
    """How many steps of a path lead to the nest that is launched."""
    count = 0
    while True:
        if count < len(path) and isinstance(path[count], int):
            count += 1
        step = path[count] if count < len(path) else None
        if not (isinstance(step, Loop) and step.kind is LoopKind.LAUNCH):
            return count
        count += 1


class Launches:
    """How many blocks and threads every launch of the loops has, x last; ``sizes``: the open ones."""

    def __init__(self, root: LoopTree, sizes: Ranges) -> None:
        self._sizes: Final = {own: launch_sizes(nest, around) for own, nest, around in launched_nests(root, sizes)}

    def sizes(self, path: tuple[Step, ...]) -> LaunchSizes:
        """Of the launch that runs what the path leads to."""
        return self._sizes[tuple(step for step in path[: steps_above_nest(path)] if isinstance(step, int))]
