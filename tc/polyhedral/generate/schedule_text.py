"""The schedule tree as text for isl, a text for each statement: what is done to it here costs isl nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import functions_of, maps_of, sets_of
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import (
    Band,
    Extension,
    Leaf,
    Member,
    Node,
    ScheduleTree,
    Sequence,
    allocation_mark,
    mark_name,
)

# Stands for the name of the statement in a text about it.
_NAME: Final = "@"


@frozen
class Texts:
    """What is said of some statements, such as the values of a function: a text for each that does not name it.

    ``sizes``: the parameters in them.
    """

    sizes: tuple[str, ...]
    own: Mapping[str, str]

    def without(self, statements: AbstractSet[str]) -> Texts:
        """Of the other statements."""
        return Texts(self.sizes, {name: text for name, text in self.own.items() if name not in statements})

    def __str__(self) -> str:
        pieces = "; ".join(text.replace(_NAME, name) for name, text in self.own.items())
        return f"{self.parameters}{{ {pieces} }}"

    @property
    def parameters(self) -> str:
        """How isl introduces them."""
        return f"[{', '.join(self.sizes)}] -> " if self.sizes else ""


@frozen
class MemberText:
    """A member of a band; ``mark``: above it; ``options``: of isl for its loop."""

    mark: str | None
    function: Texts
    options: str
    child: NodeText


@frozen
class MarkText:
    """A mark, and what is below it."""

    name: str
    child: NodeText


@frozen
class ExtensionText:
    """Further instances below."""

    instances: Texts
    child: NodeText


@frozen
class BranchText:
    """A branch of a sequence; alone, below a mark, which needs something below it."""

    domain: Texts
    child: NodeText


@frozen
class SequenceText:
    """Branches in order."""

    branches: tuple[BranchText, ...]


# None: a leaf.
NodeText: TypeAlias = MemberText | MarkText | ExtensionText | BranchText | SequenceText | None


@frozen
class TreeText:
    """A tree and the instances that it orders."""

    domain: Texts
    root: NodeText


def to_text(tree: ScheduleTree, barriers: AbstractSet[str] = frozenset()) -> TreeText:
    """The tree as texts.

    Every member becomes a band of its own.  A mark above it carries its kind to the AST.  Loops that are unrolled are
    loops here, too: isl takes as long for every copy as for the whole loop, and so would the proofs.  ``barriers``: the
    statements that are; a loop around one is not split, since all threads are to meet in it.
    """
    return TreeText(_numbered_sets(tree.domain), _node(tree.root, 0, barriers))


def to_isl(tree: TreeText, context: isl.Context) -> isl.Schedule:
    """The tree as an isl schedule, through isl's YAML form."""
    return isl.Schedule.read_from_str(context, f'{{ domain: "{tree.domain}"{_child(tree.root)} }}')


def _node(node: Node, depth: int, barriers: AbstractSet[str]) -> NodeText:
    """The node below so many members."""
    match node:
        case Leaf():
            return None
        case Band(members, _, child):
            below = _node(child, depth + len(members), barriers)
            for position, member in reversed(list(enumerate(members, depth))):
                mark = None if member.kind is LoopKind.SEQUENTIAL else mark_name(member, position)
                function = _numbered_functions(member.function)
                below = MemberText(mark, function, _options(member, function, barriers), below)
            return below
        case Extension(buffer, instances, child, _):
            below = _node(child, depth, barriers)
            if not instances.is_empty():
                named = ((piece.get_tuple_name(isl.dim_type.out), str(piece)) for piece in maps_of(instances))
                below = ExtensionText(_texts(named), below)
            return below if buffer is None else MarkText(allocation_mark(buffer), below)
        case Sequence(filters):
            return SequenceText(
                tuple(BranchText(_numbered_sets(f.domain), _node(f.child, depth, barriers)) for f in filters)
            )
        case _:
            assert_never(node)


def _options(member: Member, function: Texts, barriers: AbstractSet[str]) -> str:
    """How isl is to generate the loop: every iteration for itself, or all of them by one loop."""
    whole = member.kind.is_mapped or not barriers.isdisjoint(function.own)
    return ', options: "{ atomic[x] }"' if whole else ""


# Iterators may be called ``min``, ``nan`` or ``exists``, which isl would read as words of its own.


def _numbered_sets(union: isl.UnionSet) -> Texts:
    """The sets, with their dimensions called ``i0``, ``i1`` and so on."""
    named: list[tuple[str, str]] = []
    for piece in sets_of(union):
        renamed = piece
        for position in range(piece.dim(isl.dim_type.set)):
            renamed = renamed.set_dim_name(isl.dim_type.set, position, f"i{position}")
        named.append((piece.get_tuple_name(), str(renamed)))
    return _texts(named)


def _numbered_functions(union: isl.UnionPwAff) -> Texts:
    """The functions, with their arguments called ``i0``, ``i1`` and so on."""
    named: list[tuple[str, str]] = []
    for piece in functions_of(union):
        renamed = piece
        for position in range(piece.dim(isl.dim_type.in_)):
            name = isl.Id.read_from_str(union.get_ctx(), f"i{position}")
            renamed = renamed.set_dim_id(isl.dim_type.in_, position, name)
        named.append((piece.get_tuple_id(isl.dim_type.in_).get_name(), str(renamed)))
    return _texts(named)


def _texts(named: Iterable[tuple[str, str]]) -> Texts:
    """From isl's text of each statement's piece."""
    sizes: dict[str, None] = {}
    own: dict[str, str] = {}
    for name, text in named:
        before, _, pieces = text.partition("{")
        sizes.update(dict.fromkeys(size for size in before.strip("[] ->").split(", ") if size))
        own[name] = pieces.strip("} ").replace(f"{name}[", f"{_NAME}[")
    return Texts(tuple(sizes), own)


def _child(node: NodeText) -> str:
    match node:
        case None:
            return ""
        case MemberText(mark, function, options, child):
            below = f', child: {{ schedule: "{_schedule(function)}"{options}{_child(child)} }}'
            return below if mark is None else f', child: {{ mark: "{mark}"{below} }}'
        case MarkText(name, child):
            return f', child: {{ mark: "{name}"{_child(child)} }}'
        case ExtensionText(instances, child):
            return f', child: {{ extension: "{instances}"{_child(child)} }}'
        case SequenceText(branches):
            return f", child: {{ sequence: [ {', '.join(map(_branch, branches))} ] }}"
        case BranchText():
            return f", child: {_branch(node)}"
        case _:
            assert_never(node)


def _branch(branch: BranchText) -> str:
    return f'{{ filter: "{branch.domain}"{_child(branch.child)} }}'


def _schedule(function: Texts) -> str:
    return f"{function.parameters}[{replace(function, sizes=())}]"
