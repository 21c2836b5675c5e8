"""Strided convolutions of images with channels last, whose weights lie in panels: results, and where they are taken."""

from __future__ import annotations

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.model import Model
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.preparation import prepared
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules import RULES, strided_convolutions
from tc.graph.run.evaluate import evaluate
from tc.graph.settings import Settings
from tests.turns import one_in

F = ScalarType.FLOAT32
NAME = strided_convolutions.RULES[0].name


def graph_of(
    shape: tuple[int, ...],
    filters: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    *,
    bias: bool = True,
    groups: int = 1,
) -> Graph:
    builder = Builder("convolution")
    random = np.random.default_rng(3)
    x = builder.input("x", F, shape)
    weights = random.normal(size=(filters, shape[1] // groups, *kernel)).astype(np.float32)
    own = builder.constant(random.normal(size=filters).astype(np.float32)) if bias else None
    axes = [
        explicit_window(size, extent, strides[at], 1, pads[at], pads[at + 2])
        for at, (size, extent) in enumerate(zip(spatial_sizes(2), kernel, strict=True))
    ]
    made = convolution(builder, x, builder.constant(weights), own, Windows(tuple(axes)), groups)
    return builder.finish([made])


def direct(graph: Graph, x: np.ndarray, strides: tuple[int, int], pads: tuple[int, int, int, int]) -> np.ndarray:
    weights, *bias = (graph.constants[name].astype(np.float64) for name in graph.nodes[-1].operands[1:])
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], (2, 3))
    found: np.ndarray = np.einsum("nchwrs,fcrs->nfhw", windows[:, :, :: strides[0], :: strides[1]], weights)
    return found + bias[0][:, None, None] if bias else found


@one_in(3)
@pytest.mark.parametrize("compiled", [False, True], ids=["oracle", "compiled"])
@pytest.mark.parametrize(
    ("shape", "filters", "kernel", "strides", "pads"),
    [
        ((1, 32, 14, 14), 48, (3, 3), (2, 2), (1, 1, 1, 1)),
        ((2, 33, 13, 17), 40, (5, 3), (2, 3), (0, 2, 1, 0)),
        ((1, 64, 9, 12), 8, (1, 2), (1, 2), (0, 0, 0, 0)),
        ((3, 32, 8, 11), 16, (2, 4), (4, 2), (3, 0, 0, 1)),
        ((1, 40, 10, 10), 32, (3, 3), (3, 3), (0, 0, 0, 0)),  # the last row and column are in no window
    ],
)
def test_results_are_those_of_the_sum(
    shape: tuple[int, ...],
    filters: int,
    kernel: tuple[int, int],
    strides: tuple[int, int],
    pads: tuple[int, int, int, int],
    compiled: bool,
) -> None:
    graph = graph_of(shape, filters, kernel, strides, pads, bias=filters != 40)
    changed, trace = rewritten(graph, RULES)
    assert [applied.rule for applied in trace].count(NAME) == 1
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = Model.of(graph)(x) if compiled else evaluate(changed, {"x": x})[changed.outputs[0]]
    wanted = direct(graph, x, strides, pads)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (graph_of((1, 32, 14, 14), 32, (3, 3), (2, 1), (1, 1, 1, 1)), "lanes lie along rows"),
        (graph_of((1, 32, 14, 14), 32, (1, 1), (2, 2), (0, 0, 0, 0)), "windows of one element"),
        (graph_of((1, 3, 14, 14), 32, (3, 3), (2, 2), (1, 1, 1, 1)), "few channels"),
        (graph_of((1, 32, 14, 14), 33, (3, 3), (2, 2), (1, 1, 1, 1)), "filters do not fill panels"),
        (graph_of((1, 64, 14, 14), 64, (3, 3), (2, 2), (1, 1, 1, 1), groups=2), "groups"),
        (graph_of((0, 32, 14, 14), 32, (3, 3), (2, 2), (1, 1, 1, 1)), "no images"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_other_convolutions_stay(graph: Graph, why: str) -> None:
    _, trace = rewritten(graph, RULES)
    assert NAME not in {applied.rule for applied in trace}, why


@pytest.mark.parametrize(("target", "taken"), [("cpu", True), ("cuda:sm_90", False)])
def test_panels_are_for_processors(target: str, taken: bool) -> None:
    graph = graph_of((1, 32, 14, 14), 48, (3, 3), (2, 2), (1, 1, 1, 1))
    ready = prepared(graph, Settings(target=target))
    assert (NAME in {applied.rule for applied in ready.trace}) is taken
