"""The execution that a schedule tree asks for."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.branches import Branch, allocation_time, assemble, concurrency_of, defined
from tc.polyhedral.execution import Concurrency, Execution
from tc.polyhedral.loops import (
    Sharing,
)
from tc.polyhedral.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence, statement_names


def tree_execution(tree: ScheduleTree, context: isl.Context, barriers: frozenset[str] = frozenset()) -> Execution:
    """The execution that the tree asks for; ``barriers``: the statements that are."""
    branches: list[Branch] = []
    for reached, path, scopes in _tree_paths(tree.root, tree.domain, (), (), barriers):
        pieces: list[isl.Set] = []
        reached.foreach_set(pieces.append)
        branches += [_tree_branch(instances, path, scopes) for instances in pieces]
    return assemble(branches, context)


@dataclass(frozen=True)
class _Position:
    """A place in a sequence, and the places of barriers in it."""

    number: int
    barriers: frozenset[int]


_TreePath: TypeAlias = tuple[tuple[Concurrency, isl.UnionPwAff | _Position], ...]
# Buffers around a node, how much of the path stands above each, and which threads share it.
_TreeScopes: TypeAlias = tuple[tuple[str, int, Sharing], ...]


def _tree_paths(
    node: Node, domain: isl.UnionSet, above: _TreePath, scopes: _TreeScopes, barriers: frozenset[str]
) -> Iterator[tuple[isl.UnionSet, _TreePath, _TreeScopes]]:
    """For every leaf: the instances that reach it, and the time dimensions and buffers on the way."""
    match node:
        case Leaf():
            yield domain, above, scopes
        case Band(members, _, child):
            own = tuple((concurrency_of(m.kind), m.function) for m in members)
            yield from _tree_paths(child, domain, (*above, *own), scopes, barriers)
        case Sequence(filters):
            waiting = frozenset(n for n, f in enumerate(filters) if set(statement_names(f.domain)) <= barriers)
            for position, branch in enumerate(filters):
                inside = domain.intersect(branch.domain)
                step = (Concurrency.ORDERED, _Position(position, waiting))
                yield from _tree_paths(branch.child, inside, (*above, step), scopes, barriers)
        case Extension(buffer, instances, child, sharing, functions):
            extended = above if instances.is_empty() else _extended(above, instances, functions)
            inner = (*scopes, (buffer, len(above), sharing))
            yield from _tree_paths(child, domain.union(instances.range()), extended, inner, barriers)
        case _:
            assert_never(node)


def _extended(above: _TreePath, instances: isl.UnionMap, functions: Items[isl.PwAff]) -> _TreePath:
    """The path with the times of the added instances: the values of the members above that they belong to."""
    values = _values_of(instances, functions)
    assert len(values) == sum(not isinstance(function, _Position) for _, function in above)
    path: list[tuple[Concurrency, isl.UnionPwAff | _Position]] = []
    for sort, function in above:
        own = function if isinstance(function, _Position) else function.union_add(values.pop(0))
        path.append((sort, own))
    return tuple(path)


def _values_of(instances: isl.UnionMap, functions: Items[isl.PwAff]) -> list[isl.UnionPwAff]:
    if functions:
        return list(map(isl.UnionPwAff.from_pw_aff, functions))
    belongs = isl.MultiUnionPwAff.from_union_map(instances.reverse())
    return [belongs.get_union_pw_aff(n) for n in range(belongs.dim(isl.dim_type.out))]


def _tree_branch(instances: isl.Set, path: _TreePath, scopes: _TreeScopes) -> Branch:
    own = isl.UnionSet.from_set(isl.Set.universe(instances.get_space()))
    local = isl.LocalSpace.from_space(instances.get_space())
    time: list[tuple[Concurrency, isl.PwAff]] = []
    positions: list[tuple[int, frozenset[int]] | None] = []
    for sort, function in path:
        if isinstance(function, _Position):
            value = isl.Val.int_from_si(instances.get_ctx(), function.number)
            time.append((sort, isl.PwAff.from_aff(isl.Aff.val_on_domain(local, value))))
            positions.append((function.number, function.barriers))
        else:
            found: list[isl.PwAff] = []
            function.intersect_domain(own).foreach_pw_aff(found.append)
            time.append((sort, found[0]))
            positions.append(None)
    points, plain = defined(instances, time)
    identity = isl.Map.identity(instances.get_space().map_from_set()).intersect_domain(points)
    around = tuple((buffer, allocation_time(plain[:length], sharing)) for buffer, length, sharing in scopes)
    return Branch(identity, plain, scopes=around, barriers=tuple(positions), is_identity=True)
