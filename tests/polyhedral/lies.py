"""Passes that lie: they change a copy in the statements and in the tree alike, so that both agree on what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.ir.scop import Promotion, Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Node, ScheduleTree, Sequence

State = tuple[Scop, ScheduleTree]


def local_dimensions(copy: ScopStatement) -> tuple[int, ...]:
    """The dimensions of a copy that walk the buffer and have more than one value."""
    (access,) = copy.promoted
    count = copy.domain.dim(isl.dim_type.set)
    inner = range(count - access.element.dim(isl.dim_type.out), count)
    return tuple(n for n in inner if not copy.domain.dim_max_val(n).eq(copy.domain.dim_min_val(n)))


def without_last(state: State, name: str, dimension: int) -> State:
    """The copy leaves out the last row of its buffer."""
    domain = state[0].statement(name).domain
    most = domain.dim_max_val(dimension).sub(isl.Val.one(domain.get_ctx()))
    return on_domain(state, name, domain.upper_bound_val(isl.dim_type.set, dimension, most))


def beyond_last(state: State, name: str, dimension: int) -> State:
    """The copy goes on for one row more."""
    domain = state[0].statement(name).domain
    local = isl.LocalSpace.from_space(domain.get_space())
    next_one = isl.Aff.var_on_domain(local, isl.dim_type.set, dimension).add_constant_val(isl.Val.one(domain.get_ctx()))
    step = isl.MultiAff.identity(domain.get_space().map_from_set()).set_aff(dimension, next_one)
    return on_domain(state, name, domain.union(domain.apply(isl.Map.from_multi_aff(step))))


def without_copy(state: State, name: str) -> State:
    """Nothing is copied, and no access is promoted."""
    scop, tree = state
    promotions = tuple(
        replace(p, loads=None if p.loads == name else p.loads, stores=None if p.stores == name else p.stores)
        for p in scop.promotions
    )
    nothing = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    space = isl.UnionSet.from_set(isl.Set.universe(scop.statement(name).domain.get_space()))
    kept = tuple(statement for statement in scop.statements if statement.name != name)
    root = _with_instances(tree.root, space, nothing)
    return replace(scop, statements=kept, promotions=promotions), replace(tree, root=root)


def promotion_of(scop: Scop, copy: str) -> Promotion:
    """The promotion that a copy serves."""
    return next(p for p in scop.promotions if copy in (p.loads, p.stores))


def on_domain(state: State, name: str, domain: isl.Set) -> State:
    """The copy with these instances."""
    scop, tree = state
    old, promotion = scop.statement(name), promotion_of(scop, name)
    (access,) = old.promoted
    location = isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)
    location = location.set_tuple_name(isl.dim_type.out, access.buffer)
    element = location.apply_range(promotion.elements)
    new = replace(old, domain=domain, promoted=(replace(access, location=location, element=element),))
    by_prefix = isl.Map.identity(domain.get_space().map_from_set()).intersect_domain(domain)
    width = element.dim(isl.dim_type.out)
    by_prefix = by_prefix.project_out(isl.dim_type.in_, domain.dim(isl.dim_type.set) - width, width)
    instances = isl.UnionMap.from_map(by_prefix.reset_tuple_id(isl.dim_type.in_))
    space = isl.UnionSet.from_set(isl.Set.universe(domain.get_space()))
    statements = tuple(new if statement is old else statement for statement in scop.statements)
    return replace(scop, statements=statements), replace(tree, root=_with_instances(tree.root, space, instances))


def _with_instances(node: Node, space: isl.UnionSet, instances: isl.UnionMap) -> Node:
    """The tree whose extension adds these instances of one copy."""

    def change(extension: Extension) -> Extension:
        others = extension.instances.subtract_range(space)
        return (
            extension if others.is_equal(extension.instances) else replace(extension, instances=others.union(instances))
        )

    return with_extensions(node, change)


def with_extensions(node: Node, change: Callable[[Extension], Extension]) -> Node:
    """The tree with all its extensions changed."""
    match node:
        case Leaf():
            return node
        case Band():
            return replace(node, child=with_extensions(node.child, change))
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=with_extensions(f.child, change)) for f in filters))
        case Extension():
            return replace(change(node), child=with_extensions(node.child, change))
        case _:
            assert_never(node)
