"""Index-set splitting at borders: where subscripts are clamped, as in ``x(max(i - 1, 0))``, the inside stands alone.

A clamped subscript that changes along an innermost loop is no stride, so that lanes would gather their elements.  Away
from the borders it is its argument.  Loops with constant bounds are split there; around the points of a tile stands a
guard.  Ranges of the iterators say then, wherever an element is printed, which of the arguments it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import reduce
from itertools import product
from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.language.program.program import Binary, Call, Expression, walk
from tc.polyhedral.analysis.offsets import LinearForm, subscript_form
from tc.polyhedral.analysis.ranges import Range, Ranges, iterator_range, range_of
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.ir.copies import count_copies
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
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
    LoopKind,
    LoopTree,
    StatementBody,
    leaves,
)

# A guard doubles the text of what it is around: of no more statements than these, with unrolled loops written out.
_MOST_STATEMENTS: Final = 256
# More arguments of nested clamps than these are not looked at.
_MOST_CHOICES: Final = 8
_SPLIT: Final = (LoopKind.SEQUENTIAL, LoopKind.VECTOR)


def separate_borders(root: LoopTree, bodies: Mapping[str, StatementBody], ranges: Ranges) -> LoopTree:
    """The loops, split where clamps of subscripts begin and end; ``ranges``: of open sizes."""
    return _Separator(bodies).visit(root, ranges, ())


@frozen
class _Difference:
    """Of the two arguments of a clamp, in loop variables; ``ranges``: of all that are around it.

    ``moves``: it changes along the innermost loop.
    """

    form: LinearForm
    ranges: Ranges
    moves: bool


@frozen
class _Separator:
    bodies: Mapping[str, StatementBody]

    def visit(self, tree: LoopTree, ranges: Ranges, above: tuple[LoopTree, ...]) -> LoopTree:
        match tree:
            case Leaf():
                return tree
            case Block(children):
                return Block(tuple(self.visit(child, ranges, above) for child in children))
            case Guard(condition, then, otherwise):
                other = None if otherwise is None else self.visit(otherwise, ranges, above)
                return Guard(condition, self.visit(then, ranges, above), other)
            case Allocation():
                return replace(tree, body=self.visit(tree.body, ranges, (*above, tree)))
            case Loop():
                return self.loop(tree, ranges, above)
            case _:
                assert_never(tree)

    def loop(self, loop: Loop, ranges: Ranges, above: tuple[LoopTree, ...]) -> LoopTree:
        values = iterator_range(loop, ranges)
        inside = {**ranges, loop.iterator: values}
        body = self.visit(loop.body, inside, (*above, loop))
        changed = replace(loop, body=body)
        if body != loop.body:
            return changed  # one guard on every path: each doubles what is inside
        clamps = tuple(self.differences(loop.body, inside, loop))
        found = self.decided(loop, inside, above, (own for own in clamps if own.moves))
        if found is None:
            return changed
        if not _has_loops(loop.body):
            whole = self.reduces(loop) or loop.totals or loop.folds or loop.ranges
            plain = loop.kind in _SPLIT and not any(isinstance(own, Allocation) for own in above)
            return _split(changed, found) if plain and not whole else changed
        if any(isinstance(leaf, Barrier) for leaf in leaves(loop.body)) or count_copies(loop.body) > _MOST_STATEMENTS:
            return changed
        # Those that do not change along the innermost loop are worth a condition, but no guard of their own.
        conditions = list(_conditions(loop.iterator, values, found))
        for position, outer in enumerate(above):
            if isinstance(outer, Loop):
                decided = self.decided(outer, inside, above[:position], clamps)
                conditions += () if decided is None else _conditions(outer.iterator, inside[outer.iterator], decided)
        condition = reduce(lambda first, second: IndexOperation(IndexOperator.AND, (first, second)), conditions)
        return replace(loop, body=Guard(condition, body, body))

    def decided(
        self, loop: Loop, ranges: Ranges, above: tuple[LoopTree, ...], clamps: Iterable[_Difference]
    ) -> Range | None:
        """The values of a loop's iterator for which no clamp acts that depends on it, and on no loop around it."""
        outside = {own.iterator for own in above if isinstance(own, Loop)}
        own = (clamp for clamp in clamps if not outside & _variables(clamp.form))
        return _inside(loop.iterator, ranges[loop.iterator], own)

    def reduces(self, loop: Loop) -> bool:
        """Whether iterations add to the same element: sums stay in one loop."""
        return any(
            body.reduction is not None and not _moves(loop.iterator, body, leaf)
            for leaf in leaves(loop.body)
            if isinstance(leaf, Instance)
            for body in (self.bodies[leaf.statement],)
        )

    def differences(self, tree: LoopTree, ranges: Ranges, innermost: Loop) -> Iterator[_Difference]:
        """Of all clamps below; ``innermost``: the loop around the tree."""
        match tree:
            case Instance(statement, arguments) if statement in self.bodies:
                body = self.bodies[statement]
                named = dict(zip(body.iterators, arguments, strict=True))
                for read in value_reads(body):
                    for subscript in read.subscripts:
                        for form in _clamps(subscript, named, ranges):
                            yield _Difference(form, ranges, innermost.iterator in _variables(form))
            case Leaf():
                return
            case Block(children):
                for child in children:
                    yield from self.differences(child, ranges, innermost)
            case Guard(_, then, otherwise):
                yield from self.differences(then, ranges, innermost)
                if otherwise is not None:
                    yield from self.differences(otherwise, ranges, innermost)
            case Allocation():
                yield from self.differences(tree.body, ranges, innermost)
            case Loop():
                own = {**ranges, tree.iterator: iterator_range(tree, ranges)}
                yield from self.differences(tree.body, own, tree)
            case _:
                assert_never(tree)


def _clamps(subscript: Expression, arguments: Mapping[str, IndexExpression], ranges: Ranges) -> Iterator[LinearForm]:
    """The differences of the arguments of every clamp of which ranges do not say which one it is."""
    for own in walk(subscript):
        if not isinstance(own, Call) or own.function not in ("min", "max"):
            continue
        choices = [_choices(argument) for argument in own.arguments]
        if math.prod(map(len, choices)) > _MOST_CHOICES:
            continue
        for left, right in product(*choices):
            first, second = subscript_form(left, arguments, ranges), subscript_form(right, arguments, ranges)
            if first is None or second is None:
                continue
            form = first.plus(second, -1)
            values = range_of(form.expression(), ranges)
            if values.least < 0 < values.most:
                yield form


def _choices(expression: Expression) -> tuple[Expression, ...]:
    """What an expression is for each choice among the arguments of its clamps."""
    match expression:
        case Call("min" | "max", arguments):
            return tuple(choice for argument in arguments for choice in _choices(argument))
        case Binary(_, left, right):
            pairs = product(_choices(left), _choices(right))
            return tuple(replace(expression, left=first, right=second) for first, second in pairs)
        case _:
            return (expression,)


def _inside(iterator: str, values: Range, differences: Iterable[_Difference]) -> Range | None:
    """The values of the iterator for which every difference has one sign, whatever the other variables are in their
    ranges; None if these are all values, or none.
    """
    least, most = values.least, values.most
    for own in differences:
        factor = own.form.factors.get(IndexVariable(iterator), 0)
        others = own.form.plus(LinearForm(0, {IndexVariable(iterator): -factor}))
        if factor == 0 or not all(isinstance(term, IndexVariable) for term in own.form.factors):
            continue
        rest = range_of(others.expression(), own.ranges)
        if math.isinf(rest.least) or math.isinf(rest.most):
            continue
        # Nonnegative everywhere, or nonpositive everywhere: the case that more iterations are in.
        above, below = _at_least(factor, int(rest.least), values), _at_least(-factor, -int(rest.most), values)
        kept = max((above, below), key=_length)
        least, most = max(least, kept.least), min(most, kept.most)
    found = Range(least, most)
    return None if _length(found) <= 0 or found == values else found


def _at_least(factor: int, rest: int, values: Range) -> Range:
    """Where ``factor * value + rest >= 0``."""
    if factor > 0:
        return Range(max(values.least, -(rest // factor)), values.most)
    return Range(values.least, min(values.most, rest // -factor))


def _length(values: Range) -> int | float:
    return values.most - values.least + 1


def _split(loop: Loop, inside: Range) -> LoopTree:
    """The loop in up to three, one after the other; itself if its bounds are no numbers."""
    match loop.lower, loop.upper:
        case IndexLiteral(first), IndexLiteral(last) if loop.step == 1:
            least, most = int(inside.least), int(inside.most)
            parts = ((first, least - 1), (least, most), (most + 1, last))
            loops = (
                replace(loop, lower=IndexLiteral(lower), upper=IndexLiteral(upper))
                for lower, upper in parts
                if lower <= upper
            )
            return Block(tuple(loops))
        case _:
            return loop


def _conditions(iterator: str, values: Range, inside: Range) -> Iterator[IndexExpression]:
    """That the iterator is inside, as far as its values leave that open."""
    variable = IndexVariable(iterator)
    if inside.least > values.least:
        yield IndexOperation(IndexOperator.GREATER_EQUAL, (variable, IndexLiteral(int(inside.least))))
    if inside.most < values.most:
        yield IndexOperation(IndexOperator.LESS_EQUAL, (variable, IndexLiteral(int(inside.most))))


def _moves(iterator: str, body: StatementBody, instance: Instance) -> bool:
    """Whether the iterator chooses the element that is written."""
    named = dict(zip(body.iterators, instance.arguments, strict=True))
    forms = (subscript_form(subscript, named) for subscript in body.subscripts)
    return any(form is not None and iterator in _variables(form) for form in forms)


def _variables(form: LinearForm) -> set[str]:
    return {term.name for term in form.factors if isinstance(term, IndexVariable)}


def _has_loops(tree: LoopTree) -> bool:
    match tree:
        case Leaf():
            return False
        case Block(children):
            return any(map(_has_loops, children))
        case Guard(_, then, otherwise):
            return _has_loops(then) or (otherwise is not None and _has_loops(otherwise))
        case Loop():
            return True
        case Allocation():
            return _has_loops(tree.body)
        case _:
            assert_never(tree)
