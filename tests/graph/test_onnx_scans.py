"""Running sums, sorting, reversed sequences, matrices made by formulas, and bits, of ONNX, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tests.graph.comparison import uniform, whole
from tests.graph.one_node import check, computed, one_node

F = np.float32
I64 = np.int64


def refused(kind: str, arrays: dict[str, np.ndarray], message: str, **given: Any) -> None:
    with pytest.raises(tc.GraphError, match=message):
        computed(one_node(kind, arrays, **given), arrays)


# --- scans and sorting -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["CumSum", "CumProd"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("exclusive", "reverse"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_scans(kind: str, axis: int, exclusive: int, reverse: int) -> None:
    x = uniform(3, 4, 5)
    accumulate = np.cumsum if kind == "CumSum" else np.cumprod
    given = np.flip(x, axis) if reverse else x
    wanted = accumulate(given, axis)
    if exclusive:
        first = np.full_like(np.take(x, [0], axis), kind == "CumProd")
        wanted = np.concatenate((first, np.delete(wanted, -1, axis)), axis)
    wanted = np.flip(wanted, axis) if reverse else wanted
    arrays = {"X": x, "A": np.array(axis, np.int32)}
    check(kind, arrays, {"Y": wanted}, opset=26, exclusive=exclusive, reverse=reverse)


@pytest.mark.parametrize("dtype", ["int32", "uint64", "float64", "float16"])
def test_scans_of_other_types(dtype: str) -> None:
    x = whole(6, low=1).astype(dtype)
    check("CumSum", {"X": x, "A": np.array([0])}, {"Y": np.cumsum(x, dtype=dtype)}, opset=11, compiled=True)
    check("CumProd", {"X": x[:0], "A": np.array(0)}, {"Y": x[:0]}, opset=26)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("count", [0, 1, 3, 17])
def test_top_k(axis: int, largest: int, count: int) -> None:
    x = whole(17, 18, 19, low=-5, high=5).astype(F)
    order = np.argsort(-x if largest else x, axis, kind="stable")
    indices: np.ndarray = np.take(order, np.arange(count), axis)
    wanted = {"Y": np.take_along_axis(x, indices, axis), "I": indices}
    check("TopK", {"X": x, "K": np.array([count])}, wanted, axis=axis, largest=largest)


@pytest.mark.parametrize("count", [2, 40])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float16", "int8", "uint64", "int64", "float64"])
def test_top_k_of_other_types(count: int, largest: int, dtype: str) -> None:
    x = whole(2, 40, low=0).astype(dtype)
    if dtype.endswith("int64"):  # all that floats cannot hold, and the neutral elements
        x[0, :4] = np.iinfo(dtype).max, np.iinfo(dtype).min, np.iinfo(dtype).max - 1, np.iinfo(dtype).max
    order = np.lexsort((np.broadcast_to(np.arange(40) * (-1) ** largest, x.shape), x))
    indices = (np.flip(order, 1) if largest else order)[:, :count]
    wanted = {"Y": np.take_along_axis(x, indices, 1), "I": indices}
    check("TopK", {"X": x, "K": np.array([count])}, wanted, largest=largest, compiled=True)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int64", "uint16"])
def test_top_k_of_many(largest: int, dtype: str) -> None:
    x = whole(2, 600, 3, low=0).astype(dtype)
    if dtype.startswith("float"):
        x[0, :6] = np.array([-0.0, 0.0, np.inf, -np.inf, np.nan, -7], dtype)[:, None]
    keys = np.where(np.isnan(x), np.inf, x) if dtype.startswith("float") else x.astype(I64)
    indices = np.argsort(-keys if largest else keys, 1, kind="stable")[:, :500]
    wanted = {"Y": np.take_along_axis(x, indices, 1), "I": indices}
    check("TopK", {"X": x, "K": np.array([500])}, wanted, axis=1, largest=largest, compiled=dtype == "int8")


@pytest.mark.parametrize("count", [2, 5])
def test_top_k_of_special_numbers(count: int) -> None:
    x = np.full((2, 20), -np.inf, F)
    x[1, 3:6] = np.nan, 2, np.inf
    largest = np.array([range(count), [3, 5, 4, 0, 1][:count]])
    wanted = {"Y": np.take_along_axis(x, largest, 1), "I": largest}
    check("TopK", {"X": x, "K": np.array([count])}, wanted, compiled=True)
    smallest = np.array([range(count), [0, 1, 2, 6, 7][:count]])
    wanted = {"Y": np.take_along_axis(x, smallest, 1), "I": smallest}
    check("TopK", {"X": x, "K": np.array([count])}, wanted, largest=0)


def test_top_k_of_older_versions_and_refused() -> None:
    x = uniform(3, 4)
    indices = np.argsort(-x, 1, kind="stable")[:, :2]
    wanted = {"Y": np.take_along_axis(x, indices, 1), "I": indices}
    check("TopK", {"X": x}, wanted, opset=6, k=2)
    check("TopK", {"X": x, "K": np.array([2])}, wanted, opset=10, constants=["K"])
    refused("TopK", {"X": x, "K": np.array([5])}, "k is 5; it must be at least 0 and at most 4, the extent of axis 1")
    refused("TopK", {"X": x, "K": np.array([-1])}, "k is -1; it must be at least 0")


@pytest.mark.parametrize(("time", "batch"), [(0, 1), (1, 0)])
def test_reverse_sequence(time: int, batch: int) -> None:
    x, lengths = uniform(3, 3, 2), np.array([3, 0, 2])
    wanted = np.moveaxis(x, (batch, time), (0, 1)).copy()
    for place, length in enumerate(lengths):
        wanted[place, :length] = wanted[place, :length][::-1]
    wanted = np.ascontiguousarray(np.moveaxis(wanted, (0, 1), (batch, time)))
    check("ReverseSequence", {"X": x, "L": lengths}, {"Y": wanted}, time_axis=time, batch_axis=batch, opset=10)


def test_reverse_sequence_refuses() -> None:
    arrays = {"X": uniform(2, 3), "L": np.array([1, 2, 3])}
    refused(
        "ReverseSequence", arrays, "`time_axis` and `batch_axis` are both 1; give two axes", time_axis=1, batch_axis=1
    )
    with pytest.raises(tc.ArgumentError, match="dimension 0 of X"):
        computed(one_node("ReverseSequence", arrays), arrays)


# --- matrices made by formulas ---------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(3, 4), (4, 2), (2, 3, 3), (1, 1), (0, 3)])
@pytest.mark.parametrize("diagonal", [None, 0, -2, 1, 9])
@pytest.mark.parametrize("upper", [0, 1])
def test_trilu(shape: tuple[int, ...], diagonal: int | None, upper: int) -> None:
    x = uniform(*shape)
    wanted = (np.triu if upper else np.tril)(x, diagonal or 0)
    arrays = {"X": x} if diagonal is None else {"X": x, "K": np.array(diagonal)}
    check("Trilu", arrays, {"Y": wanted}, opset=14, upper=upper)


def test_trilu_of_other_types_and_refused() -> None:
    x = np.ones((3, 4), bool)
    check("Trilu", {"X": x, "K": np.array([1])}, {"Y": np.triu(x, 1)}, compiled=True)
    check("Trilu", {"X": np.full((2, 2), np.nan, F)}, {"Y": np.array([[np.nan, np.nan], [0, np.nan]], F)})
    refused("Trilu", {"X": uniform(3)}, "Trilu takes matrices, got 1 dimensions")


def test_eye_like() -> None:
    x = whole(3, 4)
    check("EyeLike", {"X": x}, {"Y": np.eye(3, 4, dtype=np.int32)}, opset=9)
    check("EyeLike", {"X": x}, {"Y": np.eye(3, 4, -1, F)}, opset=22, k=-1, dtype=1, compiled=True)
    check("EyeLike", {"X": x}, {"Y": np.eye(3, 4, 5, bool)}, k=5, dtype=9)
    refused("EyeLike", {"X": uniform(3)}, "EyeLike takes a matrix, got 1 dimensions")


@pytest.mark.parametrize(("start", "limit", "step"), [(0, 7, 2), (5, -3, -3), (3, 3, 1), (4, 0, 1), (-2, 6, 4)])
@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64", "float16", "bfloat16"])
def test_range(start: int, limit: int, step: int, dtype: str) -> None:
    type = ml_dtypes.bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    arrays = {name: np.array(value, type) for name, value in (("S", start), ("L", limit), ("D", step))}
    check("Range", arrays, {"Y": np.arange(start, limit, step).astype(type)}, opset=27 if "16" in dtype else 11)


def test_range_of_fractions_and_refused() -> None:
    arrays = {"S": np.array([0.5], F), "L": np.array([2.0], F), "D": np.array([0.25], F)}
    check("Range", arrays, {"Y": np.arange(0.5, 2, 0.25).astype(F)}, compiled=True)
    message = "there is no range from 0.5 to 2.0 by steps of 0"
    refused("Range", {**arrays, "D": np.array(0, F)}, message)
    refused("Range", {name: np.array(n) for name, n in (("S", 1), ("L", 2), ("D", 0))}, "from 1 to 2 by steps of 0")
    refused("Range", {**arrays, "L": np.array(np.inf, F)}, "there is no range from 0.5 to inf")


@pytest.mark.parametrize("repeats", [[1, 1, 1], [2, 1, 3], [1, 0, 2], [4, 2, 1]])
def test_tile(repeats: Sequence[int]) -> None:
    x = whole(2, 3, 1)
    check("Tile", {"X": x, "R": np.array(repeats)}, {"Y": np.tile(x, repeats)}, opset=6)
    check("Tile", {"X": x, "R": np.array(repeats)}, {"Y": np.tile(x, repeats)}, constants=["R"])


def test_tile_refuses() -> None:
    refused("Tile", {"X": uniform(2, 3), "R": np.array([2])}, "1 repeats for 2 dimensions; give one for each")


@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (3, 2, 4, 4), (0, 3, 3), (2, 0, 0)])
def test_determinant(shape: tuple[int, ...]) -> None:
    x = uniform(*shape)
    check("Det", {"X": x}, {"Y": np.asarray(np.linalg.det(x), F)}, opset=11)


def test_determinant_of_special_matrices() -> None:
    x = np.array([[[0, 2], [3, 0]], [[1, 2], [2, 4]], [[0, 0], [0, 0]], [[np.nan, 1], [1, 1]]], F)
    check("Det", {"X": x}, {"Y": np.array([-6, 0, 0, np.nan], F)}, compiled=True)
    check("Det", {"X": np.eye(3, dtype=np.float16) * 2}, {"Y": np.array(8, np.float16)}, opset=22)
    refused("Det", {"X": uniform(2, 3)}, "Det takes square matrices, in the last two dimensions")
    refused("Det", {"X": uniform(2)}, "Det takes square matrices, in the last two dimensions")


# --- einsum ----------------------------------------------------------------------------------------------

EQUATIONS = [
    ("ij,jk->ik", [(3, 4), (4, 5)]),
    ("ij->ji", [(3, 4)]),
    ("ij->", [(3, 4)]),
    ("ii->i", [(4, 4)]),
    ("...ii->...", [(2, 3, 4, 4)]),
    ("ij,jk", [(3, 4), (4, 5)]),
    ("b...,b...->b...", [(2, 3, 4), (2, 3, 4)]),
    ("...ij,...jk->...ik", [(2, 1, 3, 4), (5, 4, 6)]),
    ("bij, bjk ,bkl-> bil", [(2, 3, 4), (2, 4, 5), (2, 5, 6)]),
    ("i,j,k->kji", [(2,), (3,), (4,)]),
    ("ij,kl->ik", [(2, 3), (4, 5)]),
    ("i,i,i->", [(5,), (5,), (5,)]),
    (",ij->j", [(), (3, 4)]),
    ("Aa,aB->AB", [(2, 3), (3, 4)]),
    ("ij,ij->ij", [(3, 1), (3, 4)]),
    ("iji,ij->j", [(3, 4, 3), (3, 4)]),
    ("...j,j->...", [(2, 3, 4), (4,)]),
    ("ba,", [(2, 3), ()]),
    ("Yi,Xi->XY", [(2, 3), (4, 3)]),
    ("ij,jk->ik", [(0, 4), (4, 5)]),
    ("ij,jk->ik", [(3, 0), (0, 5)]),
]


@pytest.mark.parametrize(("equation", "shapes"), EQUATIONS)
def test_einsum(equation: str, shapes: Sequence[tuple[int, ...]]) -> None:
    arrays = {f"X{place}": np.asarray(uniform(*shape, seed=place)) for place, shape in enumerate(shapes)}
    wanted = np.asarray(np.einsum(equation.replace(" ", ""), *arrays.values()))
    check("Einsum", arrays, {"Y": np.ascontiguousarray(wanted).reshape(wanted.shape)}, equation=equation, opset=12)


def test_einsum_of_integers_compiled() -> None:
    x, y = whole(3, 4), whole(4, 2, seed=1)
    check("Einsum", {"X": x, "Z": y}, {"Y": x @ y}, equation="ij,jk", compiled=True)


@pytest.mark.parametrize(
    ("equation", "message"),
    [
        ("ij->i", "has 1 terms for 2 operands"),
        ("ij,jkl->i", "the term `jkl` of `ij,jkl->i` is of an operand with 2 dimensions"),
        ("i,jk->i", "the term `i` of `i,jk->i` is of an operand with 2 dimensions"),
        ("ij,j1->i", "`1` in the equation `ij,j1->i` is no letter"),
        ("ij,jk->im", "must have letters of the operands, each of them once"),
        ("ij,jk->ii", "must have letters of the operands, each of them once"),
    ],
)
def test_einsum_refuses(equation: str, message: str) -> None:
    refused("Einsum", {"X": uniform(2, 3), "Z": uniform(3, 2)}, message, equation=equation)


# --- bits ------------------------------------------------------------------------------------------------

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


def all_bits(dtype: str, *shape: int, seed: int = 0) -> np.ndarray:
    bits = np.random.default_rng(seed).integers(0, 256, (*shape, np.dtype(dtype).itemsize), np.uint8)
    found = bits.view(dtype)[..., 0].copy()
    found.reshape(-1)[:3] = np.iinfo(dtype).max, np.iinfo(dtype).min, 0
    return found


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise(dtype: str) -> None:
    x, y = all_bits(dtype, 3, 5), all_bits(dtype, 5, seed=1)
    check("BitwiseAnd", {"A": x, "B": y}, {"Y": x & y}, opset=18, compiled=dtype == "int16")
    check("BitwiseOr", {"A": x, "B": y}, {"Y": x | y}, opset=18, compiled=dtype == "int8")
    check("BitwiseXor", {"A": x, "B": y}, {"Y": x ^ y}, opset=18, compiled=dtype == "int64")
    check("BitwiseNot", {"A": x}, {"Y": ~x}, opset=18, compiled=dtype == "uint32")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bit_shift(dtype: str) -> None:
    width = 8 * np.dtype(dtype).itemsize
    x, by = all_bits(dtype, 4, width), np.arange(width).astype(dtype)
    check("BitShift", {"A": x, "B": by}, {"Y": x << by}, opset=11, direction="LEFT", compiled=dtype == "int64")
    check("BitShift", {"A": x, "B": by}, {"Y": x >> by}, opset=28, direction="RIGHT", compiled=dtype == "int32")
    far = np.array([width, np.iinfo(dtype).max, -1 if dtype[0] == "i" else width + 1], dtype)
    sign = np.array([[-1], [0]] if dtype[0] == "i" else [[0], [0]]).astype(dtype)
    x = np.array([[-5 if dtype[0] == "i" else 5], [7]]).astype(dtype)
    wanted = np.broadcast_to(sign, (2, 3)).copy()
    check("BitShift", {"A": x, "B": far}, {"Y": wanted}, opset=28, direction="RIGHT")
    check("BitShift", {"A": x, "B": far}, {"Y": np.zeros((2, 3), dtype)}, opset=28, direction="LEFT")


def test_bit_shift_refuses() -> None:
    arrays = {"A": whole(2), "B": whole(2)}
    refused("BitShift", arrays, "the direction `UP` is not known; use LEFT or RIGHT", direction="UP")


def test_bit_cast() -> None:
    x = uniform(2, 3)
    check("BitCast", {"X": x}, {"Y": x.view(np.int32)}, opset=26, to=6)
    check("BitCast", {"X": x.astype(np.float64)}, {"Y": x.astype(np.float64).view(np.uint64)}, opset=26, to=13)
    check("BitCast", {"X": x.view(np.uint32)}, {"Y": x}, opset=26, to=1, compiled=True)
    check("BitCast", {"X": np.array([0, 1], np.int8)}, {"Y": np.array([False, True])}, opset=26, to=9)
    refused("BitCast", {"X": x}, "float32 has 4 bytes, and int64 has 8", opset=26, to=7)
