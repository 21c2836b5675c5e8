"""Moves guards around several outermost nests into each of them, since each nest is launched on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from tc.polyhedral.ir.loops import Block, Guard, Loop, LoopKind, LoopTree


def guard_nests(root: LoopTree) -> LoopTree:
    """The loops with nothing but a single nest below every outermost guard.

    Such guards ask for open sizes, or for steps that are launched.
    """
    nests = tuple(_nests(root))
    return nests[0] if len(nests) == 1 else Block(nests)


def _nests(tree: LoopTree) -> Iterator[LoopTree]:
    match tree:
        case Block(children):
            for child in children:
                yield from _nests(child)
        case Guard(condition, then, otherwise):
            for nest in _nests(then):
                yield Guard(condition, nest, None)
            if otherwise is not None:
                for nest in _nests(otherwise):
                    yield Guard(condition, Block(()), nest)
        case Loop(kind=LoopKind.LAUNCH):
            yield replace(tree, body=guard_nests(tree.body))
        case _:
            yield tree
