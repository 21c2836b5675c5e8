"""Warps as tiles: the threads of a warp that multiply matrices lie in a rectangle.

Where each row of threads reads its own rows of one operand from shared memory, and each column its own columns of the
other, a warp of 8 by 4 threads reads 12 addresses, and one of 16 by 2 reads 18.  Neighbours in the warp, and every
other thread of it, share one of the operands each: such pairs read 16 bytes each in half of the time, as NVIDIA says of
compute capability 7 (CUTLASS has this order of lanes as ``RowMajorInterleaved``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from tc.language.program.program import iterators_in, reads_in
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.launch_order import Digit, LaunchOrder
from tc.polyhedral.ir.loops import (
    Allocation,
    Buffer,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    Sharing,
    StatementBody,
    variables,
)

# The threads of a warp along x and y.
_COLUMNS: Final = 8
_ROWS: Final = 4


def thread_order(
    nest: LoopTree, block: tuple[int, ...], bodies: Mapping[str, StatementBody], buffers: Collection[Buffer]
) -> LaunchOrder | None:
    """That of the block of a nest, if it multiplies matrices; None where iterations are as the hardware numbers them.

    ``block``: its threads, outermost loop first.  ``buffers``: those that allocations bring.
    """
    if len(block) != 2 or block[0] % _ROWS or block[1] % _COLUMNS:
        return None
    sharing = {buffer.name: buffer.sharing for buffer in buffers}
    found = False
    for leaf, path in loop_paths(nest, ()):
        if any(_is_of_lanes(step) for step in path):
            return None
        found = found or (isinstance(leaf, Instance) and _multiplies(leaf, path, bodies, sharing))
    return _interleaved(block[1]) if found else None


def _is_of_lanes(step: Step) -> bool:
    """Whether threads are told apart by where they are in their warp."""
    match step:
        case Loop(kind=kind):
            return kind is LoopKind.LANES
        case Allocation(buffer):
            return buffer.sharing is Sharing.LANES
        case _:
            return False


def _multiplies(
    leaf: Instance, path: tuple[Step, ...], bodies: Mapping[str, StatementBody], sharing: Mapping[str, Sharing]
) -> bool:
    """Whether it adds to results of the thread what it reads along one loop over threads each."""
    body = bodies[leaf.statement]
    threads = [step.iterator for step in path if isinstance(step, Loop) and step.kind is LoopKind.THREAD]
    if body.reduction is None or sharing.get(body.target) is not Sharing.THREAD or len(threads) != 2:
        return False
    values = dict(zip(body.iterators, leaf.arguments, strict=True))

    along = {
        tuple(name in moving for name in threads)
        for read in reads_in(body.value)
        if sharing.get(read.tensor) is Sharing.BLOCK
        for moving in [{name for own in iterators_in(read.subscripts) for name in variables(values[own])}]
    }
    return {(True, False), (False, True)} <= along


def _interleaved(columns: int) -> LaunchOrder:
    """Bits of the number in a warp belong to x and y in turns: x y x x y, from the last one."""
    warps = columns // _COLUMNS
    x = (Digit(1, 2, 1), Digit(4, 4, 2), Digit(32, warps, _COLUMNS))
    y = (Digit(2, 2, 1), Digit(16, 2, 2), Digit(32 * warps, 1 << 10, _ROWS))
    return LaunchOrder((y, x))
