"""Substitution of variables in index expressions and loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import assert_never

from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexVariable,
    Loop,
    LoopTree,
    Matrices,
    Mma,
    Prefetch,
    Scheduled,
)


def substituted(expression: IndexExpression, values: Mapping[str, IndexExpression]) -> IndexExpression:
    """The expression with variables replaced."""
    match expression:
        case IndexLiteral():
            return expression
        case IndexVariable(name):
            return values.get(name, expression)
        case IndexOperation(operator, operands):
            return IndexOperation(operator, tuple(substituted(operand, values) for operand in operands))
        case _:
            assert_never(expression)


def substituted_in(tree: LoopTree, values: Mapping[str, IndexExpression]) -> LoopTree:
    """The loops of a grid with variables replaced; none of them is the iterator of a loop inside."""
    match tree:
        case Scheduled(arguments=arguments):
            return replace(tree, arguments=tuple(substituted(argument, values) for argument in arguments))
        case Block(children):
            return Block(tuple(substituted_in(child, values) for child in children))
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else substituted_in(otherwise, values)
            return Guard(substituted(condition, values), substituted_in(then, values), other)
        case Allocation(body=body):
            return replace(tree, body=substituted_in(body, values))
        case Matrices():
            return of_parts(tree, lambda own: substituted_in(own, values), lambda own: substituted(own, values))
        case Prefetch(offset=offset):
            return replace(tree, offset=substituted(offset, values))
        case Loop(lower=lower, upper=upper, body=body):
            assert tree.iterator not in values
            bounds = (substituted(lower, values), substituted(upper, values))
            return replace(tree, lower=bounds[0], upper=bounds[1], body=substituted_in(body, values))
        case _:
            assert_never(tree)


def of_parts(
    matrices: Mma | GroupMma, tree: Callable[[LoopTree], LoopTree], index: Callable[[IndexExpression], IndexExpression]
) -> Mma | GroupMma:
    """Matrix instructions with changed loops and subscripts."""
    nest = tree(matrices.nest)
    assert isinstance(nest, Loop | Guard)
    left, right = (tuple(map(index, own.subscripts)) for own in (matrices.left, matrices.right))
    match matrices:
        case Mma():
            limit = None if matrices.limit is None else index(matrices.limit)
            of_lanes = replace(matrices.left, subscripts=left), replace(matrices.right, subscripts=right)
            return replace(matrices, nest=nest, left=of_lanes[0], right=of_lanes[1], limit=limit)
        case GroupMma():
            shared = replace(matrices.left, subscripts=left), replace(matrices.right, subscripts=right)
            return replace(matrices, nest=nest, left=shared[0], right=shared[1])
        case _:
            assert_never(matrices)
