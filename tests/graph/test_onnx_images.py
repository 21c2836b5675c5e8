"""Blocks, columns, sampling and regions of images of ONNX, beside NumPy."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tc
from tests.graph.one_node import check, computed, one_node
from tests.graph.windows import adjoint, convolved, extents_of, geometries

F = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


# --- blocks and columns ------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 2, 3])
@pytest.mark.parametrize("channels", [1, 2, 5])
@pytest.mark.parametrize("mode", ["DCR", "CRD"])
def test_blocks(block: int, channels: int, mode: str) -> None:
    x = random(2, channels * block**2, 3, 4)
    parts = (block, block, channels) if mode == "DCR" else (channels, block, block)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    made = x.reshape(2, *parts, 3, 4).transpose(order).reshape(2, channels, 3 * block, 4 * block)
    given: dict[str, Any] = {"blocksize": block, "mode": mode}
    check("DepthToSpace", {"X": x}, {"Y": made}, opset=13, compiled=channels == 2, **given)
    check("SpaceToDepth", {"X": made}, {"Y": x}, opset=28, **given)
    if mode == "DCR":
        check("DepthToSpace", {"X": x}, {"Y": made}, opset=6, blocksize=block)
        check("SpaceToDepth", {"X": made}, {"Y": x}, opset=6, blocksize=block, shapes={"X": ["N", "C", "H", "W"]})


def test_refused_blocks() -> None:
    x = random(1, 6, 4, 6)
    with pytest.raises(tc.GraphError, match="6 channels do not divide into blocks of 2 times 2"):
        one_node("DepthToSpace", {"X": x}, blocksize=2).graph()
    with pytest.raises(tc.GraphError, match="an extent of 4 does not divide into blocks of 3"):
        one_node("SpaceToDepth", {"X": x}, blocksize=3).graph()
    with pytest.raises(tc.GraphError, match="`mode` is 'RCD', and must be DCR or CRD"):
        one_node("DepthToSpace", {"X": x}, blocksize=1, mode="RCD").graph()
    with pytest.raises(tc.GraphError, match="`blocksize` is 0, and must be positive"):
        one_node("SpaceToDepth", {"X": x}, blocksize=0).graph()


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_columns_of_windows(rank: int) -> None:
    kernel, shape = (2, 3, 1)[:rank], (8, 7, 5)[:rank]
    for seed, geometry in enumerate(geometries(rank, 3, 5)):
        counts = extents_of(np.zeros((1, 1, *shape)), kernel, *geometry.values())
        size = math.prod(kernel)
        x = random(2, 3 * size, math.prod(counts), seed=seed)
        # Each element of a kernel is a channel, whose weights have a 1 at its place.
        weights = np.eye(size).reshape(size, 1, *kernel)
        image = x.reshape(6, size, *counts)
        pads = geometry["pads"]
        most = [
            max(0, shape[a] + pads[a] + pads[rank + a] - (counts[a] - 1) * geometry["strides"][a]
                - (kernel[a] - 1) * geometry["dilations"][a] - 1)
            for a in range(rank)
        ]  # fmt: skip
        right = adjoint(image, weights, **geometry, output_padding=most).reshape(2, 3, *shape)
        arrays = {"X": x, "S": np.array(shape), "K": np.array(kernel)}
        given: dict[str, Any] = {"constants": ["S", "K"], "opset": 18, **geometry}
        check("Col2Im", arrays, {"Y": right.astype(F)}, compiled=rank == 2, **given)
        whole = (x * 9).astype(np.int32)
        right = adjoint(whole.reshape(6, size, *counts), weights, **geometry, output_padding=most)
        check("Col2Im", {**arrays, "X": whole}, {"Y": right.reshape(2, 3, *shape).astype(np.int32)}, **given)


# --- sampling ----------------------------------------------------------------------------------------------


def reflected(p: float, low: float, high: float) -> float:
    if high == low:
        return low
    m = math.fmod(abs(p - low), 2 * (high - low))
    return low + (2 * (high - low) - m if m > high - low else m)


def sampled(x: np.ndarray, p: Sequence[float], mode: str, padding: str, aligned: int) -> float:
    """One number of a tensor (...) at a position."""
    ends = [(0.0, extent - 1.0) if aligned else (-0.5, extent - 0.5) for extent in x.shape]
    whole = [float(np.rint(v)) if mode == "nearest" else v for v in p]
    for axis, (v, (low, high)) in enumerate(zip(whole, ends, strict=True)):
        if not low <= v <= high and padding != "zeros":
            moved = min(max(v, 0), x.shape[axis] - 1) if padding == "border" else reflected(v, low, high)
            whole[axis] = moved
    taps = {"nearest": [0], "linear": [0, 1], "cubic": [-1, 0, 1, 2]}[mode]
    total = 0.0
    for places in itertools.product(taps, repeat=x.ndim):
        value, at = 1.0, []
        for tap, v, extent, (low, high) in zip(places, whole, x.shape, ends, strict=True):
            i, away = math.floor(v) + tap, abs(math.floor(v) + tap - v)
            if mode == "linear":
                value *= 1 - away
            elif mode == "cubic":
                near = (1.25 * away - 2.25) * away * away + 1
                value *= near if away <= 1 else ((-0.75 * away + 3.75) * away - 6) * away + 3 if away < 2 else 0
            value *= padding != "zeros" or 0 <= i < extent
            at.append(min(max(i, 0), extent - 1) if padding != "reflection" else int(reflected(i, low, high)))
        total += value * float(x[tuple(at)])
    return total


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("aligned", [0, 1])
@pytest.mark.parametrize("shape", [(6,), (4, 5), (3, 4, 2), (1, 3)])
def test_sampling(mode: str, padding: str, aligned: int, shape: Sequence[int]) -> None:
    rank = len(shape)
    x, made = random(2, 2, *shape), (3, 2, 2)[:rank]
    grid = np.random.default_rng(rank).uniform(-1.7, 1.7, (2, *made, rank)).astype(F)
    right = np.zeros((2, 2, *made))
    for n, c, *place in np.ndindex(*right.shape):
        g = grid[(n, *place)][::-1]
        if aligned:
            p = [float((v + F(1)) / 2 * (extent - 1)) for v, extent in zip(g, shape, strict=True)]
        else:
            p = [float(((v + F(1)) * extent - 1) / 2) for v, extent in zip(g, shape, strict=True)]
        right[(n, c, *place)] = sampled(x[n, c], p, mode, padding, aligned)
    given: dict[str, Any] = {"padding_mode": padding, "align_corners": aligned}
    compiled = shape == (4, 5) and aligned == 0
    check("GridSample", {"X": x, "G": grid}, {"Y": right.astype(F)}, mode=mode, compiled=compiled, **given)
    if rank == 2:
        old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
        check("GridSample", {"X": x, "G": grid}, {"Y": right.astype(F)}, opset=16, mode=old, **given)


def test_sampling_far_outside() -> None:
    x = np.array([[[1, 2, np.inf]]], F)
    grid = np.array([[[-1], [3e38], [-9], [np.nan], [0.9]]], F)
    found = computed(one_node("GridSample", {"X": x, "G": grid}, align_corners=1), {"X": x, "G": grid})[0]
    np.testing.assert_array_equal(found, np.array([[[1, 0, 0, np.nan, np.inf]]], F))
    for padding in ("border", "reflection"):  # no position reads outside of the tensor
        model = one_node("GridSample", {"X": x, "G": grid}, align_corners=1, padding_mode=padding, mode="nearest")
        assert computed(model, {"X": x, "G": grid}, compiled=True)[0][0, 0, 0] == 1


@pytest.mark.parametrize("dtype", [np.uint8, np.float16, np.float64])
def test_sampling_of_other_types(dtype: Any) -> None:
    x, grid = (np.arange(12).reshape(1, 1, 3, 4) * 20).astype(dtype), np.array([[[[0, 0.25], [-1, 1]]]], F)
    arrays = {"X": x, "G": grid}
    right = np.array([[[[sampled(x[0, 0], (1.25, 1.5), "linear", "zeros", 1), 160]]]]).astype(dtype)
    check("GridSample", arrays, {"Y": right}, align_corners=1)


@pytest.mark.parametrize("shape", [(4, 5), (1, 3), (2, 3, 4)])
@pytest.mark.parametrize("aligned", [0, 1])
def test_grids(shape: Sequence[int], aligned: int) -> None:
    rank = len(shape)
    theta = random(2, rank, rank + 1)
    axes = [
        (np.linspace(-1, 1, extent) if extent > 1 else np.zeros(1))
        if aligned
        else (2 * np.arange(extent) + 1) / extent - 1
        for extent in shape
    ]
    places = np.stack([*np.meshgrid(*axes, indexing="ij")[::-1], np.ones(shape)], -1)
    right = np.einsum("nij,...j->n...i", theta, places).astype(F)
    arrays = {"T": theta, "S": np.array([2, 3, *shape])}
    check("AffineGrid", arrays, {"Y": right}, constants=["S"], opset=20, align_corners=aligned, compiled=rank == 3)


def test_refused_sampling() -> None:
    arrays = {"X": random(1, 1, 3), "G": random(1, 2, 1)}
    with pytest.raises(tc.GraphError, match="`mode` is 'area', and must be one of nearest, linear, cubic"):
        one_node("GridSample", arrays, mode="area").graph()
    with pytest.raises(tc.GraphError, match="`padding_mode` is 'wrap', and must be one of zeros, border, reflection"):
        one_node("GridSample", arrays, padding_mode="wrap").graph()


@pytest.mark.parametrize(("groups", "moved"), [(1, 1), (2, 1), (1, 2), (2, 4)])
@pytest.mark.parametrize("compiled", [False, True])
def test_deformed_convolution(groups: int, moved: int, compiled: bool) -> None:
    x, w, b = random(2, 4, 6, 5), random(2, 4 // groups, 3, 2), random(2)
    geometry: dict[str, Any] = {"strides": [1, 2], "dilations": [2, 1], "pads": [1, 0, 2, 1]}
    made = extents_of(x, (3, 2), *geometry.values())
    still = {"X": x, "W": w, "O": np.zeros((2, moved * 12, *made), F), "B": b}
    given: dict[str, Any] = {"group": groups, "offset_group": moved, **geometry}
    right = convolved(x, w, **geometry, group=groups) + b.reshape(2, 1, 1)
    check("DeformConv", still, {"Y": right.astype(F)}, compiled=compiled, **given)
    moves, mask = random(2, moved, 6, 2, *made), random(2, moved, 6, *made)
    columns = np.zeros((2, 4, 6, *made))
    for n, c, k, i, j in np.ndindex(*columns.shape):
        own = moves[n, c // (4 // moved), k, :, i, j]
        p = (i + 2 * (k // 2) - 1 + float(own[0]), 2 * j + k % 2 + float(own[1]))
        columns[n, c, k, i, j] = sampled(x[n, c], p, "linear", "zeros", 1) * mask[n, c // (4 // moved), k, i, j]
    weights = w.reshape(groups, 2 // groups, 4 // groups, 6)
    right = np.einsum("ngckij,gfck->ngfij", columns.reshape(2, groups, 4 // groups, 6, *made), weights)
    shaped = (moves.reshape(2, -1, *made), mask.reshape(2, -1, *made))
    arrays = {"X": x, "W": w, "O": shaped[0], "B": b, "M": shaped[1]}
    check("DeformConv", arrays, {"Y": (right.reshape(2, 2, *made) + b.reshape(2, 1, 1)).astype(F)}, **given)


# --- regions -----------------------------------------------------------------------------------------------


def test_greatest_elements_of_regions() -> None:
    x = random(2, 3, 9, 8)
    regions = np.array([[0, 0, 0, 7, 8], [1, 2, 3, 6, 9], [1, 5, 5, 2, 2], [0, 14, 15, 18, 30], [1, 1, 7, 1, 7]], F)
    for scale in (1.0, 0.5):
        right = np.zeros((5, 3, 2, 3))
        for r, (image, *corners) in enumerate(regions.tolist()):
            left, top, end, bottom = (math.floor(v * scale + 0.5) for v in corners)
            parts = [(top, max(bottom - top + 1, 1) / 2, 9), (left, max(end - left + 1, 1) / 3, 8)]
            for h, w in np.ndindex(2, 3):
                ranges = [
                    (min(max(math.floor(i * size) + first, 0), n), min(max(math.ceil((i + 1) * size) + first, 0), n))
                    for i, (first, size, n) in zip((h, w), parts, strict=True)
                ]
                part = x[int(image), :, slice(*ranges[0]), slice(*ranges[1])]
                right[r, :, h, w] = part.max((1, 2)) if part.size else 0
        given: dict[str, Any] = {"pooled_shape": [2, 3], "spatial_scale": scale, "compiled": scale == 1}
        check("MaxRoiPool", {"X": x, "R": regions}, {"Y": right.astype(F)}, **given)


def aligned_regions(
    x: np.ndarray, regions: np.ndarray, images: np.ndarray, *, samples: int, scale: float, centred: bool, greatest: bool
) -> np.ndarray:
    """Results of 2 times 3 for each region."""
    found = np.zeros((len(regions), x.shape[1], 2, 3))
    for r, region in enumerate(regions.astype(np.float64) * scale - 0.5 * centred):
        sizes = [region[3] - region[1], region[2] - region[0]]
        sizes = sizes if centred else [max(size, 1) for size in sizes]
        parts = [size / count for size, count in zip(sizes, (2, 3), strict=True)]
        counts = [samples or max(math.ceil(part), 0) for part in parts]
        for h, w in np.ndindex(2, 3):
            values = []
            for i, j in np.ndindex(*counts):
                y = region[1] + h * parts[0] + (i + 0.5) * parts[0] / counts[0]
                z = region[0] + w * parts[1] + (j + 0.5) * parts[1] / counts[1]
                values.append(_four(x[images[r]], y, z, greatest=greatest))
            total = np.max(values, 0) if greatest and values else np.sum(values, 0) / max(len(values), 1)
            found[r, :, h, w] = total
    return found


def _four(x: np.ndarray, y: float, z: float, *, greatest: bool) -> np.ndarray:
    """What is interpolated between four elements, or the greatest of their products with their weights."""
    if not (-1 <= y <= x.shape[1] and -1 <= z <= x.shape[2]):
        return np.zeros(x.shape[0])
    axes = []
    for v, extent in ((max(y, 0), x.shape[1]), (max(z, 0), x.shape[2])):
        low = min(int(v), extent - 1)
        behind = v - low if low < extent - 1 else 0.0
        axes.append([(low, 1 - behind), (min(low + 1, extent - 1), behind)])
    products = [a * b * x[:, i, j].astype(np.float64) for i, a in axes[0] for j, b in axes[1]]
    return np.asarray(np.max(products, 0) if greatest else np.sum(products, 0))


@pytest.mark.parametrize("samples", [0, 1, 2])
@pytest.mark.parametrize("greatest", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_regions_between_elements(samples: int, greatest: bool, centred: bool) -> None:
    x, images = random(2, 2, 7, 9), np.array([0, 1, 1, 0, 1, 0])
    regions = np.array(
        [[0, 0, 8, 6], [1.3, 2.2, 4.9, 5.1], [-6, -3, 20, 4], [30, 2, 90, 5], [4, 4, 2, 2], [-300, 0, 300, 8]], F
    )
    for scale in (1.0, 0.5):
        how: dict[str, Any] = {"samples": samples, "scale": scale, "centred": centred, "greatest": greatest}
        right = aligned_regions(x, regions, images, **how)
        given: dict[str, Any] = {
            "output_height": 2,
            "output_width": 3,
            "sampling_ratio": samples,
            "spatial_scale": scale,
        }
        given["mode"] = "max" if greatest else "avg"
        arrays = {"X": x, "R": regions, "B": images}
        positions = "half_pixel" if centred else "output_half_pixel"
        wanted, compiled = {"Y": right.astype(F)}, scale == 1 and centred
        check("RoiAlign", arrays, wanted, coordinate_transformation_mode=positions, compiled=compiled, **given)
        if not centred:
            check("RoiAlign", arrays, wanted, opset=10, **given)


def test_refused_regions() -> None:
    arrays = {"X": random(1, 1, 3, 3), "R": random(2, 4), "B": np.zeros(2, np.int64)}
    with pytest.raises(tc.GraphError, match="`mode` is 'sum', and must be avg or max"):
        one_node("RoiAlign", arrays, mode="sum").graph()
    message = "`coordinate_transformation_mode` is 'x', and must be half_pixel or output_half_pixel"
    with pytest.raises(tc.GraphError, match=message):
        one_node("RoiAlign", arrays, coordinate_transformation_mode="x").graph()
    arrays = {"X": random(1, 1, 3, 3), "R": random(2, 5)}
    with pytest.raises(tc.GraphError, match=r"`pooled_shape` is \(2,\), and must have two positive numbers"):
        one_node("MaxRoiPool", arrays, pooled_shape=[2]).graph()
