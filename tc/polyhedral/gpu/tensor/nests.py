"""Nests that all lanes of a warp, or of a group of four warps, run together: where their matrix instructions stand.

Guards that lanes pass one by one stand inside of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import assert_never

from tc.base.frozen import frozen
from tc.language.program.program import IteratorReference, Read
from tc.polyhedral.gpu.tensor.tile_shapes import GROUP, QUADS, are_warpgroups
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Copy,
    Guard,
    IndexExpression,
    IndexLiteral,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    conjuncts,
    variables,
)


@frozen
class Around:
    """The loops over threads around a place, and the ``guards`` there that not all lanes may pass.

    ``along``: how many of the loops, the innermost ones, say the lane.  ``whole``: nothing else there depends on it.
    """

    along: int
    threads: tuple[Loop, ...] = ()
    guards: tuple[IndexExpression, ...] = ()
    whole: bool = True

    @property
    def lanes(self) -> tuple[str, ...] | None:
        """The iterators along x and y, and z where that says the lane; None where lanes are no whole warps or groups.

        Warps have 4 threads along x and 8 along y.
        """
        loops = self.threads[-self.along :]
        extents = [loop.upper.value + 1 for loop in loops if isinstance(loop.upper, IndexLiteral)]
        if len(extents) < self.along or not self.whole:
            return None
        whole = are_warpgroups(extents) if self.along > 2 else extents[-1] == QUADS and extents[-2] % GROUP == 0
        return tuple(loop.iterator for loop in reversed(loops)) if whole else None

    def depends(self, mentioned: set[str]) -> bool:
        """Whether what mentions these names may differ among lanes."""
        return bool({loop.iterator for loop in self.threads[-self.along :]} & mentioned)

    def inside(self, loop: Loop) -> Around:
        """Those in the body of a loop."""
        if loop.kind is LoopKind.THREAD:
            return replace(self, threads=(*self.threads, loop))
        depends = self.depends(variables(loop.lower) | variables(loop.upper))
        return replace(self, whole=False) if depends else self


@frozen
class Finder:
    """Finds nests that whole warps, or groups of them, run together.

    ``make``: the matrix instructions for a nest around one instance, None where there are none.
    """

    make: Callable[[Loop, Around], LoopTree | None]

    def visit(self, tree: LoopTree, around: Around) -> LoopTree:
        """The tree with matrix instructions."""
        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, around) for child in children))
            case Guard(condition, then, None) if around.depends(variables(condition)):
                found = self.below(tree, around)
                return found or Guard(condition, self.visit(then, replace(around, whole=False)), None)
            case Guard(condition, then, otherwise):
                inside = replace(around, whole=around.whole and not around.depends(variables(condition)))
                other = None if otherwise is None else self.visit(otherwise, inside)
                return Guard(condition, self.visit(then, inside), other)
            case Allocation():
                return replace(tree, body=self.visit(tree.body, around))
            case Loop():
                found = self.instructions(tree, around)
                return found or replace(tree, body=self.visit(tree.body, around.inside(tree)))
            case _:
                assert_never(tree)

    def below(self, tree: LoopTree, around: Around) -> LoopTree | None:
        """Trees below guards that lanes pass one by one, if matrix instructions are all that they do.

        The guards then stand inside of these.
        """
        match tree:
            case Block(children):
                found = [self.below(child, around) for child in children]
                return None if None in found else Block(tuple(own for own in found if own is not None))
            case Guard(condition, then, None):
                apart = [part for part in conjuncts(condition) if around.depends(variables(part))]
                inner = self.below(then, replace(around, guards=(*around.guards, *apart)))
                for part in conjuncts(condition):
                    inner = inner if inner is None or part in apart else Guard(part, inner, None)
                return inner
            case Loop():
                own = self.instructions(tree, around)
                inner = None if own is not None else self.below(tree.body, around.inside(tree))
                return own or (None if inner is None else replace(tree, body=inner))
            case Guard() | Allocation() | Leaf():
                return None
            case _:
                assert_never(tree)

    def instructions(self, nest: Loop, around: Around) -> LoopTree | None:
        """The matrix instructions for a nest over steps, rows and columns; None where it is none.

        Each statement in it has its own.
        """
        alone = [self.make(own, around) for own in _distributed(nest)]
        found = [own for own in alone if own is not None]
        return None if not found or len(found) < len(alone) else found[0] if len(found) == 1 else Block(tuple(found))


def _distributed(nest: Loop) -> list[Loop]:
    """The nest for each of the instances in it."""
    match nest.body:
        case Block(children):
            return [replace(nest, body=child) for child in children]
        case Loop() as inner:
            return [replace(nest, body=own) for own in _distributed(inner)]
        case Guard(condition, Loop() as inner, None):
            return [replace(nest, body=Guard(condition, own, None)) for own in _distributed(inner)]
        case Guard(condition, Block(children), None):
            return [replace(nest, body=Guard(condition, child, None)) for child in children]
        case _:
            return [nest]


def loops_of(nest: LoopTree) -> Iterator[Loop]:
    """The loops of a nest around one thing, outermost first, whatever guards stand between them."""
    while isinstance(nest, Loop | Guard):
        if isinstance(nest, Loop):
            yield nest
            nest = nest.body
        else:
            nest = nest.then if nest.otherwise is None else Block(())


def asked_in(nest: LoopTree) -> set[str]:
    """What the guards of a nest mention."""
    found: set[str] = set()
    while isinstance(nest, Loop | Guard):
        found |= variables(nest.condition) if isinstance(nest, Guard) else set()
        nest = nest.body if isinstance(nest, Loop) else nest.then
    return found


def instance_of(nest: Loop) -> Instance | None:
    """The only thing in a nest of unrolled loops."""
    *_, last = loops_of(nest)
    unrolled = all(loop.kind is LoopKind.UNROLLED for loop in loops_of(nest) if loop is not nest)
    inner = last.body
    while isinstance(inner, Guard) and inner.otherwise is None:
        inner = inner.then
    return inner if unrolled and isinstance(inner, Instance) and not isinstance(inner, Copy) else None


def count_of(loop: Loop) -> int | None:
    """How many iterations the loop has, from 0 on."""
    match loop:
        case Loop(lower=IndexLiteral(0), upper=IndexLiteral(last), step=1):
            return last + 1
        case _:
            return None


def names_of(factor: Read) -> tuple[str, ...]:
    """Its subscripts, which are iterators."""
    return tuple(own.name for own in factor.subscripts if isinstance(own, IteratorReference))
