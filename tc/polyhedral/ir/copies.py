"""The copies that unrolled loops become: one of the body for every iteration."""

from __future__ import annotations

from typing import assert_never

from tc.polyhedral.ir.loops import Allocation, Block, Guard, IndexLiteral, Leaf, Loop, LoopKind, LoopTree


def count_copies(root: LoopTree, *, copied: bool = False) -> int:
    """The statements and conditions in the text, at most: each once for every copy of the unrolled loops around it.

    So are the loops inside of unrolled ones.  ``copied``: the tree is.
    """
    match root:
        case Leaf():
            return 1
        case Block(children):
            return sum(count_copies(child, copied=copied) for child in children)
        case Guard(_, then, otherwise):
            other = 0 if otherwise is None else count_copies(otherwise, copied=copied)
            return 1 + count_copies(then, copied=copied) + other
        case Loop(kind=LoopKind.FULLY_UNROLLED):
            return len(iterations(root)) * count_copies(root.body, copied=True)
        case Loop():
            return copied + count_copies(root.body, copied=copied)
        case Allocation():
            return count_copies(root.body, copied=copied)
        case _:
            assert_never(root)


def iterations(loop: Loop) -> range:
    """The values of the iterator of an unrolled loop, in order."""
    match loop.lower, loop.upper:
        case IndexLiteral(first), IndexLiteral(last):
            return range(first, last + 1, loop.step)
        case _:
            raise AssertionError("unrolled loops begin and end at numbers")
