"""Branches of a sequence that differ in the names of their statements only: isl generates the loops of one of them.

The gates of a recurrent network and the steps of a stencil have many such branches.  What a branch becomes depends on
the instances and functions of its statements, here and above, which are compared as texts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from collections.abc import Set as AbstractSet
from dataclasses import field, replace
from itertools import count
from types import MappingProxyType
from typing import Final, TypeAlias, assert_never

from tc.base.frozen import frozen
from tc.polyhedral.generate.schedule_text import (
    BranchText,
    ExtensionText,
    MarkText,
    MemberText,
    NodeText,
    SequenceText,
    Texts,
    TreeText,
)


@frozen
class Twin:
    """A branch at a position of its sequence; ``names``: its statements and marks, by those of the one generated."""

    position: int
    names: Mapping[str, str]


@frozen
class Twins:
    """The branches that one is generated for, of a sequence with this number."""

    sequence: int
    branches: tuple[Twin, ...]


@frozen
class Reduced:
    """A tree without branches that are like others; ``twins``: by the mark above the one that is left."""

    tree: TreeText
    twins: Mapping[str, Twins] = field(default_factory=lambda: MappingProxyType({}))


def without_repeats(tree: TreeText, barriers: AbstractSet[str]) -> Reduced:
    """The tree with one of all branches that are alike; all branches of sequences that lose some have marks.

    Sequences with barriers keep theirs: a mark may bring a guard, and all threads are to meet in the barrier.
    """
    reduction = _Reduction(barriers)
    root = reduction.node(tree.root, {name: (text,) for name, text in tree.domain.own.items()})
    if not reduction.dropped:
        return Reduced(tree)
    return Reduced(TreeText(tree.domain.without(reduction.dropped), _without(root, reduction.dropped)), reduction.twins)


# Of every statement that gets to a node, the texts about it on the way.
_Known: TypeAlias = Mapping[str, tuple[str, ...]]


class _Reduction:
    """One pass over a tree."""

    def __init__(self, barriers: AbstractSet[str]) -> None:
        self.barriers: Final = barriers
        self.dropped: Final[set[str]] = set()
        self.twins: Final[dict[str, Twins]] = {}
        self._sequences: Final = count()

    def node(self, node: NodeText, known: _Known) -> NodeText:
        match node:
            case None:
                return None
            case MemberText(child=child):
                return replace(node, child=self.node(child, _further(known, node.function)))
            case MarkText(child=child):
                return replace(node, child=self.node(child, known))
            case ExtensionText(instances, child):
                return replace(node, child=self.node(child, {**known, **_further({}, instances)}))
            case BranchText(child=child):
                return replace(node, child=self.node(child, known))
            case SequenceText(branches):
                return self.sequence(branches, known)
            case _:
                assert_never(node)

    def sequence(self, branches: Items[BranchText], known: _Known) -> NodeText:
        inside = [_further(known, branch.domain) for branch in branches]
        waits = any(branch.domain.own.keys() <= self.barriers for branch in branches)
        groups = [] if waits else _groups(branches, inside)
        if waits or len(groups) == len(branches):
            kept = [replace(b, child=self.node(b.child, own)) for b, own in zip(branches, inside, strict=True)]
            return SequenceText(tuple(kept))
        number, marked = next(self._sequences), list[BranchText]()
        for first, *others in groups:
            branch, names = branches[first.position], first.names
            mark = f"alike:{number}:{first.position}"
            self.twins[mark] = Twins(
                number,
                (
                    Twin(first.position, MappingProxyType({})),
                    *(Twin(own.position, dict(zip(names, own.names, strict=True))) for own in others),
                ),
            )
            self.dropped.update(name for own in others for name in branches[own.position].domain.own)
            below = self.node(branch.child, inside[first.position])
            marked.append(
                replace(branch, child=MarkText(mark, BranchText(branch.domain, None) if below is None else below))
            )
        return marked[0].child if len(marked) == 1 else SequenceText(tuple(marked))


def _further(known: _Known, texts: Texts) -> _Known:
    """The statements that the texts are about, with these."""
    return {name: (*known.get(name, ()), text) for name, text in texts.own.items()}


# --- which branches are alike --------------------------------------------------------------------------------


@frozen
class _Branch:
    """A branch by its position; ``names``: of what is in it, in an order that those alike have, too."""

    position: int
    names: tuple[str, ...]


def _groups(branches: Items[BranchText], inside: Items[_Known]) -> list[list[_Branch]]:
    """The branches, those alike together; the groups are in the order of the first of each."""
    at = [sum(name in other for other in inside) for own in inside for name in own]
    whole = iter(at)
    single = [all(next(whole) == 1 for _ in own) for own in inside]
    coarse = [tuple(sorted(own.values())) for own in inside]
    groups: dict[object, list[_Branch]] = {}
    for position, branch in enumerate(branches):
        # Most branches are like none, which their statements tell.
        found = None
        if single[position] and coarse.count(coarse[position]) > 1:
            found = _shape(branch, inside[position])
        key, names = (position, ()) if found is None else found
        groups.setdefault(key, []).append(_Branch(position, names))
    return list(groups.values())


def _shape(branch: BranchText, known: _Known) -> tuple[object, tuple[str, ...]] | None:
    """What branches that are alike have in common, and the names in this one; None where an order of them is not clear.

    Statements that stand at one leaf have no order.
    """
    names = {name: number for number, name in enumerate(_leaves(branch.child, tuple(known)))}
    if len(names) < len(known):
        return None
    marks: dict[str, int] = {}

    def about(texts: Texts) -> object:
        return texts.sizes, tuple(sorted((names[name], text) for name, text in texts.own.items()))

    def shape(node: NodeText) -> object:
        match node:
            case None:
                return None
            case MemberText(mark, function, options, child):
                return mark, about(function), options, shape(child)
            case MarkText(name, child):
                return marks.setdefault(name, len(marks)), shape(child)
            case ExtensionText(instances, child):
                return about(instances), shape(child)
            case BranchText(domain, child):
                return about(domain), shape(child)
            case SequenceText(branches):
                return tuple(map(shape, branches))
            case _:
                assert_never(node)

    own = tuple(known[name] for name in names if name in known)
    return (own, shape(branch.child)), (*names, *marks)


def _leaves(node: NodeText, reached: Items[str]) -> Iterator[str]:
    """The statements in the order in which they come to leaves of their own."""
    match node:
        case None:
            if len(reached) == 1:
                yield from reached
        case MemberText(child=child) | MarkText(child=child):
            yield from _leaves(child, reached)
        case BranchText(domain, child):
            yield from _leaves(child, tuple(domain.own))
        case ExtensionText(instances, child):
            yield from _leaves(child, (*reached, *instances.own))
        case SequenceText(branches):
            for branch in branches:
                yield from _leaves(branch, reached)
        case _:
            assert_never(node)


def _without(node: NodeText, dropped: AbstractSet[str]) -> NodeText:
    """The tree without some statements, which have no branches of their own any more."""
    match node:
        case None:
            return None
        case MemberText(child=child):
            return replace(node, function=node.function.without(dropped), child=_without(child, dropped))
        case MarkText(child=child):
            return replace(node, child=_without(child, dropped))
        case ExtensionText(child=child):
            return replace(node, instances=node.instances.without(dropped), child=_without(child, dropped))
        case BranchText():
            return _kept(node, dropped)
        case SequenceText(branches):
            return SequenceText(tuple(_kept(branch, dropped) for branch in branches))
        case _:
            assert_never(node)


def _kept(branch: BranchText, dropped: AbstractSet[str]) -> BranchText:
    return BranchText(branch.domain.without(dropped), _without(branch.child, dropped))
