"""Quantization of ONNX and products of quantized numbers, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import tc
from tests.graph.one_node import Arrays, check, computed, one_node

F = np.float32
E4, E5 = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
NUMBERS = {np.int8: TensorProto.INT8, np.uint16: TensorProto.UINT16, np.int16: TensorProto.INT16}


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(F)


def integers(low: int, high: int, shape: Sequence[int], dtype: Any, seed: int = 0) -> np.ndarray:
    return np.random.default_rng([seed, *shape]).integers(low, high, tuple(shape)).astype(dtype)


def rounded(quotient: np.ndarray, zero: np.ndarray | int, dtype: Any) -> np.ndarray:
    limits = np.iinfo(dtype)
    found = np.rint(quotient.astype(np.float64)) + np.asarray(zero).astype(np.float64)
    return np.asarray(np.clip(found, limits.min, limits.max).astype(dtype))


# --- quantization ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.uint8, np.int8, np.uint16, np.int16])
@pytest.mark.parametrize("shape", [(3, 5, 2), (7,), (1, 1), (2, 0)])
def test_quantize_and_dequantize(dtype: Any, shape: tuple[int, ...]) -> None:
    limits = np.iinfo(dtype)
    x, scale = normal(*shape) * limits.max, np.array(1.7, F)
    zero = np.array(limits.max // 5, dtype)
    y = rounded(x / scale, zero, dtype)
    check("QuantizeLinear", {"X": x, "S": scale, "Z": zero}, {"Y": y}, opset=21)
    back = (y.astype(F) - zero.astype(F)) * scale
    check("DequantizeLinear", {"X": y, "S": scale, "Z": zero}, {"Y": back}, opset=21)


def test_halves_of_integers_are_rounded_to_even_ones() -> None:
    x = np.array([-3, -1, -0.0, 1, 3, 5, 7, 509, 511, 513, np.inf, -np.inf, 1e30, -1e30], F)
    arrays: Arrays = {"X": x, "S": np.array(2, F), "Z": np.array(1, np.uint8)}
    wanted = np.array([0, 1, 1, 1, 3, 3, 5, 255, 255, 255, 255, 0, 255, 0], np.uint8)
    for compiled in (False, True):
        check("QuantizeLinear", arrays, {"Y": wanted}, opset=10, compiled=compiled)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scales_of_an_axis(axis: int) -> None:
    x = normal(3, 4, 5) * 50
    count = x.shape[axis]
    scale, zero = np.abs(normal(count)) + F(0.1), integers(-50, 50, (count,), np.int8)
    s, z = (array.reshape([-1 if place == axis % 3 else 1 for place in range(3)]) for array in (scale, zero))
    y = rounded(x / s, z, np.int8)
    check("QuantizeLinear", {"X": x, "S": scale, "Z": zero}, {"Y": y}, opset=13, axis=axis)
    back = (y.astype(F) - z.astype(F)) * s
    check("DequantizeLinear", {"X": y, "S": scale, "Z": zero}, {"Y": back}, opset=13, axis=axis, compiled=axis == 0)


@pytest.mark.parametrize(("extent", "block"), [(6, 2), (7, 3), (5, 5), (1, 4)])
def test_scales_of_blocks(extent: int, block: int) -> None:
    x = normal(3, extent, 2) * 50
    blocks = -(-extent // block)
    scale, zero = np.abs(normal(3, blocks, 2)) + F(0.1), integers(0, 200, (3, blocks, 2), np.uint8)
    s, z = (array.repeat(block, 1)[:, :extent] for array in (scale, zero))
    y = rounded(x / s, z, np.uint8)
    given: dict[str, Any] = {"axis": 1, "block_size": block}
    check("QuantizeLinear", {"X": x, "S": scale, "Z": zero}, {"Y": y}, opset=21, compiled=block == 3, **given)
    back = (y.astype(F) - z.astype(F)) * s
    check("DequantizeLinear", {"X": y, "S": scale, "Z": zero}, {"Y": back}, opset=21, **given)


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int16])
def test_the_type_of_the_result(dtype: Any) -> None:
    x, scale = normal(40) * 1000, np.array([0.5], F)
    wanted = rounded(x / scale, 0, dtype)
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": wanted}, opset=21, output_dtype=NUMBERS[dtype])
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": rounded(x / scale, 0, np.uint8)}, opset=13)


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_the_quotient_is_as_precise_as_the_scale(dtype: Any) -> None:
    x, scale = (normal(500) * 100).astype(dtype), np.array(0.7, dtype)
    wanted = rounded(x / scale, 0, np.int16)
    kind: dict[str, Any] = {"output_dtype": TensorProto.INT16}
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": wanted}, opset=23, **kind)
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": wanted}, opset=23, compiled=True, **kind)
    precise = rounded(x.astype(F) / scale.astype(F), 0, np.int16)
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": precise}, opset=23, precision=TensorProto.FLOAT, **kind)
    bytes_ = integers(-128, 128, (50,), np.int8)
    back = bytes_.astype(F) * scale.astype(F)
    check("DequantizeLinear", {"X": bytes_, "S": scale}, {"Y": back.astype(dtype)}, opset=23)
    check("DequantizeLinear", {"X": bytes_, "S": scale}, {"Y": back}, opset=23, output_dtype=TensorProto.FLOAT)


def test_integers_are_quantized_and_dequantized() -> None:
    x = integers(-(2**31), 2**31, (20,), np.int32)
    scale = np.array(2.0**22, F)
    check("QuantizeLinear", {"X": x, "S": scale}, {"Y": rounded(x / scale, 0, np.uint8)}, opset=10)
    check("DequantizeLinear", {"X": x, "S": scale}, {"Y": x.astype(F) * scale}, opset=10)


@pytest.mark.parametrize("dtype", [E4, E5])
@pytest.mark.parametrize("saturate", [0, 1])
def test_floats_of_eight_bits(dtype: Any, saturate: int) -> None:
    x = np.concatenate([normal(50) * 1000, np.array([1e6, -1e6, np.inf, -np.inf, np.nan, 0], F)])
    scale, limit = np.array(2, F), 448.0 if dtype is E4 else 57344.0
    quotient = x / scale
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = (np.clip(quotient, -limit, limit) if saturate else quotient).astype(dtype)
    arrays = {"X": x, "S": scale, "Z": np.zeros(1, dtype)}
    check("QuantizeLinear", arrays, {"Y": wanted}, opset=19, saturate=saturate, compiled=True)
    check("DequantizeLinear", {"X": wanted, "S": scale}, {"Y": wanted.astype(F) * scale}, opset=19)


@pytest.mark.parametrize("shift", [-3, 0, 0.5, 3])
def test_dynamic_quantization(shift: float) -> None:
    x = (normal(4, 9) + F(shift)).astype(F)
    high, low = max(x.max(), F(0)), min(x.min(), F(0))
    scale = (high - low) / F(255)
    zero = rounded(np.asarray(-low / scale), 0, np.uint8)
    wanted = {"Y": rounded(x / scale, zero, np.uint8), "S": np.asarray(scale), "Z": np.asarray(zero)}
    check("DynamicQuantizeLinear", {"X": x}, wanted, opset=11)
    check("DynamicQuantizeLinear", {"X": x}, wanted, opset=11, compiled=True)


def test_dynamic_quantization_of_zeros() -> None:
    scale, zero = np.asarray(F(1) / F(255)), np.zeros((), np.uint8)
    wanted: dict[str, np.ndarray] = {"Y": np.zeros((2, 3), np.uint8), "S": scale, "Z": zero}
    check("DynamicQuantizeLinear", {"X": np.zeros((2, 3), F)}, wanted, opset=11)


# --- products --------------------------------------------------------------------------------------------

SHAPES = [((3, 5), (5, 4)), ((2, 3, 5), (5, 4)), ((1, 3, 5), (2, 5, 4)), ((5,), (5, 4)), ((3, 5), (5,)), ((5,), (5,))]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize("zeros", ["none", "one", "rows"])
@pytest.mark.parametrize("kinds", [(np.uint8, np.uint8), (np.uint8, np.int8), (np.int8, np.int8)])
def test_products_of_integers(left: tuple[int, ...], right: tuple[int, ...], zeros: str, kinds: Any) -> None:
    a, b = (integers(-128 if t is np.int8 else 0, 100, s, t) for t, s in zip(kinds, (left, right), strict=True))
    arrays: dict[str, np.ndarray | None] = {"A": a, "B": b}
    x, y = a.astype(np.int32), b.astype(np.int32)
    if zeros != "none":
        each = zeros == "rows"
        first = integers(3, 9, (left[-2],) if each and len(left) > 1 else (), kinds[0])
        second = integers(3, 9, (right[-1],) if each and len(right) > 1 else (1,), kinds[1])
        arrays |= {"AZ": first, "BZ": second}
        x = x - (first[:, None] if first.ndim else first).astype(np.int32)
        y = y - second.astype(np.int32)
    check("MatMulInteger", arrays, {"Y": np.asarray(x @ y, np.int32)}, opset=10, compiled=len(left) == 3)


def test_zero_points_that_are_known() -> None:
    a, b = integers(0, 256, (3, 5), np.uint8), integers(-128, 128, (5, 4), np.int8)
    arrays: Arrays = {"A": a, "B": b, "AZ": np.array(0, np.uint8), "BZ": np.zeros(4, np.int8)}
    wanted = a.astype(np.int32) @ b.astype(np.int32)
    check("MatMulInteger", arrays, {"Y": wanted}, opset=10, constants=["AZ", "BZ"])
    graph = one_node("MatMulInteger", arrays, opset=10, constants=["AZ", "BZ"]).graph()
    assert graph.inputs == ("A", "B")
    assert not graph.constants
    only_first = one_node("MatMulInteger", {**arrays, "AZ": None}, opset=10).graph()
    assert len(only_first.nodes) == 1


@pytest.mark.parametrize("by_row", [False, True])
@pytest.mark.parametrize("kind", [np.uint8, np.int8])
def test_quantized_products(by_row: bool, kind: Any) -> None:
    a, b = integers(0, 100, (2, 3, 5), kind), integers(0, 100, (2, 5, 4), kind, 1)
    rows, columns = ((3,), (4,)) if by_row else ((), (1,))
    az, bz = integers(0, 9, rows, kind), integers(0, 9, columns, kind, 1)
    sa, sb, sy = np.abs(normal(*rows)) + F(0.5), np.abs(normal(*columns)) + F(0.5), np.array([32], F)
    yz = np.array([7], kind)
    each = (slice(None), None) if by_row else ()  # the column of what each row has
    exact = (a.astype(int) - az[each].astype(int)) @ (b.astype(int) - bz.astype(int))
    wanted = rounded(exact.astype(F) * (sa[each] * sb / sy), yz, kind)
    arrays = {"A": a, "SA": sa, "AZ": az, "B": b, "SB": sb, "BZ": bz, "SY": sy, "YZ": yz}
    for compiled in (False, True):
        check("QLinearMatMul", arrays, {"Y": wanted}, opset=10, compiled=compiled)


def test_quantized_products_of_floats() -> None:
    a, b = normal(3, 5).astype(E4), normal(5, 4).astype(E5)
    one, zero = np.array(1, F), np.array(0, E4)
    arrays = {"A": a, "SA": one, "AZ": zero, "B": b, "SB": one, "BZ": zero.astype(E5), "SY": one / 64, "YZ": zero}
    wanted = np.clip(a.astype(F) @ b.astype(F) * 64, -448, 448).astype(E4)
    check("QLinearMatMul", arrays, {"Y": wanted}, opset=21, compiled=True)


# --- what is refused -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "given", "message"),
    [
        ((3, 4), {}, "`scale` has 2 dimensions, `x` has 2, and `block_size` is 0"),
        ((3,), {"block_size": 2}, "`scale` has 1 dimensions, `x` has 2, and `block_size` is 2"),
        ((3,), {"axis": 2}, "axis 2 of a tensor with 2 dimensions"),
    ],
)
def test_scales_that_do_not_fit(shape: tuple[int, ...], given: dict[str, Any], message: str) -> None:
    arrays = {"X": normal(3, 4), "S": np.ones(shape, F)}
    with pytest.raises(tc.GraphError, match=message):
        computed(one_node("QuantizeLinear", arrays, opset=21, **given), arrays)


def test_results_of_products_have_one_scale() -> None:
    a, one, zero = np.ones((2, 2), np.uint8), np.array(1, F), np.array(0, np.uint8)
    arrays: dict[str, np.ndarray | None] = {
        "A": a,
        "SA": one,
        "AZ": zero,
        "B": a,
        "SB": one,
        "BZ": zero,
        "SY": np.ones(2, F),
        "YZ": zero,
    }
    with pytest.raises(tc.GraphError, match="the result must have one scale and one zero point"):
        computed(one_node("QLinearMatMul", {**arrays, "B": a, "BZ": zero}, opset=21), arrays)
