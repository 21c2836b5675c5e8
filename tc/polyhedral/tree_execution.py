"""The execution that a schedule tree asks for."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import TypeAlias, assert_never

import islpy as isl

from tc.polyhedral.branches import Branch, allocation_time, assemble, concurrency_of, defined, multi_function
from tc.polyhedral.execution import Concurrency, Execution
from tc.polyhedral.loops import (
    Sharing,
)
from tc.polyhedral.tree import Band, Extension, Filter, Leaf, Node, ScheduleTree, Sequence, statement_names


def tree_execution(tree: ScheduleTree, context: isl.Context, barriers: frozenset[str] = frozenset()) -> Execution:
    """The execution that the tree asks for; ``barriers``: the statements that are."""
    branches: list[Branch] = []
    for reached, path, scopes in _tree_paths(tree.root, tree.domain, (), (), barriers):
        branches += [_tree_branch(instances, path, scopes) for instances in _pieces(reached)]
    return assemble(branches, context)


def _pieces(union: isl.UnionSet) -> list[isl.Set]:
    pieces: list[isl.Set] = []
    union.foreach_set(pieces.append)
    return pieces


@dataclass(frozen=True)
class _Position:
    """A place in a sequence, and the places in it where a barrier runs whenever anything in the sequence does."""

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
            waiting = _positions_of_barriers(filters, domain, above, barriers)
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


def _positions_of_barriers(
    filters: Items[Filter], reached: isl.UnionSet, above: _TreePath, barriers: frozenset[str]
) -> frozenset[int]:
    """The branches in which all that reaches the sequence finds a barrier, at equal values of the members above."""
    if not any(sort is Concurrency.THREADS for sort, _ in above):
        return frozenset()
    pieces = {piece.get_tuple_name(): piece for piece in _pieces(reached)}
    found: list[int] = []
    others: list[tuple[isl.Set, isl.MultiPwAff]] = []
    for position, branch in enumerate(filters):
        waiting = [pieces[name] for name in statement_names(branch.domain) if name in barriers and name in pieces]
        if not waiting:
            continue
        met = waiting[0].apply(isl.Map.from_multi_pw_aff(_values(waiting[0], above)))
        for other in waiting[1:]:
            met = met.union(other.apply(isl.Map.from_multi_pw_aff(_values(other, above))))
        others = others or [(p, _values(p, above)) for name, p in pieces.items() if name not in barriers]
        if all(piece.is_subset(met.preimage_multi_pw_aff(values)) for piece, values in others):
            found.append(position)
    return frozenset(found)


def _values(instances: isl.Set, above: _TreePath) -> isl.MultiPwAff:
    """The values of the members above, by instance."""
    _, time = defined(instances, [(sort, own) for sort, f in above if (own := _on(instances, f)) is not None])
    return multi_function([function for _, function in time], instances.get_space())


def _on(instances: isl.Set, function: isl.UnionPwAff | _Position) -> isl.PwAff | None:
    """The function of a member on the instances of one statement; None for a place in a sequence."""
    if isinstance(function, _Position):
        return None
    found: list[isl.PwAff] = []
    own = isl.UnionSet.from_set(isl.Set.universe(instances.get_space()))
    function.intersect_domain(own).foreach_pw_aff(found.append)
    return found[0]


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
    local = isl.LocalSpace.from_space(instances.get_space())
    time: list[tuple[Concurrency, isl.PwAff]] = []
    positions: list[tuple[int, frozenset[int]] | None] = []
    for sort, function in path:
        own = _on(instances, function)
        if isinstance(function, _Position):
            value = isl.Val.int_from_si(instances.get_ctx(), function.number)
            time.append((sort, isl.PwAff.from_aff(isl.Aff.val_on_domain(local, value))))
            positions.append((function.number, function.barriers))
        else:
            assert own is not None
            time.append((sort, own))
            positions.append(None)
    points, plain = defined(instances, time)
    identity = isl.Map.identity(instances.get_space().map_from_set()).intersect_domain(points)
    around = tuple((buffer, allocation_time(plain[:length], sharing)) for buffer, length, sharing in scopes)
    return Branch(identity, plain, scopes=around, barriers=tuple(positions), is_identity=True)
