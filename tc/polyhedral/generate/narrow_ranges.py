"""Loops over ranges that read tensors run from where a range begins to where it ends.

A statement with ``where j in R(i):R(i+1)`` does nothing outside of the range; its loops run over all of ``j``.  A loop
in which all instances have such ranges, whose bounds are known before it, need not run what lies outside.  Where it
runs nothing else, instances need not ask.  ``tc.polyhedral.proof.verify_ranges`` proves what this says of loops.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise, product
from typing import assert_never

from tc.base.frozen import frozen
from tc.language.program.program import InRange, iterators_in
from tc.polyhedral.analysis.offsets import LinearForm, index_form, subscript_form
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, range_of
from tc.polyhedral.analysis.reads import data_ranges
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Copy,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopKind,
    LoopTree,
    ReadRange,
    StatementBody,
    variables,
)

_NARROWED = (LoopKind.SEQUENTIAL, LoopKind.UNROLLED)


def narrow_ranges(root: LoopTree, bodies: Mapping[str, StatementBody], sizes: Ranges) -> LoopTree:
    """The loops with the ranges that bound them; ``sizes``: the values that open sizes may have."""
    ranged = {name: body for name, body in bodies.items() if data_ranges(body)}
    return _Narrowing(ranged).visit(root, sizes) if ranged else root


@frozen
class _Narrowing:
    """``bodies``: of the statements that have ranges."""

    bodies: Mapping[str, StatementBody]

    def visit(self, tree: LoopTree, around: Ranges) -> LoopTree:
        """The tree, inner loops first; ``around``: the values that sizes and the iterators of loops around it have."""
        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, around) for child in children))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, around)
                return Guard(condition, self.visit(then, around), other)
            case Allocation():
                return replace(tree, body=self.visit(tree.body, around))
            case Loop():
                inside = {**around, tree.iterator: iterator_range(tree, around)}
                loop = replace(tree, body=self.visit(tree.body, inside))
                return self.narrowed(loop, around) if loop.kind in _NARROWED else loop
            case _:
                assert_never(tree)

    def narrowed(self, loop: Loop, around: Ranges) -> Loop:
        """The loop with ranges, if all instances inside have one.

        Where there may be no instance at all, its bounds would be read in vain.
        """
        if not surely_runs(loop, around):
            return loop
        found: dict[ReadRange, None] = {}
        for leaf, path in loop_paths(loop.body, ()):
            if not isinstance(leaf, Instance) or isinstance(leaf, Copy) or leaf.statement not in self.bodies:
                return loop
            inner = tuple(step for step in path if isinstance(step, Loop))
            guarded = any(isinstance(step, tuple) for step in path)
            runs = not guarded and _surely_run(inner, loop, around)
            own = next(self.ranges(leaf, loop, inner), None) if runs else None
            if own is None:
                return loop
            found[own] = None
        ranges = tuple(found)
        loop = replace(loop, ranges=ranges)
        return replace(loop, body=_holding(loop.body, ranges[0].inside)) if is_exact(loop) else loop

    def ranges(self, leaf: Instance, loop: Loop, inner: tuple[Loop, ...]) -> Iterator[ReadRange]:
        """The ranges of an instance that bound the loop."""
        body = self.bodies[leaf.statement]
        values = dict(zip(body.iterators, leaf.arguments, strict=True))
        changing = {loop.iterator, *(own.iterator for own in inner)}
        for inside in data_ranges(body):
            asked = iterators_in((inside.begin, inside.end))
            needed = {variable for name in asked for variable in variables(values[name])}
            # Where there may be no instance, its bounds are not read.
            limits = (limit for own in (loop, *inner) for limit in (own.lower, own.upper))
            index = subscript_form(inside.index, values)
            if index is None or needed & changing.union(*map(variables, limits)):
                continue
            ends = _ends(index, loop, inner)
            if ends is not None:
                kept = tuple(value if name in asked else IndexLiteral(0) for name, value in values.items())
                factor, low, high = ends
                yield ReadRange(leaf.statement, kept, inside, factor, low.expression(), high.expression())


def surely_runs(loop: Loop, around: Ranges, facts: Sequence[LinearForm] = ()) -> bool:
    """Whether the loop has an iteration wherever it stands; its ends may grow together with loops around it.

    ``facts``: what is not negative there.
    """

    def is_nonnegative(extent: LinearForm) -> bool:
        return range_of(extent.expression(), around).least >= 0

    extents = [index_form(upper).plus(index_form(lower), -1) for lower, upper in _limits(loop)]
    return not loop.ranges and all(
        is_nonnegative(extent) or any(is_nonnegative(extent.plus(fact, -1)) for fact in facts) for extent in extents
    )


def _surely_run(loops: Sequence[Loop], outer: Loop, around: Ranges) -> bool:
    """Whether each of the loops, the outermost first, has an iteration in those before it, apart from its ranges."""
    facts: list[LinearForm] = []
    for own, inner in pairwise((outer, *loops)):
        around = {**around, own.iterator: iterator_range(own, around)}
        variable = LinearForm(0, {IndexVariable(own.iterator): 1})
        for lower, upper in _limits(own):
            facts += [variable.plus(index_form(lower), -1), index_form(upper).plus(variable, -1)]
        if not surely_runs(replace(inner, ranges=()), around, facts):
            return False
    return True


def _limits(loop: Loop) -> Iterator[tuple[IndexExpression, IndexExpression]]:
    """Every lower end of a loop with every upper one."""
    return product(_operands(loop.lower, IndexOperator.MAXIMUM), _operands(loop.upper, IndexOperator.MINIMUM))


def _operands(expression: IndexExpression, operator: IndexOperator) -> Iterator[IndexExpression]:
    """The expressions of which an expression is the least or greatest one."""
    if isinstance(expression, IndexOperation) and expression.operator is operator:
        for operand in expression.operands:
            yield from _operands(operand, operator)
    else:
        yield expression


def is_exact(loop: Loop) -> bool:
    """Whether the loop runs nothing but what is inside its one range."""
    if len(loop.ranges) != 1 or loop.step != 1:
        return False
    (own,) = loop.ranges
    return own.factor == 1 and own.low == own.high


def _ends(form: LinearForm, loop: Loop, inner: tuple[Loop, ...]) -> tuple[int, LinearForm, LinearForm] | None:
    """An index as ``factor * v`` and what is added to it at least and at most; None where it is no such form."""
    low = high = form
    for own in reversed(inner):
        ends = [_replaced(low, own, least=True), _replaced(high, own, least=False)]
        if ends[0] is None or ends[1] is None:
            return None
        low, high = ends[0], ends[1]
    slopes = {low.slope(loop.iterator), high.slope(loop.iterator)}
    factor = slopes.pop()
    if slopes or factor is None or factor <= 0:
        return None
    variable = LinearForm(0, {IndexVariable(loop.iterator): 1})
    low, high = low.plus(variable, -factor), high.plus(variable, -factor)
    changing = {loop.iterator, *(own.iterator for own in inner)}
    return None if any(variables(end.expression()) & changing for end in (low, high)) else (factor, low, high)


def _replaced(form: LinearForm, loop: Loop, *, least: bool) -> LinearForm | None:
    """The form with an inner loop's iterator at the end where it is least or greatest."""
    slope = form.slope(loop.iterator)
    if slope is None:
        return None
    if slope == 0:
        return form
    lower = (slope > 0) is least
    end = loop.lower if lower else loop.upper
    variable = LinearForm(0, {IndexVariable(loop.iterator): 1})
    return form.plus(variable, -slope).plus(index_form(_bound(end, lower=lower)), slope)


def _bound(end: IndexExpression, *, lower: bool) -> IndexExpression:
    """One of several bounds, the one with the most variables: they all hold."""
    operator = IndexOperator.MAXIMUM if lower else IndexOperator.MINIMUM
    if isinstance(end, IndexOperation) and end.operator is operator:
        return max((_bound(operand, lower=lower) for operand in end.operands), key=lambda own: len(variables(own)))
    return end


def _holding(tree: LoopTree, inside: InRange) -> LoopTree:
    """The tree, whose instances are all inside of the range."""
    match tree:
        case Instance():
            return replace(tree, holds=(*tree.holds, inside))
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(_holding(child, inside) for child in children))
        case Guard(condition, then, otherwise):
            return Guard(condition, _holding(then, inside), None if otherwise is None else _holding(otherwise, inside))
        case Loop() | Allocation():
            return replace(tree, body=_holding(tree.body, inside))
        case _:
            assert_never(tree)
