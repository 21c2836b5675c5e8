"""Unrolled loops as copies of their bodies: the last step before the text, and one that is proven by its pattern.

The loops are proven as loops; that every copy is the body at its iteration is for ``tc.polyhedral.verify_copies``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TypeAlias, assert_never

from tc.polyhedral.fold_index import at_values
from tc.polyhedral.loops import (
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)

# The iterators of the unrolled loops around.
_Values: TypeAlias = Mapping[str, int]


def unroll_copies(root: LoopTree) -> LoopTree:
    """The loops with a copy of the body in the place of every iteration of those of the kind ``COPIED``.

    These have numbers as bounds (``tc.polyhedral.fix_copied``).  Guards that are settled in a copy are left out.
    """
    return _unrolled(root, {})


def count_copies(root: LoopTree) -> int:
    """The statements and conditions in the text, at most: each once for every copy of the unrolled loops around it."""
    match root:
        case Instance():
            return 1
        case Block(children):
            return sum(count_copies(child) for child in children)
        case Guard(_, then, otherwise):
            return 1 + count_copies(then) + (0 if otherwise is None else count_copies(otherwise))
        case Loop(kind=LoopKind.COPIED):
            return len(iterations(root)) * count_copies(root.body)
        case Loop() | Allocation():
            return count_copies(root.body)
        case _:
            assert_never(root)


def iterations(loop: Loop) -> range:
    """The values of the iterator of an unrolled loop, in order."""
    match loop.lower, loop.upper:
        case IndexLiteral(first), IndexLiteral(last):
            return range(first, last + 1, loop.step)
        case _:
            raise AssertionError("unrolled loops begin and end at numbers")


def _unrolled(tree: LoopTree, values: _Values) -> LoopTree:
    match tree:
        case Instance(arguments=arguments):
            return replace(tree, arguments=tuple(at_values(a, values) for a in arguments)) if values else tree
        case Block(children):
            return _in_order(_unrolled(child, values) for child in children)
        case Guard(condition, then, otherwise):
            condition = at_values(condition, values)
            other = Block(()) if otherwise is None else otherwise
            if isinstance(condition, IndexLiteral):
                return _unrolled(then if condition.value else other, values)
            return Guard(condition, _unrolled(then, values), None if otherwise is None else _unrolled(other, values))
        case Allocation():
            return replace(tree, body=_unrolled(tree.body, values))
        case Loop(kind=LoopKind.COPIED, iterator=iterator, body=body):
            return _in_order(_unrolled(body, {**values, iterator: value}) for value in iterations(tree))
        case Loop(iterator=iterator):
            assert not tree.requests, "what is asked for ahead is decided when loops are printed"
            inner = {name: value for name, value in values.items() if name != iterator}
            lower, upper = (at_values(bound, values) for bound in (tree.lower, tree.upper))
            return replace(tree, lower=lower, upper=upper, body=_unrolled(tree.body, inner))
        case _:
            assert_never(tree)


def _in_order(trees: Iterator[LoopTree]) -> LoopTree:
    """One after the other, without blocks in blocks."""
    children: list[LoopTree] = []
    for tree in trees:
        children += tree.children if isinstance(tree, Block) else (tree,)
    return children[0] if len(children) == 1 else Block(tuple(children))
