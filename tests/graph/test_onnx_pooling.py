"""Pooling of ONNX, its adjoint, and what normalizes across channels, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tc
from tests.graph.one_node import check, computed, one_node
from tests.graph.windows import extents_of, in_windows

F = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


# Kernel, strides, dilations and pads, such that every window has an element.
GEOMETRIES = [
    ((9,), (3,), (2,), (1,), (1, 1)),
    ((7, 6), (3, 2), (2, 1), (1, 2), (1, 0, 0, 1)),
    ((7, 9), (2, 4), (3, 2), (1, 1), (0, 2, 1, 1)),
    ((5, 4, 6), (2, 3, 1), (1, 2, 2), (2, 1, 1), (0, 1, 0, 1, 1, 0)),
]


def beyond(extent: int, kernel: int, stride: int, dilation: int, before: int, after: int) -> int:
    """How many windows there are where the last may reach further than the padding."""
    count = -(-(extent + before + after - (kernel - 1) * dilation - 1) // stride) + 1
    return count - 1 if (count - 1) * stride >= extent + before else count


def given(geometry: Sequence[Sequence[int]], *, up: bool = False) -> tuple[np.ndarray, dict[str, Any], list[int]]:
    """An image, the attributes of windows, and how many of them there are."""
    extents, kernel, strides, dilations, pads = geometry
    x, rank = random(2, 3, *extents), len(extents)
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": strides,
        "dilations": dilations,
        "pads": pads,
        "ceil_mode": int(up),
    }
    made = extents_of(x, kernel, strides, dilations, pads)
    if up:
        axes = zip(extents, kernel, strides, dilations, pads[:rank], pads[rank:], strict=True)
        made = [beyond(*axis) for axis in axes]
    return x, attributes, made


def pooled(x: np.ndarray, attributes: dict[str, Any], made: list[int]) -> np.ndarray:
    names = ("strides", "dilations", "pads")
    return in_windows(x, attributes["kernel_shape"], **{name: attributes[name] for name in names}, extents=made)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("up", [False, True])
def test_greatest_elements_and_their_places(geometry: Any, up: bool) -> None:
    x, attributes, made = given(geometry, up=up)
    parts = pooled(x, attributes, made)
    check("MaxPool", {"X": x}, {"Y": np.nanmax(parts, -1).astype(F)}, **attributes)
    for column_major in (0, 1):
        order = (0, 1, *range(2, x.ndim)) if not column_major else (0, 1, *reversed(range(2, x.ndim)))
        flat = np.arange(x.size, dtype=np.int64).reshape([x.shape[axis] for axis in order])
        places = pooled(flat.transpose(np.argsort(order)), attributes, made)
        best = np.take_along_axis(places, np.nanargmax(parts, -1)[..., None], -1)[..., 0].astype(np.int64)
        wanted = {"Y": np.nanmax(parts, -1).astype(F), "I": best}
        check("MaxPool", {"X": x}, wanted, storage_order=column_major, **attributes)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("up", [False, True])
def test_means(geometry: Any, up: bool) -> None:
    x, attributes, made = given(geometry, up=up)
    parts = pooled(x, attributes, made)
    check("AveragePool", {"X": x}, {"Y": np.nanmean(parts, -1).astype(F)}, **attributes)
    # Elements of the padding count; those further out do not.
    rank = x.ndim - 2
    pads = [(0, 0), (0, 0), *zip(attributes["pads"][:rank], attributes["pads"][rank:], strict=True)]
    parts = pooled(np.pad(x, pads), {**attributes, "pads": [0] * (2 * rank)}, made)
    check("AveragePool", {"X": x}, {"Y": np.nanmean(parts, -1).astype(F)}, count_include_pad=1, **attributes)


@pytest.mark.parametrize("geometry", GEOMETRIES)
@pytest.mark.parametrize("order", [1, 2, 3])
def test_norms(geometry: Any, order: int) -> None:
    x, attributes, made = given(geometry)
    right = np.nansum(np.abs(pooled(x, attributes, made)) ** order, -1) ** (1 / order)
    check("LpPool", {"X": x}, {"Y": right.astype(F)}, p=order, **attributes)
    axes = tuple(range(2, x.ndim))
    whole = (np.abs(x.astype(np.float64)) ** order).sum(axes, keepdims=True) ** (1 / order)
    check("GlobalLpPool", {"X": x}, {"Y": whole.astype(F)}, p=order)
    check("GlobalAveragePool", {"X": x}, {"Y": x.mean(axes, keepdims=True)})
    check("GlobalMaxPool", {"X": x}, {"Y": x.max(axes, keepdims=True)}, opset=1)


def test_compiled_pooling() -> None:
    x, attributes, made = given(GEOMETRIES[2], up=True)
    parts = pooled(x, attributes, made)
    check("MaxPool", {"X": x}, {"Y": np.nanmax(parts, -1).astype(F)}, compiled=True, **attributes)
    check("AveragePool", {"X": x}, {"Y": np.nanmean(parts, -1).astype(F)}, compiled=True, **attributes)
    best = np.nanargmax(pooled(x, attributes, made), -1)
    flat = pooled(np.arange(x.size).reshape(x.shape), attributes, made)
    places = np.take_along_axis(flat, best[..., None], -1)[..., 0].astype(np.int64)
    wanted = {"Y": np.nanmax(parts, -1).astype(F), "I": places}
    check("MaxPool", {"X": x}, wanted, compiled=True, **attributes)


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.float16, np.float64])
def test_pooling_of_other_types(dtype: Any) -> None:
    x = (random(1, 2, 5, 7) * 40).clip(0, 100).astype(dtype)
    parts = in_windows(x, (2, 2), strides=(1, 1), dilations=(1, 1), pads=(1, 1, 0, 0), extents=(5, 7))
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "pads": [1, 1, 0, 0]}
    check("MaxPool", {"X": x}, {"Y": np.nanmax(parts, -1).astype(dtype)}, opset=12, **attributes)
    if np.dtype(dtype).kind == "f":
        large = x * dtype(500)  # sums of halves would be infinite
        right = np.nanmean(parts * 500, -1).astype(dtype)
        check("AveragePool", {"X": large}, {"Y": right}, tolerance=1e-3, **attributes)


def test_pooling_of_nan_and_infinities() -> None:
    x = np.array([[[1, np.nan, 3, -np.inf, -np.inf, 2]]], F)
    right = np.array([[[np.nan, np.nan, 3, -np.inf, 2]]], F)
    check("MaxPool", {"X": x}, {"Y": right}, kernel_shape=[2])
    places = np.array([[[1, 1, 2, 3, 5]]])
    check("MaxPool", {"X": x}, {"Y": right, "I": places}, kernel_shape=[2])


@pytest.mark.parametrize(("mode", "pads"), [("SAME_UPPER", (0, 0, 1, 1)), ("SAME_LOWER", (1, 1, 0, 0))])
def test_pooling_with_padding_by_itself(mode: str, pads: Sequence[int]) -> None:
    x = random(1, 2, 4, 6)
    parts = in_windows(x, (3, 3), strides=(2, 2), dilations=(1, 1), pads=pads, extents=(2, 3))
    attributes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": mode, "ceil_mode": 1}
    check("MaxPool", {"X": x}, {"Y": np.nanmax(parts, -1).astype(F)}, **attributes)
    check("AveragePool", {"X": x}, {"Y": np.nanmean(parts, -1).astype(F)}, **attributes)
    right = (np.nansum(parts, -1) / 9).astype(F)
    check("AveragePool", {"X": x}, {"Y": right}, count_include_pad=1, **attributes)


def test_pooling_with_open_sizes() -> None:
    x = random(2, 3, 7, 6)
    for up, text in ((0, "(H + 1) / 2"), (1, "H / 2 + 1")):
        attributes: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4, "ceil_mode": up}
        model = one_node("AveragePool", {"X": x}, shapes={"X": ["N", "C", "H", "W"]}, **attributes)
        graph = model.graph()
        assert str(graph.values[graph.outputs[0]].shape[2]) == text
        made = [beyond(extent, 3, 2, 1, 1, 1) if up else (extent - 1) // 2 + 1 for extent in (7, 6)]
        parts = in_windows(x, (3, 3), strides=(2, 2), dilations=(1, 1), pads=(1,) * 4, extents=made)
        np.testing.assert_allclose(computed(model, {"X": x})[0], np.nanmean(parts, -1), atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 7, 3, 4), (1, 2, 5), (3, 1, 1, 1)])
@pytest.mark.parametrize("size", [1, 4, 5])
def test_local_response(shape: Sequence[int], size: int) -> None:
    x = random(*shape)
    squares = np.stack(
        [
            (x[:, max(0, c - (size - 1) // 2) : c + size // 2 + 1].astype(np.float64) ** 2).sum(1)
            for c in range(shape[1])
        ],
        1,
    )
    right = x / (1.5 + 0.3 / size * squares) ** 0.6
    check("LRN", {"X": x}, {"Y": right.astype(F)}, size=size, alpha=0.3, beta=0.6, bias=1.5)
    check("LRN", {"X": x}, {"Y": (x / (1 + 1e-4 / size * squares) ** 0.75).astype(F)}, opset=1, size=size)


@pytest.mark.parametrize("compiled", [False, True])
def test_unpooling(compiled: bool) -> None:
    x = np.array([[[[1, 2], [-3, 4]]], [[[5, 6], [7, 8]]]], F)
    places = np.array([[[[0, 6], [11, 6]]], [[[12, 13], [20, 23]]]])  # of two at one place, the last counts
    right = np.zeros(24, F)
    right[places.reshape(-1)] = x.reshape(-1)
    attributes: dict[str, Any] = {"kernel_shape": [2, 2], "strides": [1, 2]}
    check("MaxUnpool", {"X": x, "I": places}, {"Y": right.reshape(2, 1, 3, 4)}, compiled=compiled, **attributes)
    larger = np.pad(right.reshape(2, 1, 3, 4), [(0, 0), (0, 0), (0, 1), (0, 2)])
    arrays = {"X": x, "I": places, "S": np.array([2, 1, 4, 6])}
    check("MaxUnpool", arrays, {"Y": larger}, compiled=compiled, constants=["S"], **attributes)
    arrays["I"] = places + 20
    with pytest.raises(tc.ArgumentError, match="dimension"):
        computed(one_node("MaxUnpool", arrays, constants=["S"], **attributes), arrays, compiled=compiled)


def test_refused_pooling() -> None:
    x = random(1, 2, 5, 6)
    with pytest.raises(tc.GraphError, match=r"node `Y` .MaxPool.: the attribute `kernel_shape` is missing"):
        one_node("MaxPool", {"X": x}).graph()
    with pytest.raises(tc.GraphError, match="a window over 9 elements does not fit 6 with 0 of padding"):
        one_node("AveragePool", {"X": x}, kernel_shape=[3, 9]).graph()
    arrays = {"X": x, "I": np.zeros(x.shape, np.int64)}
    with pytest.raises(tc.GraphError, match=r"`kernel_shape` is \(2,\), and must have 2 numbers"):
        one_node("MaxUnpool", arrays, kernel_shape=[2]).graph()
