"""The execution that a schedule tree asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

import islpy as isl

from tc.language.isl.pieces import functions_of, sets_of
from tc.polyhedral.analysis.functions import Function, points_with, vector_map
from tc.polyhedral.execution.branches import (
    Branch,
    assemble,
    concurrency_of,
    simplified,
)
from tc.polyhedral.execution.execution import Concurrency, Execution
from tc.polyhedral.execution.scopes import Scope
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


def tree_execution(tree: ScheduleTree, context: isl.Context, barriers: frozenset[str] = frozenset()) -> Execution:
    """The execution that the tree asks for; ``barriers``: the statements that are."""
    reached = {piece.get_tuple_name(): _Way(piece, ()) for piece in sets_of(tree.domain)}
    return assemble(list(_branches(tree.root, reached, (), (), barriers)), context)


def member_values(tree: ScheduleTree, statement: str) -> tuple[Function, ...]:
    """The values of the members around a statement, outermost first: what loops over them should have.

    Around its last leaf; none where it has no leaf.
    """
    names = frozenset({statement})
    reached = {name: _Way(piece, ()) for piece in sets_of(tree.domain) if (name := piece.get_tuple_name()) in names}
    found: tuple[Function, ...] = ()
    for branch in _branches(tree.root, reached, (), (), frozenset(), names):
        steps = zip(branch.time, branch.barriers, strict=True)
        found = tuple(value for (_, value), place in steps if place is None)
    return found


@dataclass(frozen=True)
class _Position:
    """A place in a sequence, and the places in it where a barrier runs whenever anything in the sequence does."""

    number: int
    barriers: frozenset[int]


# What stands above a node: loops and places in sequences.
_Above: TypeAlias = tuple[Concurrency | _Position, ...]


@dataclass(frozen=True)
class _Way:
    """The instances of one statement that get to a node, and the values that the loops above have for them."""

    instances: isl.Set
    values: tuple[Function, ...]

    def inside(self, function: Function) -> _Way:
        """The way through one more loop."""
        instances, value = simplified(self.instances, function)
        return _Way(instances, (*self.values, value))


# The statements that get to a node.
_Reached: TypeAlias = Mapping[str, _Way]


def _branches(
    node: Node,
    reached: _Reached,
    above: _Above,
    scopes: tuple[Scope, ...],
    barriers: frozenset[str],
    names: frozenset[str] | None = None,
) -> Iterator[Branch]:
    """One for every statement at every leaf; ``scopes``: the buffers around the node; ``names``: of these only."""
    match node:
        case Leaf():
            yield from (_branch(way, above, scopes) for way in reached.values())
        case Band(members, _, child):
            inside = {name: _through(members, way) for name, way in reached.items()}
            sorts = (concurrency_of(member.kind) for member in members)
            yield from _branches(child, inside, (*above, *sorts), scopes, barriers, names)
        case Sequence(filters):
            threads = Concurrency.THREADS in above
            waiting = _positions_of_barriers(filters, reached, barriers) if threads else frozenset[int]()
            for position, branch in enumerate(filters):
                place = _Position(position, waiting)
                within = _within(branch.domain, reached)
                yield from _branches(branch.child, within, (*above, place), scopes, barriers, names)
        case Extension(buffer, instances, child, sharing, functions):
            inside = {**reached, **_added(instances, functions, names)}
            own = () if buffer is None else (Scope(buffer, len(above), sharing),)
            yield from _branches(child, inside, above, (*scopes, *own), barriers, names)
        case _:
            assert_never(node)


def _through(members: Items[Member], way: _Way) -> _Way:
    """The way through the loops of a band."""
    own = isl.UnionSet.from_set(isl.Set.universe(way.instances.get_space()))
    for member in members:
        found = functions_of(member.function.intersect_domain(own))
        way = way.inside(found[0])
    return way


def _within(domain: isl.UnionSet, reached: _Reached) -> _Reached:
    """What of it a filter keeps."""
    kept = {piece.get_tuple_name(): piece for piece in sets_of(domain)}
    return {
        name: replace(way, instances=way.instances.intersect(kept[name]))
        for name, way in reached.items()
        if name in kept
    }


def _added(instances: isl.UnionMap, functions: Items[isl.PwAff], names: frozenset[str] | None) -> _Reached:
    """The ways of instances that a node adds: the values of the members above that they belong to."""
    added: dict[str, _Way] = {}
    pieces = sets_of(instances.range())
    assert len(pieces) == 1 or not functions, "functions are those of one statement"
    for piece in pieces:
        if names is not None and piece.get_tuple_name() not in names:
            continue
        way = _Way(piece, ())
        for value in functions or _values_of(instances, piece):
            way = way.inside(value)
        added[piece.get_tuple_name()] = way
    return added


def _values_of(instances: isl.UnionMap, piece: isl.Set) -> list[isl.PwAff]:
    belongs = isl.MultiUnionPwAff.from_union_map(instances.intersect_range(isl.UnionSet.from_set(piece)).reverse())
    numbers = range(belongs.dim(isl.dim_type.out))
    return [value for number in numbers for value in functions_of(belongs.get_union_pw_aff(number))]


def _positions_of_barriers(filters: Items[Filter], reached: _Reached, barriers: frozenset[str]) -> frozenset[int]:
    """The branches in which all that gets to the sequence finds a barrier, at equal values of the members above."""
    found: list[int] = []
    others = [way for name, way in reached.items() if name not in barriers]
    for position, branch in enumerate(filters):
        waiting = [reached[name] for name in statement_names(branch.domain) if name in barriers and name in reached]
        if not waiting:
            continue
        met = _met(waiting[0])
        for other in waiting[1:]:
            met = met.union(_met(other))
        if all(way.instances.is_subset(points_with(way.values, met, way.instances.get_space())) for way in others):
            found.append(position)
    return frozenset(found)


def _met(barrier: _Way) -> isl.Set:
    """The values of the members above at which there is the barrier."""
    return vector_map(barrier.values, barrier.instances).range()


def _branch(way: _Way, above: _Above, scopes: tuple[Scope, ...]) -> Branch:
    local = isl.LocalSpace.from_space(way.instances.get_space())
    values = iter(way.values)
    time: list[tuple[Concurrency, Function]] = []
    for step in above:
        if isinstance(step, _Position):
            number = isl.Val.int_from_si(way.instances.get_ctx(), step.number)
            time.append((Concurrency.ORDERED, isl.Aff.val_on_domain(local, number)))
        else:
            time.append((step, next(values)))
    identity = isl.Map.identity(way.instances.get_space().map_from_set()).intersect_domain(way.instances)
    barriers = tuple((step.number, step.barriers) if isinstance(step, _Position) else None for step in above)
    mapped = (level for level, (sort, _) in enumerate(time) if sort in (Concurrency.BLOCKS, Concurrency.THREADS))
    kernel = next(mapped, 0)
    return Branch(identity, tuple(time), scopes=scopes, barriers=barriers, is_identity=True, kernel=kernel)
