"""TensorFlow's operators that move elements, choose them by indices, or know them, beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tc
from tests.graph.comparison import f32, i32, i64, same, uniform, whole
from tests.graph.graphdefs import Fixed, Listed, Type, applied, fixed

Array = np.ndarray


# --- layout -----------------------------------------------------------------------------------------------


def test_shapes_are_known() -> None:
    x = uniform(3, 0, 5)
    same(applied("Shape", x)[0], i32([3, 0, 5]))
    same(applied("Shape", x, out_type=Type("int64"))[0], i64([3, 0, 5]))
    same(applied("Rank", x)[0], np.int32(3))
    same(applied("Size", x)[0], np.int32(0))
    found = applied("ShapeN", x, x[0], results=2, N=2)
    same(found[1], i32([0, 5]))


def test_reshapes() -> None:
    x = uniform(4, 6)
    same(applied("Reshape", x, fixed([2, -1, 3]))[0], x.reshape(2, -1, 3))
    same(applied("Reshape", x, np.array([24], np.int64))[0], x.reshape(-1))
    same(applied("Reshape", x[:, :0], fixed([0, -1]))[0], np.zeros((0, 0), np.float32))
    same(applied("Reshape", fixed([1, 2, 3, 4]), fixed([2, -1]))[0], i32([[1, 2], [3, 4]]))
    same(applied("ExpandDims", x, fixed(-1))[0], x[:, :, None])
    same(applied("ExpandDims", fixed(3), fixed(0))[0], i32([3]))
    y = uniform(1, 3, 1)
    same(applied("Squeeze", y)[0], y.reshape(3))
    same(applied("Squeeze", y, squeeze_dims=[-1])[0], y.reshape(1, 3))
    same(applied("Squeeze", fixed([[7]]), squeeze_dims=[0])[0], i32([7]))


@pytest.mark.parametrize("name", ["Identity", "StopGradient", "PreventGradient", "Snapshot"])
def test_what_does_nothing(name: str) -> None:
    x = uniform(3, 5)
    same(applied(name, x)[0], x)


def test_several_identities() -> None:
    found = applied("IdentityN", uniform(3), whole(4), results=2, T=["a", "b"])
    same(found[1], whole(4))


def test_transposes_and_repetitions() -> None:
    x = uniform(2, 3, 5)
    same(applied("Transpose", x, fixed([2, 0, -2]))[0], x.transpose(2, 0, 1))
    same(applied("Tile", x, fixed([2, 1, 3]))[0], np.tile(x, (2, 1, 3)))
    same(applied("Tile", x, fixed([1, 0, 1]))[0], np.tile(x, (1, 0, 1)))
    same(applied("Tile", x, np.array([1, 2, 1], np.int32))[0], np.tile(x, (1, 2, 1)))
    same(applied("BroadcastTo", x[:, :1], fixed([4, 2, 3, 5]))[0], np.broadcast_to(x[:, :1], (4, 2, 3, 5)))
    same(applied("Fill", fixed([2, 3]), f32(1.5))[0], np.full((2, 3), 1.5, np.float32))
    same(applied("Fill", fixed([2, 3]), fixed(7))[0], np.full((2, 3), 7, np.int32))
    same(applied("Fill", fixed([100, 50]), fixed(7))[0], np.full((100, 50), 7, np.int32))
    same(applied("ZerosLike", x)[0], np.zeros_like(x))
    same(applied("OnesLike", x > 0)[0], np.ones(x.shape, bool))


def test_parts_are_put_together() -> None:
    x, y, z = uniform(2, 3), uniform(2, 3, seed=1), uniform(2, 0)
    same(applied("Pack", x, y, N=2, axis=1)[0], np.stack([x, y], 1))
    same(applied("Pack", fixed(3), fixed(4), N=2)[0], i32([3, 4]))
    same(applied("ConcatV2", x, y, z, fixed(-1), N=3)[0], np.concatenate([x, y, z], 1))
    same(applied("Concat", fixed(0), x, y, N=2)[0], np.concatenate([x, y]))
    same(applied("ConcatV2", fixed([1, 2]), fixed([3]), fixed(0), N=2)[0], i32([1, 2, 3]))
    for place, part in enumerate(applied("Unpack", x, results=3, num=3, axis=1)):
        same(part, x[:, place])


def test_parts_are_taken_apart() -> None:
    x = uniform(4, 6)
    for part, expected in zip(applied("Split", fixed(1), x, results=3, num_split=3), np.split(x, 3, 1), strict=True):
        same(part, expected)
    found = applied("SplitV", x, fixed([1, -1, 2]), fixed(1), results=3, num_split=3)
    for part, expected in zip(found, np.split(x, [1, 4], 1), strict=True):
        same(part, expected)


def test_slices() -> None:
    x = uniform(4, 5, 6)
    same(applied("Slice", x, fixed([1, 0, 2]), fixed([2, -1, 3]))[0], x[1:3, :, 2:5])
    same(applied("Slice", fixed([1, 2, 3, 4]), fixed([1]), fixed([2]))[0], i32([2, 3]))
    same(applied("Slice", x, np.array([1, 1, 1], np.int32), fixed([-1, -1, -1]))[0], x[1:, 1:, 1:])


SUBSCRIPTS: list[tuple[Any, ...]] = [
    (slice(1, 3), slice(None, None, 2)),
    (slice(None, None, -1),),
    (slice(-3, -1), slice(9, None, -2)),
    (0, slice(None), -1),
    (Ellipsis, slice(1, 2)),
    (None, slice(2), Ellipsis, None, 3),
    (slice(3, 1), slice(None)),
    (slice(-99, 99), slice(99, -99, -3)),
    (2, 1, 0),
    (),
]


@pytest.mark.parametrize("subscripts", SUBSCRIPTS, ids=str)
def test_strided_slices(subscripts: tuple[Any, ...]) -> None:
    x = uniform(4, 5, 6)
    known = whole(4, 5, 6)
    same(strided(x, subscripts), x[subscripts])
    same(strided(Fixed(known), subscripts), known[subscripts])


def strided(operand: Array | Fixed, subscripts: tuple[Any, ...]) -> Array:
    """``operand[subscripts]`` as TensorFlow encodes it."""
    masks: dict[str, Any] = dict.fromkeys(
        ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"), 0
    )
    begins, ends, steps = [], [], []
    for place, subscript in enumerate(subscripts):
        begin, end, step = 0, 0, 1
        match subscript:
            case slice():
                step = subscript.step or 1
                begin, end = subscript.start or 0, subscript.stop or 0
                masks["begin_mask"] |= (subscript.start is None) << place
                masks["end_mask"] |= (subscript.stop is None) << place
            case None:
                masks["new_axis_mask"] |= 1 << place
            case int():
                begin, end = subscript, subscript + 1
                masks["shrink_axis_mask"] |= 1 << place
            case _:
                masks["ellipsis_mask"] |= 1 << place
        begins.append(begin)
        ends.append(end)
        steps.append(step)
    return applied("StridedSlice", operand, fixed(begins), fixed(ends), fixed(steps), **masks)[0]


def test_padding() -> None:
    x = uniform(2, 3)
    same(applied("Pad", x, fixed([[1, 0], [0, 2]]))[0], np.pad(x, ((1, 0), (0, 2))))
    padded = applied("PadV2", x, fixed([[0, 0], [2, 1]]), f32(-1))[0]
    same(padded, np.pad(x, ((0, 0), (2, 1)), constant_values=-1))
    same(applied("Pad", x[:0], fixed([[1, 1], [0, 0]]))[0], np.zeros((2, 3), np.float32))


def test_ranges() -> None:
    same(applied("Range", fixed(3), fixed(12), fixed(4))[0], np.arange(3, 12, 4, dtype=np.int32))
    same(applied("Range", fixed(5), fixed(0), fixed(-2))[0], np.arange(5, 0, -2, dtype=np.int32))
    same(applied("Range", fixed(5), fixed(0), fixed(2))[0], np.zeros(0, np.int32))
    same(applied("Range", fixed(0), fixed(9000), fixed(1))[0], np.arange(9000, dtype=np.int32))
    half = f32(0.5)
    found = applied("Range", f32(1), f32(3.25), half)[0]
    same(found, np.arange(1, 3.25, 0.5, dtype=np.float32))
    counted = applied("Range", np.array(1, np.int64), np.array(6, np.int64), np.array(2, np.int64))[0]
    same(counted, i64([1, 3, 5]))


def test_axes_of_broadcasts() -> None:
    cases = [
        ([2, 3], [2, 3], [], []),
        ([2, 1], [2, 3], [1], []),
        ([3], [2, 3], [0], []),
        ([], [2, 3], [0, 1], []),
        ([1, 3], [2, 1], [0], [1]),
        ([1, 3], [3], [0], [0]),
        ([1, 2], [1, 2], [], []),
    ]
    for left, right, first, second in cases:
        found = applied("BroadcastGradientArgs", fixed(left), fixed(right), results=2)
        same(found[0], i32(first))
        same(found[1], i32(second))
    found = applied("BroadcastGradientArgs", np.array([1, 3], np.int64), np.array([4, 3], np.int64), results=2)
    same(found[0], i64([0]))


# --- indices ----------------------------------------------------------------------------------------------


def test_gathers() -> None:
    table, indices = uniform(4, 5, 6), whole(3, 2, low=0, high=4)
    same(applied("Gather", table, indices)[0], table[indices])
    same(applied("GatherV2", table, indices, fixed(1))[0], table[:, indices])
    same(applied("GatherV2", table, indices[:, 0].astype(np.int64), fixed(-1))[0], table[:, :, indices[:, 0]])
    rows = whole(4, 3, low=0, high=5)
    expected = np.take_along_axis(table, rows[:, :, None], 1)
    same(applied("GatherV2", table, rows, fixed(1), batch_dims=1)[0], expected)
    same(applied("GatherV2", fixed([5, 6, 7]), fixed([2, 0]), fixed(0))[0], i32([7, 5]))
    same(applied("Gather", fixed([5, 6, 7]), fixed(1))[0], np.int32(6))


def test_indices_out_of_range() -> None:
    table = uniform(4, 2)
    for index in (4, -1):
        with pytest.raises(tc.ArgumentError, match="dimension 0 of A"):
            applied("GatherV2", table, np.array([index], np.int32), fixed(0))
    with pytest.raises(tc.GraphError, match=r"an index is not in 0\.\.2"):
        applied("GatherV2", fixed([5, 6, 7]), fixed([3]), fixed(0))


def test_one_hot_rows() -> None:
    indices = np.array([[2, -1], [0, 5]], np.int64)
    on, off = f32(1.5), f32(-0.5)
    expected = np.where(indices[:, :, None] == np.arange(3), on, off)
    same(applied("OneHot", indices, fixed(3), on, off, axis=-1)[0], expected)
    same(applied("OneHot", indices, fixed(3), on, off, axis=0)[0], np.moveaxis(expected, -1, 0))
    same(applied("OneHot", indices.astype(np.uint8), fixed(0), on, off)[0], np.zeros((2, 2, 0), np.float32))


@pytest.mark.parametrize("name", ["DynamicStitch", "ParallelDynamicStitch"])
def test_stitching(name: str) -> None:
    """Rows that come later count; those which no index has are 0."""
    first, second = uniform(2, 2, 3), uniform(3, 3, seed=1)
    indices = [fixed([[0, 5], [2, 1]]), fixed([1, 4, 0])]
    expected = np.zeros((6, 3), np.float32)
    expected[indices[0].array] = first
    expected[indices[1].array] = second
    same(applied(name, *indices, first, second, N=2)[0], expected)
    data = [index.array for index in indices]
    same(applied(name, *data, first, second, N=2)[0], expected)
    same(applied(name, fixed([0, 1]), fixed([1]), fixed([7, 8]), fixed([9]), N=2)[0], i32([7, 9]))
    rows = uniform(3, 2)
    same(applied(name, fixed([0, 1, 2]), rows, N=1)[0], rows)
    same(applied(name, fixed([]), rows[:0], N=1)[0], rows[:0])


def test_inverse_permutations() -> None:
    order = np.array([2, 0, 3, 1], np.int32)
    same(applied("InvertPermutation", order)[0], np.argsort(order).astype(np.int32))
    same(applied("InvertPermutation", Fixed(order))[0], np.argsort(order).astype(np.int32))
    with pytest.raises(tc.ArgumentError):
        applied("InvertPermutation", np.array([0, 4], np.int32))


# --- constants --------------------------------------------------------------------------------------------

LISTED = [
    (Listed("float32", (2, 2), "float_val", [1.5, 2.5]), f32([[1.5, 2.5], [2.5, 2.5]])),
    (Listed("float64", (), "double_val", [1.25]), np.float64(1.25)),
    (Listed("int32", (3,), "int_val", [-1, 7]), i32([-1, 7, 7])),
    (Listed("int8", (2,), "int_val", [-128]), np.array([-128, -128], np.int8)),
    (Listed("uint8", (1,), "int_val", [255]), np.array([255], np.uint8)),
    (Listed("int64", (2,), "int64_val", [-(2**63), 5]), i64([-(2**63), 5])),
    (Listed("uint32", (1,), "uint32_val", [2**32 - 1]), np.array([2**32 - 1], np.uint32)),
    (Listed("uint64", (1,), "uint64_val", [2**64 - 1]), np.array([2**64 - 1], np.uint64)),
    (Listed("bool", (3,), "bool_val", [True, False]), np.array([True, False, False])),
    (Listed("float16", (2,), "half_val", [0x3C00, 0xC000]), np.array([1, -2], np.float16)),
    (Listed("float32", (2, 0), "float_val", []), np.zeros((2, 0), np.float32)),
    (Listed("float32", (2,), "float_val", []), np.zeros(2, np.float32)),
    (Listed("float32", (70, 70), "float_val", [1.0, 2.0, 3.0]), f32([1, 2, *[3] * 4898]).reshape(70, 70)),
    (Listed("float32", (70, 70), "float_val", [4.0]), np.full((70, 70), 4, np.float32)),
]


@pytest.mark.parametrize(("listed", "expected"), LISTED)
def test_values_of_constants(listed: Listed, expected: Array) -> None:
    same(applied("Const", value=listed, dtype=Type(listed.dtype))[0], expected)


def test_values_of_bfloat16_and_float8() -> None:
    import ml_dtypes

    found = applied("Const", value=Listed("bfloat16", (2,), "half_val", [0x3F80, 0xC000]))[0]
    np.testing.assert_array_equal(found, np.array([1, -2], ml_dtypes.bfloat16))
    found = applied("Const", value=Listed("float8_e4m3fn", (2,), "float8_val", [b"\x38\xc0"]))[0]
    np.testing.assert_array_equal(found, np.array([1, -2], ml_dtypes.float8_e4m3fn))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool", "int8", "int64", "uint16"])
def test_bytes_of_constants(dtype: str) -> None:
    array = whole(3, 4, low=0, high=2).astype(dtype)
    same(applied("Identity", Fixed(array))[0], array)
