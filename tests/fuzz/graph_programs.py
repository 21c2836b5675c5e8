"""Random graphs with what NumPy makes of them.

All numbers are small integers, and are kept small, so that every order of a sum gives the same ones: results are
compared bit by bit.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.values import Value
from tc.graph.operators.joining import concatenated
from tc.graph.operators.pointwise import pointwise
from tc.graph.operators.products import product
from tc.graph.operators.reductions import reduced

LIMIT = 9
TYPES = (ScalarType.FLOAT32, ScalarType.FLOAT32, ScalarType.FLOAT64, ScalarType.INT32)
ARRAYS: dict[str, Callable[..., np.ndarray]] = {"max": np.max, "min": np.min, "sum": np.sum}
BINARY: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "add": ("{0} + {1}", np.add),
    "sub": ("{0} - {1}", np.subtract),
    "mul": ("{0} * {1}", np.multiply),
    "max": ("max({0}, {1})", np.maximum),
    "min": ("min({0}, {1})", np.minimum),
}
UNARY: dict[str, tuple[str, Callable[[np.ndarray], np.ndarray]]] = {
    "relu": ("max({0}, 0)", lambda x: np.maximum(x, 0)),
    "neg": ("-{0}", np.negative),
    "abs": ("abs({0})", np.abs),
}


@dataclass(frozen=True, slots=True)
class Drawn:
    """A graph, arrays for its inputs, and its results in order."""

    graph: Graph
    inputs: dict[str, np.ndarray]
    results: tuple[np.ndarray, ...]


class Drawing:
    """Draws a graph node by node; every value has its array."""

    def __init__(self, seed: int) -> None:
        self.chosen = random.Random(seed)
        self.builder = Builder("drawn")
        self.type = self.chosen.choice(TYPES)
        self.arrays: dict[str, np.ndarray] = {}
        self.values: list[Value] = []
        self.inputs: dict[str, np.ndarray] = {}

    def draw(self, most: int = 14) -> Drawn:
        for _ in range(self.chosen.randint(1, 3)):
            self.input()
        steps = [self.binary, self.binary, self.unary, self.reduce, self.permute, self.reshape, self.slice, self.expand]
        steps += [self.concat, self.chain, self.product, self.constant, self.split]
        for _ in range(self.chosen.randint(2, most)):
            self.chosen.choice(steps)()
        used = {name for node in self.builder.nodes_from(0) for name in node.operands}
        ends = [value for value in self.values if value.name not in used] or self.values[-1:]
        kept = ends[-3:]
        graph = self.builder.finish(kept)
        return Drawn(graph, self.inputs, tuple(self.arrays[value.name] for value in kept))

    def shape(self) -> tuple[int, ...]:
        return tuple(self.chosen.choice((1, 2, 3, 4, 7, 17)) for _ in range(self.chosen.randint(0, 3)))

    def some(self, shape: tuple[int, ...]) -> np.ndarray:
        numbers = np.random.default_rng(self.chosen.randrange(1 << 30)).integers(-3, 4, shape)
        return np.asarray(numbers).astype(self.type.value)

    def input(self) -> None:
        array = self.some(self.shape())
        value = self.builder.input(f"x{len(self.inputs)}", self.type, array.shape)
        self.inputs[value.name] = array
        self.keep(value, array)

    def constant(self) -> None:
        shape = self.arrays[self.one().name].shape if self.chosen.random() < 0.5 else ()
        array = self.some(shape)
        kind = self.chosen.choice(("zeros", "ones", "some"))
        if kind != "some":
            array = np.full_like(array, kind == "ones")
        self.keep(self.builder.constant(array), array)

    def keep(self, value: Value, array: np.ndarray) -> Value:
        assert value.shape == array.shape, (value, array.shape)
        self.arrays[value.name] = array
        if all(value.name != other.name for other in self.values):
            self.values.append(value)
        return value

    def one(self) -> Value:
        return self.chosen.choice(self.values[-5:] if self.chosen.random() < 0.7 else self.values)

    def small(self, value: Value, array: np.ndarray) -> None:
        """The value, and what it is between the limits, which others use."""
        if np.abs(array).max(initial=0) <= LIMIT:
            self.keep(value, array)
            return
        made = pointwise(self.builder, "clip", f"min(max({{0}}, -{LIMIT}), {LIMIT})", [value], self.type)
        self.keep(made, np.clip(array, -LIMIT, LIMIT))

    def binary(self) -> None:
        left, right = self.one(), self.one()
        try:
            np.broadcast_shapes(self.arrays[left.name].shape, self.arrays[right.name].shape)
        except ValueError:
            right = left
        name = self.chosen.choice(sorted(BINARY))
        expression, function = BINARY[name]
        array = function(self.arrays[left.name], self.arrays[right.name])
        self.small(pointwise(self.builder, name, expression, [left, right], self.type), np.asarray(array))

    def unary(self) -> None:
        operand, name = self.one(), self.chosen.choice(sorted(UNARY))
        expression, function = UNARY[name]
        array = np.asarray(function(self.arrays[operand.name]))
        self.small(pointwise(self.builder, name, expression, [operand], self.type), array)

    def reduce(self) -> None:
        operand, name = self.one(), self.chosen.choice(sorted(ARRAYS))
        rank = len(operand.shape)
        axes = tuple(sorted(self.chosen.sample(range(rank), self.chosen.randint(0, rank))))
        if 0 in operand.shape:
            return
        keep = self.chosen.random() < 0.5
        operator = {"sum": "+=!", "max": "max=!", "min": "min=!"}[name]
        array = ARRAYS[name](self.arrays[operand.name], axis=axes, keepdims=keep)
        value = reduced(self.builder, name, operand, axes, keep=keep, operator=operator)
        self.small(value, np.asarray(array, self.type.value))

    def permute(self) -> None:
        operand = self.one()
        axes = self.chosen.sample(range(len(operand.shape)), len(operand.shape))
        self.keep(self.builder.permute(operand, axes), np.transpose(self.arrays[operand.name], axes))

    def reshape(self) -> None:
        operand = self.one()
        shape = [size for size in operand.shape if isinstance(size, int)]
        kind = self.chosen.choice(("flat", "merge", "ones", "squeeze"))
        if kind == "flat":
            shape = [int(np.prod(shape, dtype=int))]
        elif kind == "merge" and len(shape) > 1:
            at = self.chosen.randrange(len(shape) - 1)
            shape[at : at + 2] = [shape[at] * shape[at + 1]]
        elif kind == "ones" and len(shape) < 4:
            shape.insert(self.chosen.randint(0, len(shape)), 1)
        else:
            shape = [size for size in shape if size != 1]
        self.keep(self.builder.reshape(operand, tuple(shape)), self.arrays[operand.name].reshape(shape))

    def slice(self) -> None:
        operand = self.one()
        starts, steps, counts, index = [], [], [], []
        for extent in operand.shape:
            assert isinstance(extent, int)
            step = self.chosen.choice((1, 1, 1, 2, -1))
            start = self.chosen.randrange(extent) if extent else 0
            room = (extent - start + step - 1) // step if step > 0 else start + 1
            count = self.chosen.randint(1, room) if room > 0 else 0
            starts.append(start)
            steps.append(step)
            counts.append(count)
            index.append(start + step * np.arange(count))
        array = self.arrays[operand.name]
        array = array[np.ix_(*index)] if index else array
        self.keep(self.builder.slice(operand, starts, steps, counts), array)

    def expand(self) -> None:
        operand = self.one()
        if 1 not in operand.shape and len(operand.shape) > 2:
            return
        shape = [self.chosen.choice((1, 2, 3)) if extent == 1 else extent for extent in operand.shape]
        if len(shape) < 3 and self.chosen.random() < 0.5:
            shape = [self.chosen.choice((1, 2)), *shape]
        array = np.broadcast_to(self.arrays[operand.name], shape)  # type: ignore[arg-type]
        self.keep(self.builder.expand(operand, tuple(shape)), array)

    def concat(self) -> None:
        operand = self.one()
        if not operand.shape:
            return
        axis = self.chosen.randrange(len(operand.shape))
        alike = [v for v in self.values if len(v.shape) == len(operand.shape)]
        alike = [
            v
            for v in alike
            if all(a == b for i, (a, b) in enumerate(zip(v.shape, operand.shape, strict=True)) if i != axis)
        ]
        parts = [self.chosen.choice(alike) for _ in range(self.chosen.randint(2, 3))]
        array = np.concatenate([self.arrays[part.name] for part in parts], axis)
        if array.size < 3000:
            self.keep(concatenated(self.builder, parts, axis), array)

    def chain(self) -> None:
        """Concatenations of all that is before and something new, as in a dense block."""
        first = self.one()
        if not first.shape or self.arrays[first.name].size > 500:
            return
        axis, flat = self.chosen.randrange(len(first.shape)), self.chosen.random() < 0.5
        parts, whole = [first], first
        for _ in range(self.chosen.randint(2, 3)):
            name = self.chosen.choice(sorted(UNARY))
            expression, function = UNARY[name]
            new = pointwise(self.builder, name, expression, [whole if self.chosen.random() < 0.3 else first], self.type)
            operand = self.arrays[whole.name] if new.shape == whole.shape else self.arrays[first.name]
            self.arrays[new.name] = np.asarray(function(operand))
            parts.append(new)
            operands = parts if flat else [whole, new]
            array = np.concatenate([self.arrays[part.name] for part in operands], axis)
            whole = self.keep(concatenated(self.builder, operands, axis), array)

    def split(self) -> None:
        """Slices that make the whole, put together again."""
        operand = self.one()
        if not operand.shape:
            return
        axis = self.chosen.randrange(len(operand.shape))
        extent = operand.shape[axis]
        assert isinstance(extent, int)
        if extent < 2:
            return
        at = self.chosen.randint(1, extent - 1)
        parts = []
        for first, count in ((0, at), (at, extent - at)):
            starts = [first if own == axis else 0 for own in range(len(operand.shape))]
            shape = [count if own == axis else size for own, size in enumerate(operand.shape)]
            parts.append(self.builder.slice(operand, starts, [1] * len(starts), shape))
        self.keep(concatenated(self.builder, parts, axis), self.arrays[operand.name])

    def product(self) -> None:
        left, right = self.one(), self.one()
        if len(left.shape) < 2 or len(right.shape) < 2:
            return
        if left.shape[-1] != right.shape[-2]:
            order = [*range(len(left.shape) - 2), len(left.shape) - 1, len(left.shape) - 2]
            right = self.builder.permute(left, order)
            self.arrays.setdefault(right.name, np.transpose(self.arrays[left.name], order))
        try:
            np.broadcast_shapes(left.shape[:-2], right.shape[:-2])  # type: ignore[arg-type]
        except ValueError:
            return
        array = np.matmul(self.arrays[left.name], self.arrays[right.name])
        if array.size < 3000:
            self.small(product(self.builder, left, right), array)


def drawn(seed: int, most: int = 14) -> Drawn:
    """The graph of a seed."""
    return Drawing(seed).draw(most)
