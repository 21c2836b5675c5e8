"""The order of the blocks of a product: those that run at the same time have few rows and few columns.

Blocks in a row of the grid share what they read of one factor; of the other one, each has its own.  In groups of so
many rows of the grid, through which blocks go column by column, those that run at a time read less of both together
(*Triton*, tutorial on matrix multiplication: grouped ordering).  That is what the second-level cache has to hold.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tc.language.program.program import iterators_in, reads_in
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.polyhedral.ir.loops import Buffer, Copy, Loop, LoopKind, LoopTree, Sharing, StatementBody, variables

# Groups of more rows than this have no more to gain, and those that gain less than a tenth are not worth the divisions.
_MOST: Final = 64
_GAIN: Final = 0.9
# Of blocks that nearly all run at a time, the order does not matter.
_WAVES: Final = 2


def block_order(
    nest: LoopTree,
    grid: tuple[int, ...],
    bodies: Mapping[str, StatementBody],
    buffers: Collection[Buffer],
    multiprocessors: int,
) -> LaunchOrder | None:
    """That of the blocks of a nest along its last two dimensions; None where they run as the hardware numbers them.

    ``grid``: its blocks, outermost loop first.  ``buffers``: those that allocations bring.
    """
    if len(grid) < 2 or grid[-1] * grid[-2] <= _WAVES * multiprocessors:
        return None
    read = _bytes(nest, bodies, buffers)
    if read is None:
        return None
    height, width = grid[-2:]

    def bytes(rows: int) -> float:
        """Of the blocks that run at a time, one on each multiprocessor, in groups of so many rows."""
        columns, groups = min(width, multiprocessors / rows), max(1.0, multiprocessors / (rows * width))
        return rows * groups * read[0] + columns * read[1]

    found = min((n for n in range(1, min(height, _MOST) + 1) if height % n == 0), key=bytes)
    if bytes(found) > _GAIN * bytes(1):
        return None
    rows = (Digit(1, found, 1), Digit(found * width, height // found, found))
    return LaunchOrder((rows, (Digit(found, width, 1),)))


def _bytes(nest: LoopTree, bodies: Mapping[str, StatementBody], buffers: Collection[Buffer]) -> tuple[int, int] | None:
    """Bytes of shared memory that are copied for each row and for each column of blocks; None where others are."""
    shared = {own.name: own.layout.span * own.layout.type.itemsize for own in buffers if own.sharing is Sharing.BLOCK}
    found: dict[str, tuple[bool, ...]] = {}
    for leaf, path in loop_paths(nest, ()):
        if not isinstance(leaf, Copy) or bodies[leaf.statement].target not in shared:
            continue
        body = bodies[leaf.statement]
        values = dict(zip(body.iterators, leaf.arguments, strict=True))
        used = (name for read in reads_in(body.value) for name in iterators_in(read.subscripts))
        moving = {name for own in used for name in variables(values[own])}
        blocks = [step.iterator for step in path if isinstance(step, Loop) and step.kind is LoopKind.BLOCK]
        found[body.target] = tuple(name in moving for name in blocks[-2:])
    rows, columns = (
        sum(shared[name] for name, own in found.items() if own == along) for along in ((True, False), (False, True))
    )
    return (rows, columns) if rows and columns and (True, True) not in found.values() else None
