"""Which step of the program's blocks an instance belongs to; of a copy, that of the statements which use its buffer."""

from __future__ import annotations

from collections.abc import Callable

import islpy as isl

from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement


def steps_of(scop: Scop, statement: ScopStatement) -> tuple[tuple[int, ...], isl.Map]:
    """The blocks that a statement stands in, outermost first, and ``{ instance -> [steps] }``.

    A copy stands in those blocks of the users of its buffer in one step of which each of their arrays is used, or each
    place that it copies.
    """
    promotion = next((p for p in scop.promotions if statement.name in (p.loads, p.stores)), None)
    if promotion is None:
        return statement.blocks, _first(statement.domain, len(statement.blocks))
    users = _users(scop, promotion)
    own = next(access for access in statement.promoted if access.buffer == promotion.buffer.name)
    shared = _shared(users)
    while shared:
        steps = _steps_of_arrays(users, promotion, shared)
        if steps.is_single_valued():
            return users[0].blocks[:shared], own.prefix.apply_range(steps)
        steps = own.location.apply_range(_steps_of_places(users, promotion, shared))
        if steps.is_single_valued() and statement.domain.is_subset(steps.domain()):
            return users[0].blocks[:shared], steps
        shared -= 1
    return (), _first(statement.domain, 0)


def outlives_steps(scop: Scop, promotion: Promotion) -> bool:
    """Whether an array of a buffer may be used in several steps of a block."""
    users = _users(scop, promotion)
    deepest = max((len(user.blocks) for user in users), default=0)
    if deepest == 0:
        return False
    shared = _shared(users)
    return shared < deepest or not _steps_of_arrays(users, promotion, shared).is_single_valued()


def _users(scop: Scop, promotion: Promotion) -> list[ScopStatement]:
    copies = {name for p in scop.promotions for name in (p.loads, p.stores)}
    return [
        statement
        for statement in scop.statements
        if statement.name not in copies and any(access.buffer == promotion.buffer.name for access in statement.promoted)
    ]


def _shared(users: list[ScopStatement]) -> int:
    """How many blocks all of them stand in."""
    if not users:
        return 0
    shared = min(len(user.blocks) for user in users)
    while any(user.blocks[:shared] != users[0].blocks[:shared] for user in users):
        shared -= 1
    return shared


def _steps_of_arrays(users: list[ScopStatement], promotion: Promotion, shared: int) -> isl.Map:
    """``{ [prefix] -> [steps] }``: in which steps each array is used."""
    return _used(users, promotion, shared, lambda access: access.prefix)


def _steps_of_places(users: list[ScopStatement], promotion: Promotion, shared: int) -> isl.Map:
    """``{ buffer[prefix, local] -> [steps] }``: in which steps each place of each array is used."""
    return _used(users, promotion, shared, lambda access: access.location)


def _used(
    users: list[ScopStatement], promotion: Promotion, shared: int, part: Callable[[PromotedAccess], isl.Map]
) -> isl.Map:
    found: isl.Map | None = None
    for user in users:
        for access in user.promoted:
            if access.buffer == promotion.buffer.name:
                own = part(access).reverse().apply_range(_first(user.domain, shared))
                found = own if found is None else found.union(own)
    assert found is not None, "some statement uses the buffer"
    return found.coalesce()


def _first(domain: isl.Set, count: int) -> isl.Map:
    """``{ instance -> [its first dimensions] }``."""
    identity = isl.Map.identity(domain.get_space().map_from_set()).reset_tuple_id(isl.dim_type.out)
    width = domain.dim(isl.dim_type.set)
    return identity.project_out(isl.dim_type.out, count, width - count).intersect_domain(domain)
