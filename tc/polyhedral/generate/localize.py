"""Local subscripts: where in its buffer an instance finds a promoted element, in terms of the loops around it.

Inside a tile the subscript is simple (the iterator of the point loop), but only for the iterations of the loops around
it.  The affine hull of the subscript over these iterations is that form; the proof checks it.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import assert_never

import islpy as isl

from tc.language.isl.pieces import pieces_of
from tc.language.isl.unnamed import Unnamed
from tc.polyhedral.analysis.local_subscripts import local_subscripts
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, instance_map, steps_of
from tc.polyhedral.generate.generate import index_expression
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopTree,
)
from tc.polyhedral.ir.scop import Scop, ScopStatement


class NotAffineError(Exception):
    """A local subscript is no single function of the loops around it: the promotion cannot be used."""


def localize_loops(root: LoopTree, scop: Scop) -> LoopTree:
    """The loops with the local subscripts of promoted accesses as further arguments of their instances."""
    promoted = {
        s.name: s for s in scop.statements if s.promoted and len(s.body.iterators) > s.domain.dim(isl.dim_type.set)
    }
    return _Localizer(promoted, scop).visit(root, ()) if promoted else root


@dataclass(frozen=True)
class _Localizer:
    """``found``: subscripts by what they follow from, which statements that differ in names have in common."""

    promoted: dict[str, ScopStatement]
    scop: Scop
    found: dict[object, IndexExpression] = field(default_factory=dict)

    def visit(self, tree: LoopTree, path: tuple[Step, ...]) -> LoopTree:
        match tree:
            case Instance():
                return self.instance(tree, path) if tree.statement in self.promoted else tree
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, (*path, n)) for n, child in enumerate(children)))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, (*path, (condition, False)))
                return Guard(condition, self.visit(then, (*path, (condition, True))), other)
            case Loop() | Allocation():
                return replace(tree, body=self.visit(tree.body, (*path, tree)))
            case _:
                assert_never(tree)

    def instance(self, instance: Instance, path: tuple[Step, ...]) -> Instance:
        frame = frame_of_path(path, self.scop.context, self.scop.sizes)
        steps, reached = steps_of(path), cache(lambda: follow_path(path, frame).points)
        local: list[IndexExpression] = []
        for subscript in local_subscripts(self.promoted[instance.statement]):
            alike = (steps, instance.arguments, Unnamed(subscript))
            if alike not in self.found:
                executes = instance_map(instance, reached(), frame)
                self.found[alike] = _function(executes.apply_range(subscript), frame.iterators, reached())
            local.append(self.found[alike])
        return replace(instance, arguments=(*instance.arguments, *local))


def _function(values: isl.Map, iterators: tuple[str, ...], points: isl.Set) -> IndexExpression:
    """A function that agrees with ``{ iterators -> [value] }`` wherever that is defined: affine, or with divisions.

    Where it is nowhere defined, in a place that no iteration reaches, any will do.  It is computed at all ``points``,
    also where a condition of the statement keeps it from being used.
    """
    if values.is_empty():
        return IndexLiteral(0)
    found = _linear(values, iterators)
    if found is not None:
        return found
    found = _with_divisions(values, iterators)
    return found if points.is_subset(values.domain()) else _anywhere(found)


def _anywhere(value: IndexExpression) -> IndexExpression:
    """The value with divisions that round down, which any dividend may have."""
    if not isinstance(value, IndexOperation):
        return value
    operands = tuple(map(_anywhere, value.operands))
    match value.operator:
        case IndexOperator.EXACT_DIVIDE | IndexOperator.NONNEGATIVE_DIVIDE:
            return IndexOperation(IndexOperator.FLOOR_DIVIDE, operands)
        case IndexOperator.NONNEGATIVE_REMAINDER:
            quotient = IndexOperation(IndexOperator.FLOOR_DIVIDE, operands)
            whole = IndexOperation(IndexOperator.MULTIPLY, (operands[1], quotient))
            return IndexOperation(IndexOperator.SUBTRACT, (operands[0], whole))
        case _:
            return IndexOperation(value.operator, operands)


def _with_divisions(values: isl.Map, iterators: tuple[str, ...]) -> IndexExpression:
    """The value as isl writes it, where loops over several dimensions at once are taken apart again."""
    if not values.is_single_valued():
        raise NotAffineError(str(values))
    for position, name in enumerate(iterators):
        values = values.set_dim_name(isl.dim_type.in_, position, name)
    values = values.move_dims(isl.dim_type.param, values.dim(isl.dim_type.param), isl.dim_type.in_, 0, len(iterators))
    anywhere = values.range().params()
    build = isl.AstBuild.from_context(anywhere)
    value = isl.PwMultiAff.from_set(values.range()).get_pw_aff(0).gist_params(anywhere)
    return index_expression(build.expr_from_pw_aff(value))


def _linear(values: isl.Map, iterators: tuple[str, ...]) -> IndexExpression | None:
    """The single affine function without divisions that agrees with the values; None if there is none.

    Of iterators, and of open sizes.
    """
    hull = isl.Map.from_basic_map(values.affine_hull())
    if not hull.is_single_valued():
        return None
    pieces = [piece for _, piece in pieces_of(isl.PwMultiAff.from_map(hull).get_pw_aff(0))]
    if len(pieces) != 1 or pieces[0].dim(isl.dim_type.div) != 0:
        return None
    total: IndexExpression = IndexLiteral(int(pieces[0].get_constant_val().to_python()))
    sizes = (str(pieces[0].get_dim_name(isl.dim_type.param, n)) for n in range(pieces[0].dim(isl.dim_type.param)))
    of_iterators = [(isl.dim_type.in_, position, name) for position, name in enumerate(iterators)]
    of_sizes = [(isl.dim_type.param, position, name) for position, name in enumerate(sizes)]
    for sort, position, name in of_iterators + of_sizes:
        value = pieces[0].get_coefficient_val(sort, position)
        if not value.is_int():
            return None
        factor = int(value.to_python())
        if factor:
            term = IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(factor), IndexVariable(name)))
            total = _plus(total, IndexVariable(name) if factor == 1 else term)
    return total


def _plus(left: IndexExpression, right: IndexExpression) -> IndexExpression:
    return right if left == IndexLiteral(0) else IndexOperation(IndexOperator.ADD, (left, right))
