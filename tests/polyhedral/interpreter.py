"""Runs loop trees on integers, one iteration after another; what an allocation has not been given yet is poison."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Call, Cast, Expression, IteratorReference, Literal, Read, Reduction
from tc.polyhedral.ir.loops import Allocation, Block, Guard, Instance, Loop, LoopTree, StatementBody
from tc.polyhedral.ir.scop import Scop
from tests.polyhedral.enumeration import index

Element = tuple[str, tuple[int, ...]]
_OPERATIONS: Final[Mapping[BinaryOperator, Callable[[int, int], int]]] = {
    BinaryOperator.ADD: operator.add,
    BinaryOperator.SUBTRACT: operator.sub,
    BinaryOperator.MULTIPLY: operator.mul,
}


class PoisonError(Exception):
    """Something was read that was never written."""


@dataclass
class Machine:
    """Memory by element, and the bodies of the statements."""

    bodies: Mapping[str, StatementBody]
    memory: dict[Element, int] = field(default_factory=dict)

    def run(self, tree: LoopTree, values: Mapping[str, int]) -> None:
        match tree:
            case Instance(statement, arguments):
                body = self.bodies[statement]
                self.execute(body, dict(zip(body.iterators, (index(a, values) for a in arguments), strict=True)))
            case Block(children):
                for child in children:
                    self.run(child, values)
            case Allocation(buffer, body):
                for element in [e for e in self.memory if e[0] == buffer.name]:
                    del self.memory[element]
                self.run(body, values)
            case Guard(condition, then, otherwise):
                if index(condition, values):
                    self.run(then, values)
                elif otherwise is not None:
                    self.run(otherwise, values)
            case Loop(iterator, lower, upper, step, _, body):
                for value in range(index(lower, values), index(upper, values) + 1, step):
                    self.run(body, {**values, iterator: value})

    def execute(self, body: StatementBody, values: Mapping[str, int]) -> None:
        element = body.target, tuple(self.value(s, values) for s in body.subscripts)
        result = self.value(body.value, values)
        match body.reduction:
            case None:
                self.memory[element] = result
            case Reduction.ADD:
                self.memory[element] = self.read(element) + result
            case Reduction.MAXIMUM:
                self.memory[element] = max(self.read(element), result)
            case other:
                raise AssertionError(other)

    def read(self, element: Element) -> int:
        if element not in self.memory:
            raise PoisonError(element)
        return self.memory[element]

    def value(self, expression: Expression, values: Mapping[str, int]) -> int:
        match expression:
            case Literal(value):
                return int(max(min(value, 10**6), -(10**6)))
            case IteratorReference(name):
                return values[name]
            case Read(tensor, subscripts):
                return self.read((tensor, tuple(self.value(s, values) for s in subscripts)))
            case Cast(operand):
                return self.value(operand, values)
            case Binary(sort, left, right):
                return _OPERATIONS[sort](self.value(left, values), self.value(right, values))
            case Call("fmax", (left, right)):
                return max(self.value(left, values), self.value(right, values))
            case other:
                raise AssertionError(other)


def _elements(shape: tuple[int, ...]) -> list[tuple[int, ...]]:
    points: list[tuple[int, ...]] = [()]
    for extent in shape:
        points = [(*p, i) for p in points for i in range(extent)]
    return points


def results(scop: Scop, tree: LoopTree) -> Mapping[Element, int] | None:
    """Everything in the tensors after a run from random inputs; None if poison was read."""
    generator = random.Random(7)
    machine = Machine({s.name: s.body for s in scop.statements})
    for buffer in scop.buffers:
        if not buffer.writable:
            for point in _elements(buffer.layout.shape):
                machine.memory[buffer.name, point] = generator.randrange(-9, 10)
    try:
        machine.run(tree, {})
    except PoisonError:
        return None
    tensors = {buffer.name for buffer in (*scop.buffers, *scop.temporaries)}
    return {element: value for element, value in machine.memory.items() if element[0] in tensors}
