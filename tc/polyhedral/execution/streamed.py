"""Streams among the loops of a program: which loops are run as such, and what their users run."""

from __future__ import annotations

from dataclasses import replace
from typing import assert_never

from tc.base.frozen import frozen
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    Copy,
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ir.streams import Stream


@frozen
class Found:
    """A stream in the loops of a kernel, and the loops above it."""

    loop: Loop
    above: tuple[Loop, ...]

    @property
    def stream(self) -> Stream:
        """What it is."""
        assert self.loop.stream is not None, "it is one"
        return self.loop.stream


def stream_in(tree: LoopTree, above: tuple[Loop, ...] = ()) -> Found | None:
    """The stream of a kernel; None where it has none, or sums are taken from the loop at some of its iterations."""
    match tree:
        case Loop(kind=LoopKind.BLOCK | LoopKind.THREAD):
            return stream_in(tree.body, (*above, tree))
        case Loop():
            return Found(tree, above) if is_stream(tree) else None
        case Allocation(_, body):
            return stream_in(body, above)
        case Block(children):
            return next(filter(None, (stream_in(child, above) for child in children)), None)
        case Guard() | Leaf():
            return None
        case _:
            assert_never(tree)


def is_stream(loop: Loop) -> bool:
    """Whether the loop is printed as one: it may have been cut since."""
    stream = loop.stream
    if stream is None or loop.totals or loop.folds:
        return False
    return (loop.lower, loop.upper, loop.step) == (IndexLiteral(-stream.ahead), IndexLiteral(stream.tiles - 1), 1)


def users_loop(loop: Loop) -> Loop:
    """The loop of the users over tiles, without copies and barriers."""
    return replace(loop, lower=IndexLiteral(0), stream=None, body=without_copies(loop.body, loop.iterator))


def without_copies(tree: LoopTree, tile: str) -> LoopTree:
    """What uses tiles, which are counted from 0 on."""
    match tree:
        case Block(children):
            kept = tuple(own for child in children if (own := without_copies(child, tile)) != Block(()))
            return kept[0] if len(kept) == 1 else Block(kept)
        case Guard(IndexOperation(IndexOperator.GREATER_EQUAL, (IndexVariable(name), IndexLiteral(0))), then, None) if (
            name == tile
        ):
            return without_copies(then, tile)
        case Guard(condition, then, None):
            inner = without_copies(then, tile)
            return inner if inner == Block(()) else Guard(condition, inner, None)
        case Loop() | Allocation():
            inner = without_copies(tree.body, tile)
            return inner if inner == Block(()) else replace(tree, body=inner)
        case Copy(group=str()) | Barrier():
            return Block(())
        case _:
            return tree
