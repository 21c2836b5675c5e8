"""Random graphs of convolutions with constant weights, residuals and concatenations, rewritten and compiled."""

from __future__ import annotations

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.values import Value
from tc.graph.model import Model
from tc.graph.operators.joining import concatenated
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.operators.pointwise import pointwise
from tc.graph.run.evaluate import evaluate

F = ScalarType.FLOAT32
_KERNELS = ((1, 1), (1, 1), (3, 3), (3, 3), (2, 2), (1, 3), (3, 2))
_STRIDES = ((1, 1), (1, 1), (1, 1), (2, 2), (1, 2), (2, 1), (3, 2))


class _Drawing:
    """A graph whose operators are drawn one after the other, mostly of the last value."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.builder = Builder("random")
        count, channels = self.random.integers(1, 3), self.random.choice([32, 40, 64])
        shape = (int(count), int(channels), *map(int, self.random.integers(7, 15, 2)))
        self.values = [self.builder.input("x", F, shape)]

    def graph(self) -> Graph:
        for _ in range(int(self.random.integers(3, 8))):
            late = self.random.random() < 0.8
            value = self.values[-1 if late else int(self.random.integers(len(self.values)))]
            draws = (self.convolution, self.sum, self.joined)
            self.values += draws[int(self.random.choice(3, p=[0.6, 0.3, 0.1]))](value)
        others = [value for value in self.values[1:-1] if self.random.random() < 0.2]
        return self.builder.finish([self.builder.contiguous(self.values[-1]), *others])

    def convolution(self, value: Value) -> list[Value]:
        _, channels, *extents = (extent for extent in value.shape if isinstance(extent, int))
        kernel = _KERNELS[int(self.random.integers(len(_KERNELS)))]
        strides = _STRIDES[int(self.random.integers(len(_STRIDES)))]
        if any(taps > extent for taps, extent in zip(kernel, extents, strict=True)):
            return []
        groups = 4 if channels % 4 == 0 and self.random.random() < 0.05 else 1
        filters = 64 if groups > 1 else int(self.random.choice([32, 33, 40, 64]))
        shape = (filters, channels // groups, *kernel)
        weights = self.random.normal(size=shape) / np.sqrt(np.prod(shape[1:]))
        bias = self.builder.constant(self.random.normal(size=filters).astype(np.float32))
        axes = [
            explicit_window(size, taps, stride, 1, *map(int, self.random.integers(0, taps, 2)))
            for size, taps, stride in zip(spatial_sizes(2), kernel, strides, strict=True)
        ]
        held = self.builder.constant(weights.astype(np.float32))
        own = bias if self.random.random() < 0.6 else None
        return [convolution(self.builder, value, held, own, Windows(tuple(axes)), groups)]

    def sum(self, value: Value) -> list[Value]:
        alike = [other for other in self.values if other.shape == value.shape]
        other = alike[int(self.random.integers(len(alike)))]
        return [pointwise(self.builder, "add", "max({0} + {1}, 0)", [value, other], F)]

    def joined(self, value: Value) -> list[Value]:
        alike = [other for other in self.values if other.shape[2:] == value.shape[2:]]
        return [concatenated(self.builder, [value, alike[0]], 1)]


@pytest.mark.parametrize("seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(3, 60))])
def test_results_are_those_of_the_graph(seed: int) -> None:
    graph = _Drawing(seed).graph()
    shape = tuple(extent for extent in graph.values["x"].shape if isinstance(extent, int))
    x = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    wanted, found = evaluate(graph, {"x": x}), Model.of(graph).run(list(graph.outputs), {"x": x})
    for name in graph.outputs:
        result = found[name]
        assert isinstance(result, np.ndarray)
        np.testing.assert_allclose(result, wanted[name], rtol=0, atol=2e-5 * float(np.abs(wanted[name]).max()))
