"""Where prefetches stand: in loops around register tiles, and in loops inside of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final, assert_never

from tc.language.program.specialization import Layout
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    Prefetch,
)

# Smaller tensors stay in the caches from call to call.
_LARGE_BYTES: Final = 1 << 20
# As many lines as a core of today waits for at one time; further ones would wait in front of what a tile reads.
MOST_LINES: Final = 40


def is_large(layout: Layout) -> bool:
    """Whether a tensor does not stay in the caches from call to call."""
    return layout.span * layout.type.itemsize >= _LARGE_BYTES


def change_tiles(tree: LoopTree, change: Callable[[tuple[Loop, ...]], Loop], around: tuple[Loop, ...] = ()) -> LoopTree:
    """The tree with every loop whose body is a register tile replaced by ``change``.

    ``change`` gets the nest of loops, outermost first, of which it is the last one.
    """
    match tree:
        case Loop() if _holds_tile(tree.body):
            return change((*around, tree))
        case Loop():
            return replace(tree, body=change_tiles(tree.body, change, (*around, tree)))
        case Block(children):
            return Block(tuple(change_tiles(child, change, around) for child in children))
        case Allocation(buffer, body):
            return Allocation(buffer, change_tiles(body, change, around))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else change_tiles(otherwise, change, around)
            return Guard(condition, change_tiles(then, change, around), other)
        case Leaf():
            return tree
        case _:
            assert_never(tree)


def _holds_tile(tree: LoopTree, *, inside: bool = False) -> bool:
    """Whether a register tile is allocated here, with no loop around it; ``inside`` an allocation."""
    match tree:
        case Loop():
            return inside and tree.kind is LoopKind.REGISTER
        case Allocation(_, body):
            return _holds_tile(body, inside=True)
        case Block(children):
            return any(_holds_tile(child, inside=inside) for child in children)
        case Guard(_, then, otherwise):
            return any(part is not None and _holds_tile(part, inside=inside) for part in (then, otherwise))
        case Leaf():
            return False
        case _:
            assert_never(tree)


def reductions(tree: LoopTree) -> tuple[Loop, ...]:
    """The loops, one inside the other, in which a register tile computes; none where several stand side by side.

    Where full and partial tiles are apart, those of the full ones, if the others have the same.
    """
    match tree:
        case Allocation(_, body):
            return reductions(body)
        case Block(children):
            loops = [child for child in children if _is_reduction(child)]
            return reductions(loops[0]) if len(loops) == 1 else ()
        case Guard(_, then, otherwise) if otherwise is not None:
            full, partial = reductions(then), reductions(otherwise)
            return full if list(map(_header, full)) == list(map(_header, partial)) else ()
        case Loop(kind=LoopKind.SEQUENTIAL):
            return (tree, *reductions(tree.body))
        case _:
            return ()


def _header(loop: Loop) -> tuple[str, IndexExpression, IndexExpression, int]:
    return loop.iterator, loop.lower, loop.upper, loop.step


def _is_reduction(tree: LoopTree) -> bool:
    """Whether it is neither a loop over the rows of a tile nor a prefetch."""
    return not isinstance(tree, Prefetch) and not (isinstance(tree, Loop) and tree.kind is LoopKind.REGISTER)


def prefetches(loop: Loop) -> tuple[Prefetch, ...]:
    """Those at the beginning of every iteration."""
    children = loop.body.children if isinstance(loop.body, Block) else (loop.body,)
    return tuple(child for child in children if isinstance(child, Prefetch))


def with_prefetches(loop: Loop, further: Iterable[Prefetch]) -> Loop:
    """The loop with further prefetches at the beginning of every iteration, behind those that it has."""
    children = loop.body.children if isinstance(loop.body, Block) else (loop.body,)
    own = prefetches(loop)
    found = (*own, *further, *children[len(own) :])
    return replace(loop, body=Block(found)) if len(found) > len(children) else loop


def with_prefetch(tree: Loop, holder: Loop, prefetch: Prefetch) -> Loop:
    """The loop around a tile with one more prefetch in itself, or in one of the loops that ``reductions`` found."""
    if _header(tree) == _header(holder):
        return with_prefetches(tree, (prefetch,))

    def inside(tree: LoopTree) -> LoopTree:
        match tree:
            case Allocation(buffer, body):
                return Allocation(buffer, inside(body))
            case Block(children):
                return Block(tuple(inside(child) if _is_reduction(child) else child for child in children))
            case Guard(condition, then, otherwise) if otherwise is not None:
                return Guard(condition, inside(then), inside(otherwise))
            case Loop():
                return with_prefetch(tree, holder, prefetch)
            case _:
                raise AssertionError("there are only loops on the way")

    return replace(tree, body=inside(tree.body))
