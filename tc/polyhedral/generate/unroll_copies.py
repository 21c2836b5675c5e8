"""Full unrolling: loops are replaced by copies of their bodies, in the last pass before printing.

The loops are proven as loops; that every copy is the body at its iteration is proven by
``tc.polyhedral.proof.verify_copies``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.polyhedral.analysis.fold_index import AtValues
from tc.polyhedral.analysis.substitute import of_parts
from tc.polyhedral.ir.copies import iterations
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
)

# The iterators of the unrolled loops around.
_Values: TypeAlias = Mapping[str, int]


def unroll_copies(root: LoopTree) -> LoopTree:
    """The loops with a copy of the body in the place of every iteration of those of the kind ``FULLY_UNROLLED``.

    These have numbers as bounds (``tc.polyhedral.generate.constant_unroll_bounds``).  Guards that are settled in a copy
    are left out.
    """
    return _Unrolling(AtValues()).unrolled(root, {})


@frozen
class _Unrolling:
    at: AtValues

    def unrolled(self, tree: LoopTree, values: _Values) -> LoopTree:
        """The tree with copies, at values of the unrolled loops around it."""
        match tree:
            case Scheduled(arguments=arguments):
                return replace(tree, arguments=tuple([self.at(a, values) for a in arguments])) if values else tree
            case Matrices():
                return of_parts(tree, lambda own: self.unrolled(own, values), lambda own: self.at(own, values))
            case Prefetch(offset=offset):
                return replace(tree, offset=self.at(offset, values))
            case Block(children):
                return _in_order(self.unrolled(child, values) for child in children)
            case Guard():
                return self.guard(tree, values)
            case Allocation():
                return replace(tree, body=self.unrolled(tree.body, values))
            case Loop(kind=LoopKind.FULLY_UNROLLED, iterator=iterator, body=body):
                return _in_order(self.unrolled(body, {**values, iterator: value}) for value in iterations(tree))
            case Loop(iterator=iterator):
                inner = {name: value for name, value in values.items() if name != iterator}
                lower, upper = (self.at(bound, values) for bound in (tree.lower, tree.upper))
                return replace(tree, lower=lower, upper=upper, body=self.unrolled(tree.body, inner))
            case _:
                assert_never(tree)

    def guard(self, guard: Guard, values: _Values) -> LoopTree:
        """The branches, or the one that the values settle on."""
        condition, otherwise = self.at(guard.condition, values), guard.otherwise
        other = Block(()) if otherwise is None else otherwise
        if isinstance(condition, IndexLiteral):
            return self.unrolled(guard.then if condition.value else other, values)
        then = self.unrolled(guard.then, values)
        return Guard(condition, then, None if otherwise is None else self.unrolled(other, values))


def _in_order(trees: Iterator[LoopTree]) -> LoopTree:
    """One after the other, without blocks in blocks."""
    children: list[LoopTree] = []
    for tree in trees:
        children += tree.children if isinstance(tree, Block) else (tree,)
    return children[0] if len(children) == 1 else Block(tuple(children))
