"""The loops around each statement of a schedule tree, in terms of its own iterators."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.isl.pieces import functions_of, pieces_of
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


@dataclass(frozen=True, slots=True)
class LoopAround:
    """A loop around a statement; ``extent``: between its least and its greatest value.

    ``iterator``: the one that it counts, or parts of; None for several or none.  ``tile``: it counts tiles of so many
    iterations; 0 where it does not.  ``text``: as ``n/8`` for tiles, and ``n%8`` for the points in one.
    """

    member: Member
    iterator: str | None
    extent: int
    tile: int
    text: str


@dataclass(frozen=True, slots=True)
class Nest:
    """A statement and the loops around it, outermost first, those that run once left out.

    ``tensor``: whose elements it computes or copies, whatever buffer they are in.  ``begins``: it only begins a
    reduction.
    """

    statement: ScopStatement
    tensor: str
    begins: bool
    loops: tuple[LoopAround, ...]


# By statement.
_Functions: TypeAlias = Mapping[str, isl.PwAff]


def nests_of(tree: ScheduleTree, scop: Scop) -> tuple[Nest, ...]:
    """A nest for every leaf at which a statement stands, in order of the program; barriers are left out."""
    statements, tensors = {statement.name: statement for statement in scop.statements}, tensors_of(scop)
    begins = _begin(scop, tensors)
    functions: dict[int, _Functions] = {}
    found: dict[str, list[Nest]] = {name: [] for name in statements}
    for name, members in _paths(tree.root, frozenset(statement_names(tree.domain)), ()):
        if name not in statements:
            continue
        for member in members:
            if id(member) not in functions:
                functions[id(member)] = _by_statement(member)
        statement, tensor = statements[name], tensors[name]
        found[name].append(Nest(statement, tensor, name in begins, tuple(_loops(statement, members, functions))))
    return tuple(nest for nests in found.values() for nest in nests)


def tensors_of(scop: Scop) -> Mapping[str, str]:
    """By statement, the tensor that it writes in the sense of the program, or what it copies."""
    copies = {
        name: f"copies of {own.tensor}"
        for own in scop.promotions
        for name in (own.loads, own.stores)
        if name is not None
    }
    written = {
        statement.name: str(relation.get_tuple_name(isl.dim_type.out))
        for statement in scop.statements
        for relation in statement.writes[:1]
    }
    return copies | written


def _begin(scop: Scop, tensors: Mapping[str, str]) -> frozenset[str]:
    """The statements behind which their tensor is reduced into."""
    reduced, found = set[str](), set[str]()
    for statement in reversed(scop.statements):
        tensor = tensors[statement.name]
        if statement.body.reduction is not None:
            reduced.add(tensor)
        elif tensor in reduced:
            found.add(statement.name)
    return frozenset(found)


def _paths(node: Node, names: frozenset[str], above: tuple[Member, ...]) -> Iterator[tuple[str, tuple[Member, ...]]]:
    """Each of the statements, and of those that extensions add, with the members between ``node`` and it."""
    match node:
        case Leaf():
            yield from ((name, above) for name in sorted(names))
        case Band(members, _, child):
            yield from _paths(child, names, (*above, *members))
        case Sequence(filters):
            for branch in filters:
                yield from _paths(branch.child, names.intersection(statement_names(branch.domain)), above)
        case Extension(instances=instances, child=child):
            yield from _paths(child, names.union(statement_names(instances.range())), above)
        case _:
            assert_never(node)


def _by_statement(member: Member) -> _Functions:
    return {
        own.get_domain_space().get_tuple_name(isl.dim_type.set): own.coalesce()
        for own in functions_of(member.function)
        if not own.domain().is_empty()
    }


def _loops(
    statement: ScopStatement, members: Items[Member], functions: Mapping[int, _Functions]
) -> Iterator[LoopAround]:
    found = [
        _loop(statement, member, own)
        for member in members
        if (own := functions[id(member)].get(statement.name)) is not None
    ]
    # Where the value of a loop outside is the same, it does not change inside.
    running = list({loop.text: loop for loop in reversed(found) if loop.extent > 1}.values())[::-1]
    for loop in running:
        alone = loop.iterator is not None and sum(other.iterator == loop.iterator for other in running) == 1
        # Of one tile, the points are all there are.
        yield replace(loop, text=str(loop.iterator)) if alone and not loop.tile else loop


def _loop(statement: ScopStatement, member: Member, function: isl.PwAff) -> LoopAround:
    extent = extent_of(isl.UnionPwAff.from_pw_aff(function), isl.UnionSet.from_set(statement.domain))
    iterator, tile, text = _counted(function, statement.body.iterators)
    return LoopAround(member, iterator, extent, tile, text)


def _counted(function: isl.PwAff, iterators: Items[str]) -> tuple[str | None, int, str]:
    """What a loop counts: the iterator, the size of its tiles, the text."""
    (_, part), *others = pieces_of(function)
    used = [place for place in range(part.dim(isl.dim_type.in_)) if part.involves_dims(isl.dim_type.in_, place, 1)]
    if others or len(used) != 1:
        return None, 0, _text(function)
    iterator, factor = iterators[used[0]], part.get_coefficient_val(isl.dim_type.in_, used[0])
    divisors = sorted(
        int(part.get_div(place).get_denominator_val().to_python()) for place in range(part.dim(isl.dim_type.div))
    )
    match divisors:
        case [] if factor.is_one():
            return iterator, 0, iterator
        case [size] if factor.is_one():
            return iterator, 0, f"{iterator}%{size}"
        case [size] if factor.is_zero():
            return iterator, size, f"{iterator}/{size}"
        case [size, outer] if factor.is_zero():
            return iterator, size, f"{iterator}%{outer}/{size}"
        case _:
            return iterator, 0, _text(function)


def _text(function: isl.PwAff) -> str:
    """isl's, without the instances."""
    return str(function).partition("-> ")[2].partition(" :")[0].strip("[]{} ").removeprefix("(").removesuffix(")")
