"""Threads that would wait for a total compute it each for themselves: a barrier less for each reduction of a row.

Partial results of warps are in shared memory.  The first thread added them up, all others waited for it once more.  Now
each thread reads and adds them up, in the same order, so that all of them have the same bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace

from tc.polyhedral.analysis.access_boxes import trips
from tc.polyhedral.ir.loops import (
    MOST_UNROLLED,
    Allocation,
    Barrier,
    Block,
    Buffer,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopProgram,
    LoopTree,
    Scheduled,
    Sharing,
    leaves,
)


def spread_totals(program: LoopProgram, is_same: Callable[[LoopProgram, LoopTree], bool]) -> LoopProgram:
    """The program in which threads compute totals for themselves, in kernels in which other loops do the same."""
    nests = program.root.children if isinstance(program.root, Block) else (program.root,)
    for number, nest in enumerate(nests):
        changed = _spread(program, nest)
        if changed is nest:
            continue
        every = (*nests[:number], changed, *nests[number + 1 :])
        root = Block(every) if isinstance(program.root, Block) else changed
        if is_same(program, root):
            buffers, _ = _in_a_row(changed)
            own = {buffer.name: buffer for buffer in buffers}
            promoted = tuple(own.get(buffer.name, buffer) for buffer in program.promoted)
            program, nests = replace(program, root=root, promoted=promoted), every
    return program


def _spread(program: LoopProgram, tree: LoopTree) -> LoopTree:
    """A kernel with the guards around totals taken away, and the barriers behind them; itself where there are none."""
    match tree:
        case Loop(iterator, kind=LoopKind.THREAD):
            buffers, parts = _in_a_row(tree.body)
            names = _totals(program, parts, iterator)
            if not names:
                return tree
            body: LoopTree = Block(tuple(_spread_parts(program, parts, iterator, names)))
            for buffer in reversed(buffers):
                body = Allocation(replace(buffer, sharing=Sharing.THREAD) if buffer.name in names else buffer, body)
            return replace(tree, body=body)
        case Loop(kind=LoopKind.BLOCK):
            body = _spread(program, tree.body)
            return tree if body is tree.body else replace(tree, body=body)
        case _:
            return tree


def _in_a_row(tree: LoopTree) -> tuple[list[Buffer], list[LoopTree]]:
    """The buffers of a thread, and what it runs one behind the other."""
    match tree:
        case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
            return _in_a_row(tree.body)
        case Allocation(buffer, body):
            buffers, parts = _in_a_row(body)
            return [buffer, *buffers], parts
        case Block(children):
            below = [_in_a_row(child) for child in children]
            return [b for buffers, _ in below for b in buffers], [part for _, parts in below for part in parts]
        case _:
            return [], [tree]


def _spread_parts(
    program: LoopProgram, parts: list[LoopTree], thread: str, names: frozenset[str]
) -> Iterator[LoopTree]:
    waiting = False  # for a total, which began before
    for part in parts:
        if _written_first(program, part, thread) & names:
            assert isinstance(part, Guard)
            yield from _in_a_row(part.then)[1]
            waiting = any(isinstance(leaf, Instance) and _reduces(program, leaf) for leaf in leaves(part.then))
        elif not (waiting and isinstance(part, Barrier) and part.pending is None):
            yield part
            waiting = waiting and not isinstance(part, Barrier)
        else:
            waiting = False


def _reduces(program: LoopProgram, leaf: Instance) -> bool:
    return any(body.name == leaf.statement and body.reduction is not None for body in program.bodies)


def _totals(program: LoopProgram, parts: list[LoopTree], thread: str) -> frozenset[str]:
    """Buffers of one element that only guards for the first thread write, which write nothing else, and are short."""
    single = {buffer.name for buffer in program.promoted if buffer.layout.span == 1}
    first = [_written_first(program, part, thread) for part in parts]
    others = (_written(program, part) for part, own in zip(parts, first, strict=True) if not own)
    single -= frozenset[str]().union(*others)
    long = (_iterations(part) > MOST_UNROLLED for part in parts)
    mixed = frozenset[str]().union(*(own for own, much in zip(first, long, strict=True) if much or not own <= single))
    return frozenset[str]().union(*first) & (single - mixed)


def _iterations(tree: LoopTree) -> float:
    """How often the statements of a tree run, in the longest of its loops."""
    match tree:
        case Loop():
            return (math.inf if (count := trips(tree)) is None else count) * _iterations(tree.body)
        case Block(children):
            return max(map(_iterations, children), default=1)
        case Guard():
            return _iterations(tree.then)
        case _:
            return 1


def _written_first(program: LoopProgram, tree: LoopTree, thread: str) -> frozenset[str]:
    """What a guard for the first thread writes."""
    first = IndexOperation(IndexOperator.EQUAL, (IndexVariable(thread), IndexLiteral(0)))
    return _written(program, tree) if isinstance(tree, Guard) and tree == Guard(first, tree.then, None) else frozenset()


def _written(program: LoopProgram, tree: LoopTree) -> frozenset[str]:
    bodies = {body.name: body.target for body in program.bodies}
    found = (leaf for leaf in leaves(tree) if isinstance(leaf, Scheduled) and not isinstance(leaf, Barrier))
    return frozenset(bodies[leaf.statement] for leaf in found)
