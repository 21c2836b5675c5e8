"""Resizing and padding of ONNX, beside NumPy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import tc
from tests.graph.one_node import check, computed, one_node

F = np.float32


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


# --- what one axis of `extent` elements becomes, as a matrix -------------------------------------------------


def positions(mode: str, extent: int, count: int, scale: float, part: tuple[float, float] = (0, 1)) -> np.ndarray:
    i, length = np.arange(count, dtype=np.float64), scale * extent
    if mode == "asymmetric":
        return i / scale
    if mode == "tf_half_pixel_for_nn":
        return (i + 0.5) / scale
    if mode == "align_corners":
        return i * (extent - 1) / (length - 1) if count > 1 else 0 * i
    if mode == "tf_crop_and_resize":
        begin, end = part
        if count == 1:
            return 0 * i + 0.5 * (begin + end) * (extent - 1)
        return (begin + i * (end - begin) / (length - 1)) * (extent - 1)
    if mode == "pytorch_half_pixel" and count == 1:
        return 0 * i
    moved = extent / 2 * (1 - count / length) if mode == "half_pixel_symmetric" else 0
    return moved + (i + 0.5) / scale - 0.5


def cubic(away: np.ndarray, a: float = -0.75) -> np.ndarray:
    near = (a + 2) * away**3 - (a + 3) * away**2 + 1
    return np.where(away <= 1, near, np.where(away < 2, a * (away**3 - 5 * away**2 + 8 * away - 4), 0))


def matrix(p: np.ndarray, extent: int, mode: str, *, squeeze: float = 1, inside: bool = False) -> np.ndarray:
    """The weights of the elements of an axis at each position."""
    reach = math.ceil(2 / squeeze) + 1
    found = np.zeros((p.size, extent))
    for row, position in enumerate(p):
        taps = math.floor(position) + np.arange(-reach, reach + 1)
        away = np.abs(taps - position) * squeeze
        weights = cubic(away) if mode == "cubic" else np.maximum(1 - away, 0)
        if inside:
            weights = np.where((taps >= 0) & (taps < extent), weights, 0)
        np.add.at(found[row], np.clip(taps, 0, extent - 1), weights / weights.sum())
    return found


def nearest(p: np.ndarray, extent: int, rounding: str) -> np.ndarray:
    whole = {
        "floor": np.floor(p),
        "ceil": np.ceil(p),
        "round_prefer_floor": np.ceil(p - 0.5),
        "round_prefer_ceil": np.floor(p + 0.5),
    }[rounding]
    return np.asarray(np.eye(extent)[np.clip(whole.astype(int), 0, extent - 1)])


def along(x: np.ndarray, matrices: Sequence[np.ndarray | None]) -> np.ndarray:
    found = x.astype(np.float64)
    for axis, weights in enumerate(matrices):
        if weights is not None:
            found = np.moveaxis(np.tensordot(weights, found, (1, axis)), 0, axis)
    return np.asarray(found)


MODES = ["half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners", "asymmetric"]
SCALES = [(1, 1, 2, 3), (1, 1, 0.5, 1.3), (1, 2, 0.6, 0.4), (1.7, 1, 1, 2.5)]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("scales", SCALES)
def test_interpolation(mode: str, interpolation: str, scales: Sequence[float]) -> None:
    x, factors = random(2, 3, 5, 7), np.array(scales, F)
    counts = [math.floor(F(extent) * factor) for extent, factor in zip(x.shape, factors, strict=True)]
    axes = list(zip(x.shape, counts, factors.astype(np.float64), strict=True))
    matrices = [
        None if scale == 1 else matrix(positions(mode, extent, count, scale), extent, interpolation)
        for extent, count, scale in axes
    ]
    arrays = {"X": x, "R": None, "S": factors}
    given: dict[str, Any] = {"constants": ["S"], "mode": interpolation, "coordinate_transformation_mode": mode}
    check("Resize", arrays, {"Y": along(x, matrices).astype(F)}, **given)
    if interpolation == "cubic":
        matrices = [
            None if scale == 1 else matrix(positions(mode, extent, count, scale), extent, "cubic", inside=True)
            for extent, count, scale in axes
        ]
        check("Resize", arrays, {"Y": along(x, matrices).astype(F)}, exclude_outside=1, **given)


@pytest.mark.parametrize("mode", [*MODES, "tf_half_pixel_for_nn"])
@pytest.mark.parametrize("rounding", ["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
def test_nearest_elements(mode: str, rounding: str) -> None:
    x = np.arange(2 * 3 * 5 * 7, dtype=np.int32).reshape(2, 3, 5, 7)
    given: dict[str, Any] = {"coordinate_transformation_mode": mode, "nearest_mode": rounding}
    for scales in SCALES:
        factors = np.array(scales, F)
        counts = [math.floor(F(extent) * factor) for extent, factor in zip(x.shape, factors, strict=True)]
        axes = zip(x.shape, counts, factors.astype(np.float64), strict=True)
        matrices = [
            None if scale == 1 else nearest(positions(mode, extent, count, scale), extent, rounding)
            for extent, count, scale in axes
        ]
        arrays = {"X": x, "R": None, "S": factors}
        check("Resize", arrays, {"Y": along(x, matrices).astype(np.int32)}, opset=11, constants=["S"], **given)


@pytest.mark.parametrize("interpolation", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize(("rank", "sizes"), [(1, (9,)), (2, (3, 11)), (3, (2, 3, 1)), (5, (1, 2, 6, 2, 5))])
def test_resizing_to_sizes(interpolation: str, rank: int, sizes: Sequence[int]) -> None:
    x = random(*(1, 2, 3, 4, 5)[-rank:])
    matrices: list[np.ndarray | None] = []
    for extent, count in zip(x.shape, sizes, strict=True):
        p = positions("half_pixel", extent, count, count / extent)
        matrices.append(
            nearest(p, extent, "round_prefer_floor") if interpolation == "nearest" else matrix(p, extent, interpolation)
        )
    right = along(x, matrices).astype(F)
    arrays = {"X": x, "R": None, "S": None, "T": np.array(sizes, np.int64)}
    check("Resize", arrays, {"Y": right}, opset=13, constants=["T"], mode=interpolation, compiled=rank == 2)
    arrays["R"], arrays["S"] = np.zeros(0, F), np.zeros(0, F)
    check("Resize", arrays, {"Y": right}, opset=11, constants=["T", "S"], mode=interpolation)


@pytest.mark.parametrize("interpolation", ["linear", "cubic"])
@pytest.mark.parametrize("scale", [0.4, 0.15, 0.8, 2.0])
@pytest.mark.parametrize("inside", [0, 1])
def test_smooth_resizing(interpolation: str, scale: float, inside: int) -> None:
    x, factor = random(1, 2, 23), F(scale)
    p = positions("half_pixel", 23, math.floor(F(23) * factor), float(factor))
    weights = matrix(p, 23, interpolation, squeeze=min(float(factor), 1), inside=bool(inside))
    given: dict[str, Any] = {
        "constants": ["S"],
        "mode": interpolation,
        "antialias": 1,
        "exclude_outside": inside,
        "axes": [-1],
    }
    right = along(x, [None, None, weights]).astype(F)
    check("Resize", {"X": x, "R": None, "S": np.array([factor], F)}, {"Y": right}, **given)
    sizes = {"X": x, "R": None, "S": None, "T": np.array([7])}
    weights = matrix(positions("half_pixel", 23, 7, 7 / 23), 23, interpolation, squeeze=7 / 23, inside=bool(inside))
    given["constants"] = ["T"]
    check("Resize", sizes, {"Y": along(x, [None, None, weights]).astype(F)}, **given)


@pytest.mark.parametrize("interpolation", ["nearest", "linear"])
@pytest.mark.parametrize("constant", [False, True])
def test_resizing_of_a_region(interpolation: str, constant: bool) -> None:
    x, region = random(1, 2, 6, 7), np.array([0, 0, 0.1, -0.3, 1, 1, 0.8, 0.6], F)
    matrices: list[np.ndarray | None] = [None, None]
    outside = []
    for axis, count in ((2, 4), (3, 5)):
        part = (float(region[axis]), float(region[4 + axis]))
        p = positions("tf_crop_and_resize", x.shape[axis], count, count / x.shape[axis], part)
        outside.append((p < 0) | (p > x.shape[axis] - 1))
        own = nearest(p, x.shape[axis], "round_prefer_floor") if interpolation == "nearest" else None
        matrices.append(matrix(p, x.shape[axis], "linear") if own is None else own)
    right = np.where(outside[0][:, None] | outside[1], 7.5, along(x, matrices)).astype(F)
    arrays = {"X": x, "R": region, "S": None, "T": np.array([1, 2, 4, 5])}
    given: dict[str, Any] = {
        "mode": interpolation,
        "coordinate_transformation_mode": "tf_crop_and_resize",
        "extrapolation_value": 7.5,
    }
    check("Resize", arrays, {"Y": right}, constants=["T", "R"] if constant else ["T"], **given)
    check("Resize", {**arrays, "R": region[[2, 3, 6, 7]], "T": np.array([4, 5])}, {"Y": right}, constants=["T"],
          axes=[2, 3], compiled=constant, **given)  # fmt: skip


@pytest.mark.parametrize(("policy", "counts"), [("not_larger", (6, 9)), ("not_smaller", (8, 12))])
def test_resizing_that_keeps_the_aspect_ratio(policy: str, counts: tuple[int, int]) -> None:
    x, scale = random(1, 1, 4, 6), {"not_larger": 1.5, "not_smaller": 2.0}[policy]
    matrices = [
        None,
        None,
        *(matrix(positions("half_pixel", n, m, scale), n, "linear") for n, m in zip((4, 6), counts, strict=True)),
    ]
    arrays = {"X": x, "R": None, "S": None, "T": np.array([8, 9])}
    given: dict[str, Any] = {"constants": ["T"], "mode": "linear", "axes": [2, 3], "keep_aspect_ratio_policy": policy}
    check("Resize", arrays, {"Y": along(x, matrices).astype(F)}, **given)


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float16, np.float64])
def test_interpolation_of_other_types(dtype: Any) -> None:
    x = np.array([[[0, 255, 7, 8, 255, 0]]]).astype(dtype)
    real = along(x, [None, None, matrix(positions("half_pixel", 6, 12, 2.0), 6, "cubic")])
    right = np.clip(np.rint(real), 0, 255) if dtype == np.uint8 else np.rint(real) if dtype == np.int64 else real
    arrays = {"X": x, "R": None, "S": np.array([1, 1, 2], F)}
    check("Resize", arrays, {"Y": right.astype(dtype)}, constants=["S"], mode="cubic", tolerance=1e-3)
    check("Resize", arrays, {"Y": x.repeat(2, 2)}, constants=["S"], compiled=dtype != np.float64)


def test_resizing_with_open_sizes() -> None:
    x, shapes = random(2, 3, 5, 7), {"X": ["N", "C", "H", "W"]}
    model = one_node("Resize", {"X": x, "R": None, "S": np.array([1, 1, 2, 0.7], F)}, constants=["S"], shapes=shapes)
    graph = model.graph()
    assert [str(extent) for extent in graph.values[graph.outputs[0]].shape] == ["N", "C", "2 * H", "7 * W / 10"]
    assert computed(model, {"X": x})[0].shape == (2, 3, 10, 4)
    arrays = {"X": x, "R": None, "S": None, "T": np.array([2, 3, 4, 9])}
    model = one_node("Resize", arrays, constants=["T"], shapes=shapes, mode="linear", antialias=1)
    with pytest.raises(
        tc.GraphError, match="with `antialias`, or keeps the aspect ratio, must be a number, and is `N`"
    ):
        model.graph()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_upsampling(mode: str) -> None:
    x, scales = random(1, 2, 3, 4), (1, 1, 2, 2.5)
    matrices: list[np.ndarray | None] = [None, None]
    for extent, scale in ((3, 2), (4, 2.5)):
        p = positions("asymmetric", extent, int(extent * scale), scale)
        matrices.append(nearest(p, extent, "floor") if mode == "nearest" else matrix(p, extent, "linear"))
    right = {"Y": along(x, matrices).astype(F)}
    check("Upsample", {"X": x, "S": np.array(scales, F)}, right, opset=9, constants=["S"], mode=mode)
    check("Resize", {"X": x, "S": np.array(scales, F)}, right, opset=10, constants=["S"], mode=mode)
    check("Upsample", {"X": x}, right, opset=7, scales=scales, mode=mode)
    old = "bilinear" if mode == "linear" else mode
    check("Upsample", {"X": x}, right, opset=6, height_scale=2.0, width_scale=2.5, mode=old)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"mode": "area"}, "`mode` is 'area', and must be one of nearest, linear, cubic"),
        (
            {"coordinate_transformation_mode": "x"},
            "`coordinate_transformation_mode` is 'x', and must be one of align_cor",
        ),
        ({"nearest_mode": "up"}, "`nearest_mode` is 'up', and must be one of floor, ceil"),
        ({"coordinate_transformation_mode": "tf_crop_and_resize"}, "takes a region, the operand 1, which is missing"),
        ({"axes": [0]}, "there are 2 scales for 1 axes"),
    ],
)
def test_refused_resizing(given: dict[str, Any], message: str) -> None:
    arrays = {"X": random(3, 4), "R": None, "S": np.array([2, 2], F)}
    with pytest.raises(tc.GraphError, match=message):
        one_node("Resize", arrays, constants=["S"], **given).graph()


def test_refused_sizes() -> None:
    arrays = {"X": random(3, 4), "R": None, "S": np.array([2, 2], F), "T": np.array([6, 8])}
    with pytest.raises(tc.GraphError, match="either scales or sizes must be given, and not both"):
        one_node("Resize", arrays, constants=["S", "T"]).graph()
    arrays["S"] = None
    message = "`keep_aspect_ratio_policy` is 'x', and must be one of stretch, not_larger, not_smaller"
    with pytest.raises(tc.GraphError, match=message):
        one_node("Resize", arrays, constants=["T"], keep_aspect_ratio_policy="x").graph()
    with pytest.raises(tc.GraphError, match="there are 1 sizes for 2 axes"):
        one_node("Resize", {**arrays, "T": np.array([6])}, constants=["T"]).graph()
    with pytest.raises(tc.GraphError, match="there are 1 scales for 2 axes"):
        one_node("Upsample", {"X": random(3, 4)}, opset=7, scales=[2.0]).graph()


# --- padding ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["constant", "edge", "reflect", "wrap"])
@pytest.mark.parametrize(
    ("shape", "before", "after"),
    [((5,), (2,), (3,)), ((4, 6), (0, 3), (2, 0)), ((3, 1, 5), (1, 2, 0), (0, 3, 4)), ((2, 3), (7, 5), (4, 9))],
)
def test_padding(mode: Any, shape: Sequence[int], before: Sequence[int], after: Sequence[int]) -> None:
    x, pairs = random(*shape), list(zip(before, after, strict=True))
    right = {"Y": np.pad(x, pairs, mode)}
    pads = np.array([*before, *after])
    compiled = shape == (3, 1, 5)
    check("Pad", {"X": x, "P": pads}, right, opset=19, constants=["P"], mode=mode, compiled=compiled)
    if mode != "wrap":
        check("Pad", {"X": x}, right, opset=2, mode=mode, pads=pads.tolist())
    open_shape = {"X": [f"N{axis}" for axis in range(len(shape))]}
    model = one_node("Pad", {"X": x, "P": pads}, opset=19, constants=["P"], mode=mode, shapes=open_shape)
    found = model.graph()
    assert str(found.values[found.outputs[0]].shape[0]) in (f"N0 + {sum(pairs[0])}", "N0")


@pytest.mark.parametrize("dtype", [np.float16, np.float64, np.int8, np.uint64, np.bool_])
def test_padding_with_a_constant(dtype: Any) -> None:
    x, value = (random(3, 4) * 9).clip(0, 9).astype(dtype), np.array(3, dtype)
    pads = np.array([1, 2, 0, -1])
    right = np.pad(x, [(1, 0), (2, 0)], constant_values=value)[:, :-1]
    check("Pad", {"X": x, "P": pads, "V": value}, {"Y": right}, opset=13, constants=["P"])
    zeros = np.pad(x, [(1, 0), (2, 0)])[:, :-1]
    check("Pad", {"X": x, "P": pads}, {"Y": zeros}, opset=11, constants=["P"], compiled=True)
    arrays = {"X": x, "P": np.array([2, -1]), "V": value.reshape(1), "A": np.array([-1])}
    check("Pad", arrays, {"Y": right[1:]}, opset=18, constants=["P", "A"])
    if dtype == np.float64:
        check("Pad", {"X": x}, {"Y": right}, opset=10, pads=pads.tolist(), value=3.0)


def test_cropping() -> None:
    x, pads = random(5, 6), np.array([-1, -2, -2, 1])
    check(
        "Pad",
        {"X": x, "P": pads},
        {"Y": np.pad(x[1:-2, 2:], [(0, 0), (0, 1)], "reflect")},
        mode="reflect",
        constants=["P"],
    )
    check("Pad", {"X": x, "P": -np.abs(pads)}, {"Y": x[1:-2, 2:-1]}, constants=["P"])


@pytest.mark.parametrize(
    ("sizes", "axes"), [((5, 3, 4), None), ((2, 8), (2, 0)), ((7,), (-1,)), ((1, 9, 3), (0, 1, 2))]
)
def test_cropping_and_padding_around_the_centre(sizes: Sequence[int], axes: Sequence[int] | None) -> None:
    x = right = random(4, 7, 5)
    for axis, size in zip(axes or (0, 1, 2), sizes, strict=True):
        more, pairs = abs(size - x.shape[axis]), [(0, 0)] * 3
        pairs[axis] = (more // 2, more - more // 2)
        parts = [slice(None)] * 3
        parts[axis] = slice(more // 2, more // 2 + size)
        right = np.pad(right, pairs) if size > x.shape[axis] else right[tuple(parts)]
    given: dict[str, Any] = {} if axes is None else {"axes": axes}
    check("CenterCropPad", {"X": x, "S": np.array(sizes)}, {"Y": right}, opset=18, constants=["S"], **given)


def test_refused_padding() -> None:
    arrays = {"X": random(3, 4), "P": np.array([1, 2])}
    with pytest.raises(tc.GraphError, match="there are 2 pads for 2 axes, and must be two for each"):
        one_node("Pad", arrays, constants=["P"]).graph()
    with pytest.raises(tc.GraphError, match="`mode` is 'mirror', and must be constant, edge, reflect or wrap"):
        one_node("Pad", arrays, constants=["P"], mode="mirror").graph()
