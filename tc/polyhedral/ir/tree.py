"""The schedule tree: our own, immutable, transformed by passes and handed to isl once, for AST generation.

A tree orders the instances of its statements (paper, Section 5): a ``Band`` is a tuple of quasi-affine functions run
as nested loops, a ``Sequence`` runs its filters one after another, a ``Leaf`` ends a branch.  An
``Extension`` adds instances that are not in the program: copies between tensors and the buffers that stand for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Final, TypeAlias, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.base.remembered import Remembered
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
    is below.  ``digit``: it is over a digit of the points of a tile whose other digits are threads.
    """

    function: isl.UnionPwAff
    coincident: bool
    kind: LoopKind = LoopKind.SEQUENTIAL
    in_group: bool = False
    split: bool = False
    chunks: bool = False
    launched: int = 0
    last: int | None = None
    digit: bool = False


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


def tree_text(tree: ScheduleTree, known: Remembered[str] | None = None) -> str:
    """The tree as indented text, for people and for golden tests.

    ``known``: the texts of domains and functions in it, which trees that passes make have in common.
    """
    known = Remembered() if known is None else known
    domain = known.of((tree.domain,), lambda: _sorted_pieces(sets_of(tree.domain)))
    return "\n".join([f"domain {domain}", *_node_lines(tree.root, 1, known)])


_SHARED: Final = {Sharing.THREAD: "", Sharing.LANES: "lanes' ", Sharing.BLOCK: "shared "}


def _sorted_pieces(pieces: Iterable[isl.Set | isl.PwAff]) -> str:
    """Pieces of a union in the order of their text: isl's own order is that of a hash table."""
    texts = sorted(str(piece).removeprefix("{").removesuffix("}").strip() for piece in pieces)
    return "{ " + "; ".join(texts) + " }"


def _functions_text(function: isl.UnionPwAff) -> str:
    return _sorted_pieces(functions_of(function))


def _node_lines(node: Node, depth: int, known: Remembered[str]) -> Iterator[str]:
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
                text = known.of((member.function,), partial(_functions_text, member.function))
                yield f"{indent}  {text}{'  # ' if marks else ''}{', '.join(marks)}"
            yield from _node_lines(child, depth + 1, known)
        case Extension(buffer, instances, child, sharing):
            names = ", ".join(statement_names(instances.range()))
            yield f"{indent}{_SHARED[sharing]}extension{'' if buffer is None else f' {buffer}'}: {names}"
            yield from _node_lines(child, depth + 1, known)
        case Sequence(filters):
            yield f"{indent}sequence"
            for branch in filters:
                yield f"{indent}  filter {', '.join(statement_names(branch.domain))}"
                yield from _node_lines(branch.child, depth + 2, known)
        case _:
            assert_never(node)


# --- marks of isl --------------------------------------------------------------------------------------------------


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
