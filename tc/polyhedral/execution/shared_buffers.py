"""The buffers that the threads of a block share, in the order of the text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tc.polyhedral.ir.loops import Allocation, Block, Buffer, Guard, Leaf, Loop, LoopTree


def shared_buffers(tree: LoopTree) -> Iterator[Buffer]:
    """From the first to the last; one that is allocated several times comes as often."""
    match tree:
        case Allocation(buffer, body):
            yield from (buffer,) if buffer.shared else ()
            yield from shared_buffers(body)
        case Loop():
            yield from shared_buffers(tree.body)
        case Block(children):
            for child in children:
                yield from shared_buffers(child)
        case Guard(_, then, otherwise):
            yield from shared_buffers(then)
            yield from shared_buffers(otherwise) if otherwise is not None else ()
        case Leaf():
            pass
        case _:
            assert_never(tree)
