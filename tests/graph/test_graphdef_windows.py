"""Convolutions, pooling and normalization of TensorFlow beside NumPy; and operators that are compiled."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.graph.comparison import f32, same, uniform
from tests.graph.graphdefs import applied, fixed

Array = np.ndarray


# --- windows ----------------------------------------------------------------------------------------------


def borders(extent: int, size: int, stride: int, dilation: int, padding: str) -> tuple[int, int, int]:
    """How many elements are before and after, and how many windows there are."""
    reach = dilation * (size - 1) + 1
    if padding == "VALID":
        return 0, 0, (extent - reach) // stride + 1
    count = -(-extent // stride)
    total = max((count - 1) * stride + reach - extent, 0)
    return total // 2, total - total // 2, count


def windows(
    x: Array, size: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int], padding: str
) -> Array:
    """All windows of a tensor with channels last: (N, rows, columns, height, width, C); NaN is outside."""
    pads = [borders(x.shape[axis + 1], size[axis], strides[axis], dilations[axis], padding) for axis in range(2)]
    wide = np.pad(x.astype(np.float64), ((0, 0), pads[0][:2], pads[1][:2], (0, 0)), constant_values=np.nan)
    places = [
        np.arange(pads[axis][2])[:, None] * strides[axis] + np.arange(size[axis]) * dilations[axis] for axis in range(2)
    ]
    return wide[:, places[0][:, None, :, None], places[1][None, :, None, :]]


WINDOWS = [
    ((3, 2), (1, 1), (1, 1)),
    ((3, 3), (2, 1), (1, 1)),
    ((2, 3), (3, 2), (1, 1)),
    ((3, 2), (1, 1), (2, 3)),
    ((1, 1), (2, 2), (1, 1)),
]


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(("size", "strides", "dilations"), WINDOWS)
def test_convolutions(
    size: tuple[int, int], strides: tuple[int, int], dilations: tuple[int, int], padding: str
) -> None:
    x, filters = uniform(2, 7, 8, 3), uniform(*size, 3, 5, seed=1)
    patches = np.nan_to_num(windows(x, size, strides, dilations, padding))
    expected = np.einsum("nhwijc,ijco->nhwo", patches, filters).astype(np.float32)
    attributes: dict[str, Any] = {
        "padding": padding,
        "strides": [1, *strides, 1],
        "dilations": [1, *dilations, 1],
    }
    same(applied("Conv2D", x, filters, **attributes)[0], expected, tolerance=1e-5)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    attributes |= {"strides": [1, 1, *strides], "dilations": [1, 1, *dilations], "data_format": "NCHW"}
    same(applied("Conv2D", first, filters, **attributes)[0], expected.transpose(0, 3, 1, 2), tolerance=1e-5)
    deep = uniform(*size, 3, 2, seed=2)
    each = np.einsum("nhwijc,ijcm->nhwcm", patches, deep).astype(np.float32)
    attributes = {"padding": padding, "strides": [1, *strides, 1], "dilations": [1, *dilations, 1]}
    expected = each.reshape(*each.shape[:3], 6)
    same(applied("DepthwiseConv2dNative", x, deep, **attributes)[0], expected, tolerance=1e-5)


def test_convolutions_of_groups_and_explicit_padding() -> None:
    x, filters = uniform(1, 5, 5, 6), uniform(3, 3, 2, 9, seed=1)
    parts = []
    for group in range(3):
        patches = np.nan_to_num(windows(x[..., 2 * group : 2 * group + 2], (3, 3), (1, 1), (1, 1), "SAME"))
        parts.append(np.einsum("nhwijc,ijco->nhwo", patches, filters[..., 3 * group : 3 * group + 3]))
    expected = np.concatenate(parts, -1).astype(np.float32)
    explicit: dict[str, Any] = {"padding": "EXPLICIT", "explicit_paddings": [0, 0, 1, 1, 1, 1, 0, 0]}
    same(applied("Conv2D", x, filters, strides=[1, 1, 1, 1], padding="SAME")[0], expected, tolerance=1e-5)
    same(applied("Conv2D", x, filters, strides=[1, 1, 1, 1], **explicit)[0], expected, tolerance=1e-5)
    single = uniform(3, 3, 6, 1, seed=2)
    found = applied("DepthwiseConv2dNative", x, single, strides=[1, 1, 1, 1], padding="SAME")[0]
    patches = np.nan_to_num(windows(x, (3, 3), (1, 1), (1, 1), "SAME"))
    same(found, np.einsum("nhwijc,ijcm->nhwc", patches, single).astype(np.float32), tolerance=1e-5)


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize(
    ("size", "strides"), [(size, strides) for size, strides, dilations in WINDOWS if dilations == (1, 1)]
)
def test_pooling(size: tuple[int, int], strides: tuple[int, int], padding: str) -> None:
    x = uniform(2, 7, 8, 3)
    patches = windows(x, size, strides, (1, 1), padding)
    attributes: dict[str, Any] = {"ksize": [1, *size, 1], "strides": [1, *strides, 1], "padding": padding}
    same(applied("MaxPool", x, **attributes)[0], np.nanmax(patches, (3, 4)).astype(np.float32))
    same(applied("AvgPool", x, **attributes)[0], np.nanmean(patches, (3, 4)).astype(np.float32), tolerance=1e-5)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    attributes |= {"ksize": [1, 1, *size], "strides": [1, 1, *strides], "data_format": "NCHW"}
    expected = np.nanmax(patches, (3, 4)).astype(np.float32).transpose(0, 3, 1, 2)
    same(applied("MaxPool", first, **attributes)[0], expected)


@pytest.mark.parametrize("name", ["FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3"])
def test_batch_normalization(name: str) -> None:
    x, scale, shift, mean = uniform(2, 4, 5, 3), *(uniform(3, seed=seed) for seed in (1, 2, 3))
    variance = uniform(3, seed=4, low=0.1)
    expected = (x - mean) / np.sqrt(variance + 1e-3) * scale + shift
    found = applied(name, x, scale, shift, mean, variance, results=3, epsilon=1e-3, is_training=False)
    same(found[0], expected, tolerance=1e-5)
    same(found[1], mean)
    same(found[2], variance)
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    found = applied(name, first, scale, shift, mean, variance, epsilon=1e-3, is_training=False, data_format="NCHW")
    same(found[0], expected.transpose(0, 3, 1, 2), tolerance=1e-5)


def test_local_response_normalization() -> None:
    x = uniform(2, 3, 2, 9)
    squares = np.stack([(x[..., max(c - 2, 0) : c + 3] ** 2).sum(-1) for c in range(9)], -1)
    found = applied("LRN", x, depth_radius=2, bias=1.5, alpha=0.25, beta=0.75)[0]
    same(found, x / (1.5 + 0.25 * squares) ** 0.75, tolerance=1e-5)
    squares = np.stack([(x[..., max(c - 5, 0) : c + 6] ** 2).sum(-1) for c in range(9)], -1)
    same(applied("LRN", x)[0], x / np.sqrt(1 + squares), tolerance=1e-5)


# --- compiled ---------------------------------------------------------------------------------------------


def test_compiled_operators() -> None:
    x, y = uniform(3, 1, 5), uniform(4, 1, seed=1)
    same(applied("FloorMod", x, y, compiled=True)[0], np.mod(x, y))
    left, right = uniform(7, 3), uniform(5, 7, seed=1)
    same(
        applied("MatMul", left, right, transpose_a=True, transpose_b=True, compiled=True)[0],
        left.T @ right.T,
        tolerance=1e-5,
    )
    same(applied("Tile", x, fixed([2, 3, 1]), compiled=True)[0], np.tile(x, (2, 3, 1)))
    image, filters = uniform(1, 5, 6, 3), uniform(3, 3, 3, 4, seed=1)
    patches = np.nan_to_num(windows(image, (3, 3), (2, 2), (1, 1), "SAME"))
    expected = np.einsum("nhwijc,ijco->nhwo", patches, filters).astype(np.float32)
    same(
        applied("Conv2D", image, filters, strides=[1, 2, 2, 1], padding="SAME", compiled=True)[0],
        expected,
        tolerance=1e-5,
    )
    same(applied("ArgMax", left, np.array(1, np.int32), compiled=True)[0], left.argmax(1))
    base, power = np.array([-3, 2, 5], np.int32), np.array([[3], [0]], np.int32)
    same(applied("Pow", base, power, compiled=True)[0], base**power)
    indices = np.array([[2, 0], [1, 4]], np.int32)
    stitched = applied("DynamicStitch", indices, uniform(2, 2, 3), N=1, compiled=True)[0]
    same(stitched[3], np.zeros(3, np.float32))
    found = applied("Range", f32(0), f32(1), f32(0.25), compiled=True)
    same(found[0], f32([0, 0.25, 0.5, 0.75]))
