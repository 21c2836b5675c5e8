"""The schedule tree: our own, immutable, transformed by passes and handed to isl once, for AST generation.

A tree orders the instances of its statements (paper, Section 5): a ``Band`` is a tuple of quasi-affine functions run
as nested loops, a ``Sequence`` runs its filters one after another, a ``Leaf`` ends a branch.  An
``Extension`` adds instances that are not in the program: copies between tensors and the buffers that stand for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import functions_of, sets_of
from tc.polyhedral.ir.loops import LoopKind, Sharing


@frozen
class Member:
    """One schedule dimension of a band.

    ``function`` gives its value for every instance below the band.  ``coincident``: no conflicting pair that the
    outer bands leave together is separated by it, so its iterations may run at the same time.  ``in_group``: it counts
    what is inside of one iteration of another member, which sizes of tiles are given for.  ``split``: it counts the
    partial results that blocks have of one reduction (split-K); no size of a tile is given for it, since each block has
    one of them.  ``chunks``: it counts chunks of another loop, one for each core; they are not cut into tiles.
    ``launched``: of a loop over threads, how many a block has along it, which may be more than the loop has iterations;
    0 for as many.  ``last``: the highest number of a thread at the barriers below a loop over threads; None where none
    is below.
    """

    function: isl.UnionPwAff
    coincident: bool
    kind: LoopKind = LoopKind.SEQUENTIAL
    in_group: bool = False
    split: bool = False
    chunks: bool = False
    launched: int = 0
    last: int | None = None


@frozen
class Band:
    """Nested loops, outermost member first; ``permutable``: any order of the members is legal."""

    members: tuple[Member, ...]
    permutable: bool
    child: Node


@frozen
class Filter:
    """A branch of a sequence: the instances that it keeps, and their order."""

    domain: isl.UnionSet
    child: Node


@frozen
class Sequence:
    """Branches run in order."""

    filters: tuple[Filter, ...]


@frozen
class Extension:
    """Further instances below: copies into and out of ``buffer``, which lives for one iteration of the members above.

    ``buffer``: None where it stands further outside, since iterations of members in between share it.  ``instances``:
    ``{ [values of the members above, outermost first] -> copy }``.  ``sharing``: which threads have one such buffer
    together.  ``functions``: these values, of the copies of one statement, where they are not read off the map: isl
    finds no functions in maps that say modulo what.
    """

    buffer: str | None
    instances: isl.UnionMap
    child: Node
    sharing: Sharing = Sharing.THREAD
    functions: tuple[isl.PwAff, ...] = ()


@frozen
class Leaf:
    """At most one instance of each statement is left here."""


Node: TypeAlias = Band | Sequence | Extension | Leaf


@frozen
class ScheduleTree:
    """A tree and the instances that it orders."""

    domain: isl.UnionSet
    root: Node


def statement_names(domain: isl.UnionSet) -> tuple[str, ...]:
    """Names of the statements in a union set, sorted."""
    return tuple(sorted(piece.get_tuple_name() for piece in sets_of(domain)))


# --- text ----------------------------------------------------------------------------------------------------


def tree_text(tree: ScheduleTree) -> str:
    """The tree as indented text, for people and for golden tests."""
    pieces = sets_of(tree.domain)
    return "\n".join([f"domain {_sorted_pieces(pieces)}", *_node_lines(tree.root, 1)])


_SHARED: Final = {Sharing.THREAD: "", Sharing.LANES: "lanes' ", Sharing.BLOCK: "shared "}


def _sorted_pieces(pieces: Iterable[isl.Set | isl.PwAff]) -> str:
    """Pieces of a union in the order of their text: isl's own order is that of a hash table."""
    texts = sorted(str(piece).removeprefix("{").removesuffix("}").strip() for piece in pieces)
    return "{ " + "; ".join(texts) + " }"


def _node_lines(node: Node, depth: int) -> Iterator[str]:
    indent = "  " * depth
    match node:
        case Leaf():
            return
        case Band(members, permutable, child):
            yield f"{indent}band{' permutable' if permutable else ''}"
            for member in members:
                marks = [] if member.kind is LoopKind.SEQUENTIAL else [member.kind.value]
                if member.coincident:
                    marks.append("coincident")
                functions = functions_of(member.function)
                yield f"{indent}  {_sorted_pieces(functions)}{'  # ' if marks else ''}{', '.join(marks)}"
            yield from _node_lines(child, depth + 1)
        case Extension(buffer, instances, child, sharing):
            names = ", ".join(statement_names(instances.range()))
            yield f"{indent}{_SHARED[sharing]}extension{'' if buffer is None else f' {buffer}'}: {names}"
            yield from _node_lines(child, depth + 1)
        case Sequence(filters):
            yield f"{indent}sequence"
            for branch in filters:
                yield f"{indent}  filter {', '.join(statement_names(branch.domain))}"
                yield from _node_lines(branch.child, depth + 2)
        case _:
            assert_never(node)


# --- to isl --------------------------------------------------------------------------------------------------


def mark_name(member: Member, depth: int) -> str:
    """The name of the isl mark above the loop of a member, with so many members above it."""
    last = "" if member.last is None else member.last
    return f"loop:{member.kind.value}:{depth}:{member.launched}:{last}"


def marked_loop(mark: str) -> tuple[LoopKind, int, int, int | None]:
    """From a name of ``mark_name``: the kind of the loop, the members above it, its threads and the last one."""
    _, kind, depth, launched, last = mark.split(":")
    return LoopKind(kind), int(depth), int(launched), int(last) if last else None


def allocation_mark(buffer: str) -> str:
    """The name of the isl mark that stands above the loops that use a buffer."""
    return f"allocate:{buffer}"


def to_isl(tree: ScheduleTree, context: isl.Context, barriers: AbstractSet[str] = frozenset()) -> isl.Schedule:
    """The tree as an isl schedule, through isl's YAML form.

    Every member becomes a band of its own.  A mark above it carries its kind to the AST.  Loops that are unrolled are
    loops here, too: isl takes as long for every copy as for the whole loop, and so would the proofs.  ``barriers``: the
    statements that are; a loop around one is not split, since all threads are to meet in it.
    """
    text = f'{{ domain: "{_numbered_set(tree.domain)}"{_yaml_child(tree.root, 0, barriers)} }}'
    return isl.Schedule.read_from_str(context, text)


# Iterators may be called ``min``, ``nan`` or ``exists``, which isl would read as words of its own.


def _numbered_set(union: isl.UnionSet) -> isl.UnionSet:
    """The same set with its dimensions called ``i0``, ``i1`` and so on."""
    numbered = isl.UnionSet.empty(union.get_space())
    for piece in sets_of(union):
        renamed = piece
        for position in range(piece.dim(isl.dim_type.set)):
            renamed = renamed.set_dim_name(isl.dim_type.set, position, f"i{position}")
        numbered = numbered.union(isl.UnionSet.from_set(renamed))
    return numbered


def _numbered_function(union: isl.UnionPwAff) -> isl.UnionPwAff:
    """The same function with its arguments called ``i0``, ``i1`` and so on."""
    numbered = isl.UnionPwAff.empty(union.get_space())
    for piece in functions_of(union):
        renamed = piece
        for position in range(piece.dim(isl.dim_type.in_)):
            name = isl.Id.read_from_str(union.get_ctx(), f"i{position}")
            renamed = renamed.set_dim_id(isl.dim_type.in_, position, name)
        numbered = numbered.union_add(isl.UnionPwAff.from_pw_aff(renamed))
    return numbered


def _yaml_child(node: Node, depth: int, barriers: AbstractSet[str]) -> str:
    """The node below so many members."""
    match node:
        case Leaf():
            return ""
        case Band(members, _, child):
            below = _yaml_child(child, depth + len(members), barriers)
            for position, member in reversed(list(enumerate(members, depth))):
                below = f", child: {{ {_yaml_member(member, barriers)}{below} }}"
                if member.kind is not LoopKind.SEQUENTIAL:
                    below = f', child: {{ mark: "{mark_name(member, position)}"{below} }}'
            return below
        case Extension(buffer, instances, child, _):
            below = _yaml_child(child, depth, barriers)
            if not instances.is_empty():
                below = f', child: {{ extension: "{instances}"{below} }}'
            return below if buffer is None else f', child: {{ mark: "{allocation_mark(buffer)}"{below} }}'
        case Sequence(filters):
            parts = (
                f'{{ filter: "{_numbered_set(f.domain)}"{_yaml_child(f.child, depth, barriers)} }}' for f in filters
            )
            return f", child: {{ sequence: [ {', '.join(parts)} ] }}"
        case _:
            assert_never(node)


def _yaml_member(member: Member, barriers: AbstractSet[str]) -> str:
    schedule = isl.MultiUnionPwAff.from_union_pw_aff(_numbered_function(member.function))
    return f'schedule: "{schedule}"{_options(member, barriers)}'


def _options(member: Member, barriers: AbstractSet[str]) -> str:
    """How isl is to generate the loop: every iteration for itself, or all of them by one loop."""
    whole = member.kind.is_mapped or not barriers.isdisjoint(statement_names(member.function.domain()))
    return ', options: "{ atomic[x] }"' if whole else ""
