"""Convolutions of ONNX, beside NumPy."""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import open_size
from tests.graph.one_node import check, computed, one_node
from tests.graph.windows import adjoint, convolved, geometries

F = np.float32
EXTENTS = (7, 6, 9)


def random(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


def whole(*shape: int, dtype: type = np.uint8, seed: int = 0) -> np.ndarray:
    limits = np.iinfo(dtype)
    return np.random.default_rng([seed, *shape]).integers(limits.min, limits.max, shape, endpoint=True).astype(dtype)


# --- convolutions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("groups", "channels", "made"), [(1, 3, 4), (3, 1, 1), (3, 1, 2), (2, 2, 3)])
def test_convolution(rank: int, groups: int, channels: int, made: int) -> None:
    for seed, geometry in enumerate(geometries(rank, 3, groups)):
        x = random(2, groups * channels, *EXTENTS[:rank], seed=seed)
        w, b = random(groups * made, channels, *(3, 2, 1)[:rank]), random(groups * made)
        y = convolved(x, w, **geometry, group=groups)
        right = (y + b.reshape(-1, *[1] * rank)).astype(F)
        check("Conv", {"X": x, "W": w, "B": b}, {"Y": right}, group=groups, **geometry)
        check("Conv", {"X": x, "W": w}, {"Y": y.astype(F)}, opset=1, group=groups, **geometry)


@pytest.mark.parametrize("groups", [1, 2, 4])
def test_compiled_convolution(groups: int) -> None:
    x, w, b = random(1, 4, 13, 11), random(8, 4 // groups, 3, 3), random(8)
    geometry: dict[str, Any] = {"strides": [2, 1], "dilations": [1, 2], "pads": [1, 2, 0, 2]}
    right = (convolved(x, w, **geometry, group=groups) + b.reshape(8, 1, 1)).astype(F)
    check("Conv", {"X": x, "W": w, "B": b}, {"Y": right}, compiled=True, group=groups, **geometry)


@pytest.mark.parametrize(("extents", "kernel", "strides"), [((7, 8), (3, 2), (2, 3)), ((5, 9), (2, 1), (3, 4))])
def test_convolution_with_padding_by_itself(
    extents: tuple[int, int], kernel: tuple[int, int], strides: tuple[int, int]
) -> None:
    x, w = random(1, 2, *extents), random(3, 2, *kernel)
    totals = [max((-(-extents[a] // strides[a]) - 1) * strides[a] + kernel[a] - extents[a], 0) for a in range(2)]
    for mode, odd in (("SAME_UPPER", 0), ("SAME_LOWER", 1)):
        before = [(total + odd) // 2 for total in totals]
        pads = [*before, *(total - first for total, first in zip(totals, before, strict=True))]
        right = convolved(x, w, strides=strides, dilations=(1, 1), pads=pads).astype(F)
        check("Conv", {"X": x, "W": w}, {"Y": right}, auto_pad=mode, strides=strides)
    right = convolved(x, w, strides=strides, dilations=(1, 1), pads=[0] * 4).astype(F)
    check("Conv", {"X": x, "W": w}, {"Y": right}, auto_pad="VALID", strides=strides, pads=[9] * 4)


@pytest.mark.parametrize("dtype", [np.float64, np.float16, ml_dtypes.bfloat16])
def test_convolution_of_other_types(dtype: Any) -> None:
    x, w, b = (random(*shape).astype(dtype) for shape in ((1, 5, 6), (2, 5, 3), (2,)))
    exact = convolved(x, w.astype(np.float64), strides=[1], dilations=[1], pads=[1, 1]) + b.astype(np.float64)[:, None]
    check("Conv", {"X": x, "W": w, "B": b}, {"Y": exact.astype(dtype)}, pads=[1, 1])
    large = np.full((1, 8, 2), 64, dtype)  # the sum is no float16, and the bias brings it back
    least = {
        "X": large,
        "W": np.full((1, 8, 1), 200, dtype),
        "B": np.full(1, -1e5 if dtype != np.float16 else -6e4, dtype),
    }
    right = np.full((1, 1, 2), 8 * 64 * 200 + float(least["B"][0])).astype(dtype)
    check("Conv", least, {"Y": right})


def test_convolution_of_empty_tensors() -> None:
    w, b = random(3, 2, 3), random(3)
    check("Conv", {"X": np.zeros((0, 2, 5), F), "W": w}, {"Y": np.zeros((0, 3, 3), F)})
    check("Conv", {"X": np.zeros((2, 2, 2), F), "W": w}, {"Y": np.zeros((2, 3, 0), F)})
    empty = {"X": np.zeros((1, 0, 4), F), "W": np.zeros((3, 0, 3), F), "B": b}
    check("Conv", empty, {"Y": np.broadcast_to(b[:, None], (1, 3, 2)).copy()})


def test_convolution_of_infinities_at_the_border() -> None:
    x, w = random(1, 1, 4), np.array([[[np.inf, 1, 1]]], F)
    right = convolved(np.abs(x), np.array([[[0, 1, 1]]], F), strides=[1], dilations=[1], pads=[1, 1])
    right[0, 0, 1:] = np.inf  # padding is no 0 that is multiplied by infinity
    check("Conv", {"X": np.abs(x), "W": w}, {"Y": right.astype(F)}, pads=[1, 1])


@pytest.mark.parametrize("mode", ["NOTSET", "SAME_UPPER", "SAME_LOWER"])
def test_convolution_with_open_sizes(mode: str) -> None:
    x, w = random(2, 4, 7, 6), random(6, 4, 3, 3)
    given: dict[str, Any] = {"pads": [1] * 4} if mode == "NOTSET" else {"auto_pad": mode}
    model = one_node("Conv", {"X": x, "W": w}, shapes={"X": ["N", "C", "H", "W"]}, strides=[2, 2], **given)
    graph = model.graph()
    assert [str(extent) for extent in graph.values[graph.outputs[0]].shape] == ["N", "6", "(H + 1) / 2", "(W + 1) / 2"]
    pads = [1] * 4 if mode != "SAME_UPPER" else [1, 0, 1, 1]
    right = convolved(x, w, strides=[2, 2], dilations=[1, 1], pads=pads if mode != "SAME_LOWER" else [1, 1, 1, 0])
    np.testing.assert_allclose(computed(model, {"X": x, "W": w})[0], right, atol=1e-4)


# --- bytes -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2])
@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize("zeros", ["none", "image", "both", "by channel"])
def test_integer_convolution(rank: int, groups: int, zeros: str) -> None:
    for seed, geometry in enumerate(geometries(rank, 2, groups)):
        x, w = whole(2, 3, *EXTENTS[:rank], seed=seed), whole(6, 3 // groups, *(3, 2)[:rank], dtype=np.int8)
        image = None if zeros == "none" else np.array(77, np.uint8)
        weights = {"both": np.array(-3, np.int8), "by channel": whole(6, dtype=np.int8)}.get(zeros)
        shifted = (
            w.astype(int) if weights is None else w.astype(int) - weights.astype(int).reshape(-1, *[1] * (rank + 1))
        )
        y = convolved(x.astype(int) - (0 if image is None else 77), shifted, **geometry, group=groups)
        arrays = {"X": x, "W": w, "x0": image, "w0": weights}
        check("ConvInteger", arrays, {"Y": y.astype(np.int32)}, opset=10, group=groups, **geometry)


def test_integer_convolution_with_padding_by_itself_and_open_sizes() -> None:
    x, w, zero = whole(1, 3, 7, 6), whole(2, 3, 3, 3), np.array(9, np.uint8)
    model = one_node(
        "ConvInteger",
        {"X": x, "W": w, "x0": zero},
        shapes={"X": ["N", 3, "H", "W"]},
        opset=10,
        auto_pad="SAME_UPPER",
        strides=[2, 2],
    )
    assert [str(extent) for extent in model.graph().values[model.graph().outputs[0]].shape][2] == "(H + 1) / 2"
    right = convolved(x.astype(int) - 9, w.astype(int), strides=[2, 2], dilations=[1, 1], pads=[1, 0, 1, 1])
    np.testing.assert_array_equal(computed(model, {"X": x, "W": w, "x0": zero})[0], right)


@pytest.mark.parametrize("groups", [1, 4])
@pytest.mark.parametrize("compiled", [False, True])
def test_scaled_convolution(groups: int, compiled: bool) -> None:
    x, w, b = whole(1, 4, 9, 7), whole(8, 4 // groups, 3, 3, dtype=np.int8), np.arange(8, dtype=np.int32) * 100 - 300
    scale, zeros = np.linspace(0.5, 2, 8).astype(F), whole(8, dtype=np.int8) // np.int8(8)
    arrays = {
        "X": x, "xs": np.array(0.5, F), "x0": np.array(120, np.uint8), "W": w, "ws": scale, "w0": zeros,
        "ys": np.array(128, F), "y0": np.array(131, np.uint8), "B": b,
    }  # fmt: skip
    shifted = w.astype(int) - zeros.astype(int).reshape(-1, 1, 1, 1)
    y = convolved(x.astype(int) - 120, shifted, strides=[2, 1], dilations=[1, 1], pads=[1] * 4, group=groups)
    real = (y + b.reshape(-1, 1, 1)) * (F(0.5) * scale / F(128)).reshape(-1, 1, 1)
    right = np.clip(np.rint(real) + 131, 0, 255).astype(np.uint8)
    found = computed(
        one_node("QLinearConv", arrays, opset=10, group=groups, strides=[2, 1], pads=[1] * 4), arrays, compiled=compiled
    )[0]
    assert found.dtype == np.uint8
    assert np.abs(found.astype(int) - right.astype(int)).max() <= 1  # where a product is rounded to half an integer
    assert (found != right).mean() < 0.01


# --- transposed and causal convolutions --------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize(("groups", "channels", "made"), [(1, 3, 2), (3, 1, 1), (2, 2, 3)])
def test_transposed_convolution(rank: int, groups: int, channels: int, made: int) -> None:
    for seed, geometry in enumerate(geometries(rank, 3, groups)):
        x = random(2, groups * channels, *(4, 3, 5)[:rank], seed=seed)
        w, b = random(groups * channels, made, *(3, 2, 4)[:rank]), random(groups * made)
        geometry["pads"] = [min(pad, 1) for pad in geometry["pads"]]
        more = [stride - 1 for stride in geometry["strides"]]
        right = adjoint(x, w, **geometry, group=groups, output_padding=more) + b.reshape(-1, *[1] * rank)
        arrays = {"X": x, "W": w, "B": b}
        check("ConvTranspose", arrays, {"Y": right.astype(F)}, group=groups, output_padding=more, **geometry)
        right = adjoint(x, w, **geometry, group=groups)
        check("ConvTranspose", {"X": x, "W": w}, {"Y": right.astype(F)}, opset=1, group=groups, **geometry)


@pytest.mark.parametrize(("stride", "kernel"), [(2, 4), (3, 1), (1, 3)])
def test_compiled_transposed_convolution(stride: int, kernel: int) -> None:
    x, w, b = random(1, 5, 6, 7), random(5, 4, kernel, kernel), random(4)
    geometry: dict[str, Any] = {"strides": [stride] * 2, "dilations": [1, 1], "pads": [0, 0, 0, 0]}
    right = (adjoint(x, w, **geometry) + b.reshape(4, 1, 1)).astype(F)
    check("ConvTranspose", {"X": x, "W": w, "B": b}, {"Y": right}, compiled=True, **geometry)


@pytest.mark.parametrize("strides", [(2, 1), (1, 3), (3, 3)])
def test_strided_transposed_convolutions_are_computed_in_phases(strides: tuple[int, int]) -> None:
    """Sums over parts of the weights without remainders; there are none where no taps come to a phase."""
    x, w, b = random(2, 3, 5, 4), random(3, 2, 2, 4), random(2)
    geometry: dict[str, Any] = {"strides": strides, "dilations": [1, 1], "pads": [1, 0, 0, 1]}
    model = one_node("ConvTranspose", {"X": x, "W": w, "B": b}, shapes={"X": ["N", 3, "H", "V"]}, **geometry)
    calls = [node for node in model.graph(x.shape, w.shape, b.shape).nodes if isinstance(node, Call)]
    assert sum(own.reduction is not None for own in calls[0].program.statements) == math.prod(map(min, strides, (2, 4)))
    assert "%" not in str(calls[0].program)
    model.graph((open_size("N"), 3, open_size("H"), open_size("V")), w.shape, b.shape)  # in one sum
    right = adjoint(x, w, **geometry) + b.reshape(2, 1, 1)
    np.testing.assert_allclose(model.run(["Y"], {"X": x, "W": w, "B": b})["Y"], right, rtol=1e-4, atol=1e-5)


def test_transposed_convolution_to_a_shape() -> None:
    x, w = random(1, 2, 4, 3), random(2, 3, 3, 4)
    whole_ = adjoint(x, w, strides=[2, 3], dilations=[1, 1], pads=[0] * 4)  # (9, 10)
    check(
        "ConvTranspose", {"X": x, "W": w}, {"Y": whole_[:, :, 1:, 1:-1].astype(F)}, strides=[2, 3], output_shape=[8, 8]
    )
    right = whole_[:, :, :-1, 1:-1].astype(F)
    shape: dict[str, Any] = {"output_shape": [1, 3, 8, 8], "auto_pad": "SAME_UPPER"}
    check("ConvTranspose", {"X": x, "W": w}, {"Y": right}, strides=[2, 3], **shape)
    upper, lower = whole_[:, :, :8, :9].astype(F), whole_[:, :, 1:, 1:].astype(F)
    check("ConvTranspose", {"X": x, "W": w}, {"Y": upper}, strides=[2, 3], auto_pad="SAME_UPPER")
    check("ConvTranspose", {"X": x, "W": w}, {"Y": lower}, strides=[2, 3], auto_pad="SAME_LOWER")


@pytest.mark.parametrize(("length", "kernel"), [(5, 4), (1, 4), (4, 1), (2, 3)])
@pytest.mark.parametrize("with_state", [False, True])
def test_causal_convolution(length: int, kernel: int, with_state: bool) -> None:
    x, w, b, state = random(2, 3, length), random(3, 1, kernel), random(3), random(2, 3, kernel - 1)
    padded = np.concatenate([state if with_state else np.zeros_like(state), x], 2)
    y = convolved(padded, w, strides=[1], dilations=[1], pads=[0, 0], group=3) + b[:, None]
    arrays = {"X": x, "W": w, "B": b, "S": state if with_state else None}
    last = padded[:, :, padded.shape[2] - kernel + 1 :]
    check("CausalConvWithState", arrays, {"Y": y.astype(F), "Z": last}, opset=27)
    gated = (y / (1 + np.exp(-y))).astype(F)
    check("CausalConvWithState", arrays, {"Y": gated, "Z": last}, opset=27, activation="silu", compiled=length == 5)


# --- refusals --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kernel_shape": [3, 2]}, r"`kernel_shape` is \(3, 2\), and the weights have \(3, 3\)"),
        ({"strides": [1]}, r"`strides` is \(1,\), and must have 2 positive numbers"),
        ({"dilations": [1, 0]}, r"`dilations` is \(1, 0\), and must have 2 positive numbers"),
        ({"pads": [1, 1]}, r"`pads` is \(1, 1\), and must have 4 numbers"),
        ({"auto_pad": "SAME"}, "`auto_pad` is 'SAME', and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID"),
        ({"dilations": [1, 4]}, "a window over 9 elements does not fit 6 with 0 of padding"),
        ({"group": 3}, "weights for 3 groups of 4 channels do not fit 4 channels"),
    ],
)
def test_refused_convolutions(given: dict[str, Any], message: str) -> None:
    arrays = {"X": random(1, 4, 7, 6), "W": random(2, 4, 3, 3)}
    with pytest.raises(tc.GraphError, match=f"node `Y` .Conv.: {message}"):
        computed(one_node("Conv", arrays, **given), arrays)


def test_refused_weights() -> None:
    arrays = {"X": random(1, 4, 7), "W": random(3, 2, 3)}
    with pytest.raises(tc.GraphError, match="3 channels of the result do not divide into 2 groups"):
        computed(one_node("Conv", arrays, group=2), arrays)
    with pytest.raises(tc.GraphError, match=r"a window with 1 dimensions over 2"):
        one_node("Conv", {"X": random(1, 4, 7, 7), "W": random(3, 4, 3)}).graph()
    arrays = {"X": random(1, 4, 7), "W": random(3, 2, 3)}
    with pytest.raises(tc.GraphError, match="weights for 1 groups of 3 channels do not fit 4 channels"):
        computed(one_node("ConvTranspose", arrays), arrays)
    arrays = {"X": random(1, 2, 5), "W": random(2, 1, 3)}
    with pytest.raises(tc.GraphError, match="`activation` is 'relu', and must be none, silu or swish"):
        one_node("CausalConvWithState", arrays, ("Y", "Z"), opset=27, activation="relu").graph()


def test_open_sizes_that_must_be_numbers() -> None:
    x, w = random(1, 2, 7, 6), random(2, 2, 3, 3)
    model = one_node("Conv", {"X": x, "W": w}, shapes={"W": [2, 2, "K", "K"]})
    with pytest.raises(tc.GraphError, match="an extent of the weights must be a number, and is `K`"):
        model.graph()
    model = one_node("Conv", {"X": x, "W": w}, shapes={"X": [1, 2, "H", "W"]}, auto_pad="SAME_UPPER", strides=[4, 4])
    with pytest.raises(tc.GraphError, match="that a window skips over with `auto_pad` must be a number, and is `H`"):
        model.graph()
    assert computed(model, {"X": x, "W": w})[0].shape == (1, 2, 2, 2)
    model = one_node("ConvTranspose", {"X": x, "W": w}, shapes={"X": [1, 2, "H", "W"]}, output_shape=[14, 14])
    with pytest.raises(tc.GraphError, match="an extent beside `output_shape` must be a number, and is `H`"):
        model.graph()
    state = {"X": random(1, 2, 5), "W": random(2, 1, 3)}
    model = one_node("CausalConvWithState", state, ("Y", "Z"), opset=27, shapes={"W": [2, 1, "K"]})
    with pytest.raises(tc.GraphError, match="the extent of the weights must be a number, and is `K`"):
        model.graph()
