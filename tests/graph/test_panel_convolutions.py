"""Convolutions of images with channels last, whose weights lie in panels: results, and where they are taken."""

from __future__ import annotations

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.model import Model
from tc.graph.operators.joining import concatenated
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.operators.pointwise import pointwise
from tc.graph.preparation import prepared
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules import RULES, channels_last
from tc.graph.run.evaluate import evaluate
from tc.graph.settings import Settings
from tests.graph.windows import convolved
from tests.turns import one_in

F = ScalarType.FLOAT32
STRIDED, POINTS = (rule.name for rule in channels_last.RULES)


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
        ((2, 37, 5, 9), 24, (1, 1), (1, 1), (0, 0, 0, 0)),
        ((1, 32, 8, 11), 40, (1, 1), (2, 3), (0, 0, 0, 0)),
        ((1, 32, 6, 7), 40, (1, 1), (1, 2), (1, 0, 0, 2)),
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
    assert [applied.rule for applied in trace].count(POINTS if kernel == (1, 1) else STRIDED) == 1
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = Model.of(graph)(x) if compiled else evaluate(changed, {"x": x})[changed.outputs[0]]
    weights, *added = (graph.constants[name].astype(np.float64) for name in graph.nodes[-1].operands[1:])
    wanted = convolved(x, weights, strides=strides, dilations=(1, 1), pads=pads) + sum(b[:, None, None] for b in added)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=1e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize(
    ("graph", "why"),
    [
        (graph_of((1, 32, 14, 14), 32, (3, 3), (2, 1), (1, 1, 1, 1)), "lanes lie along rows"),
        (graph_of((1, 16, 14, 14), 32, (1, 1), (1, 1), (0, 0, 0, 0)), "few channels for points"),
        (graph_of((1, 3, 14, 14), 32, (3, 3), (2, 2), (1, 1, 1, 1)), "few channels"),
        (graph_of((1, 32, 14, 14), 33, (3, 3), (2, 2), (1, 1, 1, 1)), "filters do not fill panels"),
        (graph_of((1, 64, 14, 14), 64, (3, 3), (2, 2), (1, 1, 1, 1), groups=2), "groups"),
        (graph_of((1, 32, 14, 14), 32, (3, 3), (2, 2), (0, 0, -4, -4)), "rows that are cut off"),
        (graph_of((0, 32, 14, 14), 32, (3, 3), (2, 2), (1, 1, 1, 1)), "no images"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_other_convolutions_stay(graph: Graph, why: str) -> None:
    _, trace = rewritten(graph, RULES)
    assert not {STRIDED, POINTS} & {applied.rule for applied in trace}, why


@pytest.mark.parametrize(("target", "taken"), [("cpu", True), ("cuda:sm_90", False)])
def test_panels_are_for_processors(target: str, taken: bool) -> None:
    graph = graph_of((1, 32, 14, 14), 48, (3, 3), (2, 2), (1, 1, 1, 1))
    ready = prepared(graph, Settings(target=target))
    assert (STRIDED in {applied.rule for applied in ready.trace}) is taken


def block(joined: bool) -> Graph:
    """Two convolutions of single elements with a residual between; ``joined``: two halves of the channels first."""
    builder = Builder("block")
    random = np.random.default_rng(5)
    x = builder.input("x", F, (1, 32, 9, 10))
    windows = Windows(tuple(explicit_window(size, 1) for size in spatial_sizes(2)))

    def points(value: Value, channels: int, filters: int) -> Value:
        weights = random.normal(size=(filters, channels, 1, 1)).astype(np.float32)
        return convolution(builder, value, builder.constant(weights), None, windows)

    first = concatenated(builder, [points(x, 32, 32), x], 1) if joined else points(x, 32, 64)
    made = pointwise(builder, "relu", "max({0} + {1}, 0)", [points(first, 64, 64), first], F)
    return builder.finish([points(made, 64, 32)])


def test_whole_graphs_have_channels_last() -> None:
    """One kernel turns the image, one the result; what lies between are those of the three convolutions."""
    graph = block(joined=False)
    calls = [node for node in prepared(graph, Settings(target="cpu")).memory.graph.nodes if isinstance(node, Call)]
    assert len(calls) == 5
    assert sum("conv" in call.program.name for call in calls) == 3
    x = np.random.default_rng(0).normal(size=(1, 32, 9, 10)).astype(np.float32)
    wanted = evaluate(graph, {"x": x})[graph.outputs[0]]
    found = Model.of(graph)(x)
    assert isinstance(found, np.ndarray)
    np.testing.assert_allclose(found, wanted, rtol=0, atol=2e-6 * float(np.abs(wanted).max()))


def test_channels_that_are_joined_keep_their_place() -> None:
    _, trace = rewritten(block(joined=True), RULES)
    assert POINTS not in {applied.rule for applied in trace}


@pytest.mark.parametrize("groups", [1, 2, 64])
def test_grouped_convolutions_keep_the_channels_of_others_in_place(groups: int) -> None:
    builder = Builder("groups")
    random = np.random.default_rng(5)
    made = builder.input("x", F, (1, 64, 6, 5))
    windows = Windows(tuple(explicit_window(size, 1) for size in spatial_sizes(2)))
    for own in (1, groups):
        weights = random.normal(size=(64, 64 // own, 1, 1)).astype(np.float32)
        made = convolution(builder, made, builder.constant(weights), None, windows, own)
    _, trace = rewritten(builder.finish([made]), RULES)
    assert [applied.rule for applied in trace].count(POINTS) == (2 if groups == 1 else 0)
