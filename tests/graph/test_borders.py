"""Convolutions over borders on GPUs: zeros around images, with which conditions are gone and results the same."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import number
from tc.graph.operators.neural.convolution import convolution, transposed_convolution
from tc.graph.operators.neural.windows import Window, Windows, explicit_window, spatial_sizes
from tc.graph.preparation import prepared
from tc.graph.rewrite.engine import rewritten
from tc.graph.rewrite.rules.borders import RULES
from tc.graph.run.evaluate import evaluate
from tc.graph.settings import Settings

F = ScalarType.FLOAT32


def graph_of(
    axes: tuple[Window, ...],
    image: tuple[int, ...],
    filters: tuple[int, ...],
    groups: int = 1,
    *,
    adjoint: tuple[int, ...] = (),
) -> Graph:
    """A convolution with a bias, or the adjoint of one with results of such extents."""
    builder, windows = Builder("bordered"), Windows(axes)
    x, w = builder.input("x", F, image), builder.input("w", F, filters)
    b = builder.input("b", F, (filters[1] * groups if adjoint else filters[0],))
    if adjoint:
        made = transposed_convolution(builder, x, w, b, windows, [str(extent) for extent in adjoint], groups)
    else:
        made = convolution(builder, x, w, b, windows, groups)
    return builder.finish([made])


def windows(*axes: tuple[int, int, int, int, int]) -> tuple[Window, ...]:
    """Those with such kernels, strides, dilations, and elements of padding before and after."""
    return tuple(explicit_window(size, *own) for size, own in zip(spatial_sizes(len(axes)), axes, strict=True))


CASES = {
    "same": graph_of(windows((3, 1, 1, 1, 1), (3, 1, 1, 1, 1)), (2, 3, 5, 6), (4, 3, 3, 3)),
    "one side": graph_of(windows((3, 1, 1, 2, 0), (2, 1, 1, 0, 1)), (1, 2, 5, 6), (3, 2, 3, 2)),
    "strides": graph_of(windows((3, 2, 1, 1, 1), (3, 3, 1, 1, 0)), (1, 2, 7, 9), (3, 2, 3, 3)),
    "rest": graph_of(
        windows(
            (3, 2, 1, 1, 1),
        ),
        (1, 2, 8),
        (3, 2, 3),
    ),
    "dilation": graph_of(windows((3, 1, 2, 2, 2), (2, 2, 3, 1, 2)), (1, 2, 7, 9), (3, 2, 3, 2)),
    "groups": graph_of(windows((3, 1, 1, 1, 1)), (2, 4, 7), (6, 2, 3), 2),
    "cropped ahead": graph_of(windows((3, 1, 1, -1, 2)), (1, 2, 7), (3, 2, 3)),
    "cropped behind": graph_of(windows((3, 1, 1, 2, -1)), (1, 2, 7), (3, 2, 3)),
    "beyond": graph_of((explicit_window("L", 3, 2, 1, 1, 0, up=True),), (1, 2, 7), (3, 2, 3)),
    "three axes": graph_of(
        windows((2, 1, 1, 1, 0), (3, 1, 1, 1, 1), (2, 2, 1, 1, 1)), (1, 2, 3, 4, 5), (2, 2, 2, 3, 2)
    ),
    "no rows": graph_of(windows((3, 1, 1, 4, 4)), (1, 2, 3), (2, 2, 3)),
    "adjoint": graph_of(windows((3, 1, 1, 1, 1), (2, 1, 1, 0, 0)), (2, 3, 5, 6), (3, 4, 3, 2), adjoint=(5, 7)),
    "adjoint with dilation": graph_of(windows((3, 1, 2, 1, 2)), (1, 2, 6), (2, 3, 3), adjoint=(7,)),
    "adjoint cropped": graph_of(windows((3, 1, 1, 3, 3)), (1, 2, 6), (2, 3, 3), adjoint=(2,)),
    "adjoint with groups": graph_of(windows((3, 1, 1, 2, 2)), (1, 4, 6), (4, 3, 3), 2, adjoint=(4,)),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_the_same(name: str) -> None:
    graph, random = CASES[name], np.random.default_rng(3)
    changed, trace = rewritten(graph, RULES)
    assert [applied.rule for applied in trace] == ["zeros around images"]
    shapes = {name: [number(extent, name) for extent in graph.values[name].shape] for name in graph.inputs}
    arrays = {name: random.integers(-4, 5, shape).astype(np.float32) for name, shape in shapes.items()}
    before, after = evaluate(graph, arrays), evaluate(changed, arrays)
    np.testing.assert_array_equal(after[changed.outputs[0]], before[graph.outputs[0]])


def test_what_has_no_borders_or_leaves_places_out_stays() -> None:
    for graph in (
        graph_of(windows((3, 2, 1, 0, 0)), (1, 2, 8), (3, 2, 3)),
        graph_of(windows((3, 2, 1, 1, 1)), (1, 2, 5), (2, 3, 3), adjoint=(9,)),
        graph_of(windows((3, 1, 1, 1, 1)), (2, 4, 7), (4, 1, 3), 4),  # single channels
        graph_of((Window(3, 2, 1, "L / 4", 1, False, "L / 2"),), (1, 2, 8), (3, 2, 3)),
    ):
        assert rewritten(graph, RULES) == (graph, ())


def test_only_plans_for_gpus_have_them() -> None:
    graph = CASES["same"]
    for target, there in (("cpu", False), ("emulator", True), ("cuda:sm_80", True)):
        trace = prepared(graph, Settings(target=target)).trace
        assert ("zeros around images" in {applied.rule for applied in trace}) is there
    assert prepared(graph, Settings(target="emulator", rules=())).trace == ()


def test_convolutions_of_halves_over_borders_take_matrix_instructions() -> None:
    builder = Builder("halves")
    half = ScalarType.BFLOAT16
    x, w = builder.input("x", half, (1, 16, 10, 12)), builder.input("w", half, (24, 16, 3, 3))
    made = convolution(builder, x, w, None, Windows(windows((3, 1, 1, 1, 1), (3, 1, 1, 1, 1))))
    model = tc.graph.Model.of(builder.finish([made]), Settings(target="emulator"))
    random = np.random.default_rng(1)
    given = [random.integers(-2, 3, shape).astype(ml_dtypes.bfloat16) for shape in ((1, 16, 10, 12), (24, 16, 3, 3))]
    found = np.asarray(model(*given), np.float64)
    image = np.pad(given[0].astype(np.float64), ((0, 0), (0, 0), (1, 1), (1, 1)))
    blocks = np.lib.stride_tricks.sliding_window_view(image, (3, 3), (2, 3))
    wanted = np.einsum("nchwij,fcij->nfhw", blocks, given[1].astype(np.float64))
    np.testing.assert_array_equal(found, wanted.astype(ml_dtypes.bfloat16).astype(np.float64))
