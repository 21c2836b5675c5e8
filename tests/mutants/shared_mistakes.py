"""Mistakes in how operands lie in shared memory, and in which stage they are: as patches of the pass that says so."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import TypeVar
from unittest.mock import patch

import islpy as isl

from tc.polyhedral.gpu.promotion.promote_shared import promote_shared
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Rotation, Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tests.mutants.mistakes import Mistake, State

_Access = Callable[[PromotedAccess], PromotedAccess]
_Promotion = Callable[[Promotion], Promotion]
_Own = TypeVar("_Own", PromotedAccess, Promotion)


def shared_mistakes(scop: Scop) -> Iterator[Mistake]:
    """All that can be made in a kernel with these promotions."""
    for promotion in scop.promotions:
        buffer, strides, shape = promotion.buffer.name, promotion.buffer.layout.strides, promotion.buffer.layout.shape
        if not promotion.buffer.shared:
            continue
        for dimension, (own, inner) in enumerate(itertools.pairwise(shape)):
            if strides[dimension] > 1 and own > 1 and inner > 1:
                closer = _with_stride(dimension, strides[dimension + 1] * (inner - 1))
                yield _mistake(f"dimension {dimension} of {buffer} overlaps", buffer, of=closer)
        if promotion.rotation is None:
            continue
        for steps, when in ((1, "next"), (-1, "last")):
            for reads, what in ((True, "products read"), (False, "copies fill")):
                turned = partial(_in_another_stage, reads, steps * promotion.rotation.step)
                yield _mistake(f"{what} the {when} stage of {buffer}", buffer, access=turned)
        step = 2 * promotion.rotation.step
        access, of = partial(_with_step, step), partial(_with_step, step)
        yield _mistake(f"stages of {buffer} turn half as often", buffer, access, of)


def _mistake(name: str, buffer: str, access: _Access = lambda own: own, of: _Promotion = lambda own: own) -> Mistake:
    def promote(tree: ScheduleTree, scop: Scop, *room: object) -> State:
        tree, scop = promote_shared(tree, scop, *room)  # type: ignore[arg-type]
        statements = tuple(
            replace(
                statement,
                promoted=tuple(access(own) if own.buffer == buffer else own for own in statement.promoted),
            )
            for statement in scop.statements
        )
        promotions = tuple(of(own) if own.buffer.name == buffer else own for own in scop.promotions)
        return tree, replace(scop, statements=statements, promotions=promotions)

    return Mistake(name, lambda: patch("tc.polyhedral.grid_passes.promote_shared", promote))


def _with_stride(dimension: int, stride: int) -> _Promotion:
    def changed(promotion: Promotion) -> Promotion:
        layout = promotion.buffer.layout
        strides = (*layout.strides[:dimension], stride, *layout.strides[dimension + 1 :])
        return replace(promotion, buffer=replace(promotion.buffer, layout=replace(layout, strides=strides)))

    return changed


def _in_another_stage(reads: bool, steps: int, access: PromotedAccess) -> PromotedAccess:
    """The location of another iteration that has a stage of its own."""
    if access.reads != reads:
        return access
    place = access.location.reset_tuple_id(isl.dim_type.out)
    moved = isl.MultiAff.identity_on_domain_space(place.get_space().range())
    prefix = access.depth - 1
    other = moved.get_at(prefix).add_constant_val(isl.Val.int_from_si(place.get_ctx(), steps))
    location = place.apply_range(isl.Map.from_multi_aff(moved.set_aff(prefix, other)))
    name = access.location.get_tuple_id(isl.dim_type.out)
    return replace(access, location=location.set_tuple_id(isl.dim_type.out, name))


def _with_step(step: int, own: _Own) -> _Own:
    assert own.rotation is not None
    return replace(own, rotation=Rotation(step, own.rotation.slots))
