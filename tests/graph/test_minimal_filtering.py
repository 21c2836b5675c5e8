"""Convolutions by minimal filtering: the transforms, the results, and when they are chosen."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.model import Model
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.filter_transforms import transforms
from tc.graph.operators.neural.filtered_planes import FilteredPlanes
from tc.graph.operators.neural.filtered_rows import FilteredRows
from tc.graph.operators.neural.plain_convolution import PlainConvolution
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.preparation import prepared
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules import RULES, minimal_filtering
from tc.graph.run.evaluate import evaluate
from tc.graph.settings import Settings
from tests.turns import one_in

F = ScalarType.FLOAT32
NAME, GPUS = (rule.name for rule in minimal_filtering.RULES)


@pytest.mark.parametrize("r", [2, 3, 5])
@pytest.mark.parametrize("m", [2, 3, 4])
def test_transforms_filter(m: int, r: int) -> None:
    random = np.random.default_rng(0)
    rows, taps = random.normal(size=m + r - 1), random.normal(size=r)
    found = transforms(m, r)
    filtered = found.back @ ((found.weights @ taps) * (found.image @ rows))
    np.testing.assert_allclose(filtered, np.correlate(rows, taps, "valid"), rtol=1e-11, atol=1e-11)


def graph_of(shape: tuple[int, ...], filters: int, kernel: tuple[int, int], pads: tuple[int, ...], bias: bool) -> Graph:
    builder = Builder("convolution")
    random = np.random.default_rng(3)
    x = builder.input("x", F, shape)
    weights = builder.constant(random.normal(size=(filters, shape[1], *kernel)).astype(np.float32))
    own = builder.constant(random.normal(size=filters).astype(np.float32)) if bias else None
    axes = [
        explicit_window(size, extent, 1, 1, pads[at], pads[at + 2])
        for at, (size, extent) in enumerate(zip(spatial_sizes(2), kernel, strict=True))
    ]
    return builder.finish([convolution(builder, x, weights, own, Windows(tuple(axes)))])


def direct(graph: Graph, x: np.ndarray, pads: tuple[int, ...]) -> np.ndarray:
    weights, *bias = (graph.constants[name].astype(np.float64) for name in graph.nodes[-1].operands[1:])
    padded = np.pad(x.astype(np.float64), ((0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])))
    windows = np.lib.stride_tricks.sliding_window_view(padded, weights.shape[2:], (2, 3))
    found: np.ndarray = np.einsum("nchwrs,fcrs->nfhw", windows, weights)
    if bias:
        found += bias[0][:, None, None]
    return found


@one_in(3)
@pytest.mark.parametrize("compiled", [False, True], ids=["oracle", "compiled"])
@pytest.mark.parametrize(
    ("shape", "filters", "kernel", "pads"),
    [
        ((1, 32, 14, 14), 64, (3, 3), (1, 1, 1, 1)),
        ((2, 40, 13, 17), 48, (3, 3), (1, 0, 0, 2)),
        ((1, 128, 9, 11), 130, (3, 1), (0, 0, 0, 0)),
        ((1, 64, 14, 20), 64, (3, 5), (2, 2, 2, 2)),
        ((1, 64, 30, 15), 64, (3, 2), (0, 1, 3, 0)),
        ((2, 96, 61, 1), 128, (5, 1), (2, 0, 1, 0)),
        ((1, 96, 60, 1), 128, (3, 1), (0, 0, 0, 0)),
    ],
)
def test_results_are_those_of_the_sum(
    shape: tuple[int, ...], filters: int, kernel: tuple[int, int], pads: tuple[int, ...], compiled: bool
) -> None:
    graph = graph_of(shape, filters, kernel, pads, bias=filters != 48)
    changed, trace = rewritten(graph, RULES)
    assert [applied.rule for applied in trace].count(NAME) == 1
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found = Model.of(graph)(x) if compiled else evaluate(changed, {"x": x})[changed.outputs[0]]
    wanted = direct(graph, x, pads)
    assert isinstance(found, np.ndarray)
    # Twice the greatest error of random convolutions with up to 512 channels.
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6 * float(np.abs(wanted).max()))


@pytest.mark.parametrize(
    ("shape", "filters", "kernel"),
    [
        ((1, 3, 56, 56), 64, (3, 3)),  # short sums: transforms take longer than they save
        ((1, 64, 56, 56), 64, (1, 1)),
        ((1, 64, 56, 56), 64, (7, 7)),  # large coefficients
        ((1, 64, 3, 3), 64, (3, 3)),  # a single row
        ((1, 0, 14, 14), 64, (3, 3)),
    ],
)
def test_other_convolutions_stay(shape: tuple[int, ...], filters: int, kernel: tuple[int, int]) -> None:
    _, trace = rewritten(graph_of(shape, filters, kernel, (0, 0, 0, 0), bias=True), RULES)
    assert NAME not in {applied.rule for applied in trace}


@pytest.mark.parametrize("form", [FilteredRows, FilteredPlanes, partial(FilteredPlanes, panels=False)])
@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize(
    ("shape", "filters", "kernel", "pads"),
    [
        ((2, 5, 7, 8), 32, (3, 3), (1, 1, 1, 1)),
        ((1, 3, 9, 5), 48, (2, 3), (0, 2, 1, 0)),
        ((1, 4, 6, 11), 8, (3, 2), (2, 0, 0, 1)),
        ((3, 2, 5, 5), 7, (2, 2), (0, 0, 0, 0)),
    ],
)
def test_forms_are_the_convolution(
    form: Callable[[PlainConvolution, int], FilteredRows | FilteredPlanes],
    shape: tuple[int, int, int, int],
    filters: int,
    kernel: tuple[int, int],
    pads: tuple[int, int, int, int],
    m: int,
) -> None:
    graph = graph_of(shape, filters, kernel, pads, bias=True)
    weights, bias = (graph.constants[name] for name in graph.nodes[-1].operands[1:])
    (result,) = (graph.values[name].shape[2:] for name in graph.outputs)
    height, width = (extent for extent in result if isinstance(extent, int))
    plain = PlainConvolution(shape, (filters, shape[1], *kernel), pads[:2], (height, width))
    builder = Builder("filtered")
    x = builder.input("x", F, shape)
    found = builder.finish([form(plain, m).build(builder, x, lambda: weights, builder.constant(bias))])
    drawn = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    results = evaluate(found, {"x": drawn})[found.outputs[0]]
    wanted = direct(graph, drawn, pads)
    np.testing.assert_allclose(results, wanted, rtol=0, atol=5e-6 * float(np.abs(wanted).max()))


def test_windows_are_transformed_where_that_costs_less() -> None:
    def best(channels: int, extent: int) -> FilteredRows | FilteredPlanes:
        plain = PlainConvolution((1, channels, extent, extent), (channels, channels, 3, 3), (1, 1), (extent, extent))
        return min(
            (form(plain, m) for form in (FilteredRows, FilteredPlanes) for m in (2, 3)), key=lambda own: own.cost
        )

    assert (type(best(256, 14)), best(256, 14).m) == (FilteredPlanes, 2)
    assert (type(best(64, 56)), best(64, 56).m) == (FilteredPlanes, 3)
    assert isinstance(best(4, 56), FilteredRows)  # as much is moved as is summed


@pytest.mark.parametrize(("target", "name"), [("cpu", NAME), ("emulator", GPUS), ("cuda:sm_90", GPUS)])
def test_each_machine_has_its_own_rule(target: str, name: str) -> None:
    graph = graph_of((1, 32, 14, 14), 64, (3, 3), (1, 1, 1, 1), bias=True)
    trace = prepared(graph, Settings(target=target)).trace
    assert {applied.rule for applied in trace} & {NAME, GPUS} == {name}


def test_convolutions_are_filtered_on_gpus() -> None:
    shape = (1, 32, 14, 14)
    graph = graph_of(shape, 64, (3, 3), (1, 1, 1, 1), bias=True)
    model = Model.of(graph, Settings(target="emulator"))
    x = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    found, wanted = model(x), direct(graph, x, (1, 1, 1, 1))
    assert isinstance(found, np.ndarray)
    assert GPUS in {applied.rule for applied in prepared(graph, Settings(target="emulator")).trace}
    np.testing.assert_allclose(found, wanted, rtol=0, atol=5e-6 * float(np.abs(wanted).max()))


def test_groups_have_as_many_rows_as_cost_least() -> None:
    def rows(height: int) -> int:
        forms = [
            FilteredRows(PlainConvolution((1, 64, height + 2, 56), (64, 64, 3, 3), (0, 0), (height, 54)), m)
            for m in (2, 3, 4)
        ]
        return min(forms, key=lambda form: form.cost).m

    assert [rows(2), rows(3), rows(4), rows(6), rows(56)] == [2, 3, 4, 3, 4]
