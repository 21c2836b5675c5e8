"""The proof's conditions checked by running through every iteration: slow, obvious, and independent of isl."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Expression, IteratorReference, Literal, Read, walk
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
    LoopTree,
    Scheduled,
    StatementBody,
)
from tc.polyhedral.ir.scop import Scop

Point = tuple[str, tuple[int, ...]]
# One step of time: how a loop runs (None: a position in a block), and the value.
Step = tuple[LoopKind | None, int]


def run(tree: LoopTree, values: Mapping[str, int], time: tuple[Step, ...]) -> Iterator[tuple[Point, tuple[Step, ...]]]:
    """Every execution of an instance, with its time."""
    match tree:
        case Scheduled(statement, arguments):
            yield (statement, tuple(index(a, values) for a in arguments)), time
        case Block(children):
            for position, child in enumerate(children):
                yield from run(child, values, (*time, (None, position)))
        case Allocation(_, body):
            yield from run(body, values, time)
        case Guard(condition, then, otherwise):
            if index(condition, values):
                yield from run(then, values, time)
            elif otherwise is not None:
                yield from run(otherwise, values, time)
        case Loop(iterator, lower, upper, step, kind, body):
            for value in range(index(lower, values), index(upper, values) + 1, step):
                yield from run(body, {**values, iterator: value}, (*time, (kind, value)))


def index(expression: IndexExpression, values: Mapping[str, int]) -> int:
    match expression:
        case IndexLiteral(value):
            return value
        case IndexVariable(name):
            return values[name]
        case IndexOperation(operator, operands):
            return int(_OPERATIONS[operator]([index(operand, values) for operand in operands]))


_OPERATIONS: Final[Mapping[IndexOperator, Callable[[list[int]], int]]] = {
    IndexOperator.ADD: sum,
    IndexOperator.SUBTRACT: lambda x: x[0] - x[1],
    IndexOperator.MULTIPLY: math.prod,
    IndexOperator.NEGATE: lambda x: -x[0],
    IndexOperator.MINIMUM: min,
    IndexOperator.MAXIMUM: max,
    IndexOperator.EXACT_DIVIDE: lambda x: x[0] // x[1],
    IndexOperator.FLOOR_DIVIDE: lambda x: x[0] // x[1],
    IndexOperator.NONNEGATIVE_DIVIDE: lambda x: x[0] // x[1],
    IndexOperator.NONNEGATIVE_REMAINDER: lambda x: x[0] % x[1],
    IndexOperator.ZERO_REMAINDER: lambda x: x[0] % x[1],
    IndexOperator.AND: all,
    IndexOperator.OR: any,
    IndexOperator.SELECT: lambda x: x[1] if x[0] else x[2],
    IndexOperator.EQUAL: lambda x: x[0] == x[1],
    IndexOperator.LESS: lambda x: x[0] < x[1],
    IndexOperator.LESS_EQUAL: lambda x: x[0] <= x[1],
    IndexOperator.GREATER: lambda x: x[0] > x[1],
    IndexOperator.GREATER_EQUAL: lambda x: x[0] >= x[1],
}


@dataclass(frozen=True)
class Touch:
    """One access of one instance.

    ``time``: of the step and the statement that it is of, in the order of the program: ``(place, step, ..., place)``.
    """

    point: Point
    time: tuple[int, ...]
    element: tuple[str, tuple[int, ...]]
    writes: bool


def instances(scop: Scop) -> dict[str, list[tuple[int, ...]]]:
    """The points of every statement's domain."""
    found: dict[str, list[tuple[int, ...]]] = {}
    for statement in scop.statements:
        points: list[tuple[int, ...]] = []
        dimensions = range(len(statement.body.iterators))

        def keep(point: object, points: list[tuple[int, ...]] = points, dimensions: range = dimensions) -> None:
            points.append(tuple(int(c) for c in _coordinates(str(point), len(dimensions))))

        statement.domain.foreach_point(keep)
        found[statement.name] = points
    return found


def _coordinates(text: str, count: int) -> list[str]:
    return text[text.index("[") + 1 : text.rindex("]")].split(",") if count else []


def touches(scop: Scop) -> list[Touch]:
    """Every access of every instance, from the statements' bodies."""
    found: list[Touch] = []
    begins: dict[tuple[int, ...], int] = {}
    for position, statement in enumerate(scop.statements):
        around = [statement.blocks[: depth + 1] for depth in range(len(statement.blocks))]
        places = [begins.setdefault(block, position) for block in around]
        for point in instances(scop)[statement.name]:
            values = dict(zip(statement.body.iterators, point, strict=True))
            steps = (number for pair in zip(places, point, strict=False) for number in pair)
            time = (*steps, position)
            for tensor, subscripts, writes in _accesses(statement.body):
                element = tensor, tuple(subscript_value(s, values) for s in subscripts)
                found.append(Touch((statement.name, point), time, element, writes))
    return found


def _accesses(body: StatementBody) -> Iterator[tuple[str, tuple[Expression, ...], bool]]:
    yield body.target, body.subscripts, True
    for part in walk(body.value):
        if isinstance(part, Read):
            yield part.tensor, part.subscripts, False


def subscript_value(expression: Expression, values: Mapping[str, int]) -> int:
    match expression:
        case Literal(value):
            return int(value)
        case IteratorReference(name):
            return values[name]
        case Binary(BinaryOperator.ADD, left, right):
            return subscript_value(left, values) + subscript_value(right, values)
        case Binary(BinaryOperator.SUBTRACT, left, right):
            return subscript_value(left, values) - subscript_value(right, values)
        case Binary(BinaryOperator.MULTIPLY, left, right):
            return subscript_value(left, values) * subscript_value(right, values)
        case Binary(BinaryOperator.REMAINDER, left, Literal(divisor)):
            return int(math.fmod(subscript_value(left, values), divisor))
        case _:
            raise AssertionError(expression)


def is_correct(scop: Scop, tree: LoopTree) -> bool:
    """Whether the loops run every instance once, and conflicting ones in order and never at once."""
    executions = list(run(tree, {}, ()))
    wanted = Counter((name, point) for name, points in instances(scop).items() for point in points)
    if Counter(point for point, _ in executions) != wanted:
        return False
    times = dict(executions)
    unordered = {s.name for s in scop.statements if s.accumulates and not _reads_itself(s.body)}
    by_element: dict[tuple[str, tuple[int, ...]], list[Touch]] = {}
    for touch in touches(scop):
        by_element.setdefault(touch.element, []).append(touch)
    return all(
        _settled(times[first.point], times[second.point], strict=_in_order(first, second, unordered))
        for group in by_element.values()
        for first in group
        for second in group
        if (first.writes or second.writes) and first.point != second.point and first.time <= second.time
    )


def _reads_itself(body: StatementBody) -> bool:
    return any(isinstance(part, Read) and part.tensor == body.target for part in walk(body.value))


def _in_order(first: Touch, second: Touch, unordered: Collection[str]) -> bool:
    """Whether the first must be earlier: not if both combine terms into one element."""
    same = first.point[0] == second.point[0]
    return first.time < second.time and not (same and first.point[0] in unordered)


def _settled(first: tuple[Step, ...], second: tuple[Step, ...], *, strict: bool) -> bool:
    for (kind, early), (_, late) in zip(first, second, strict=False):
        if early != late:
            if kind in (LoopKind.PARALLEL, LoopKind.VECTOR) or (kind is LoopKind.REDUCTION and strict):
                return False
            return early < late or not strict
    return False
