"""Gathers, arg-reductions, scatters, and what data say the shape of, of ONNX, beside NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

import tc
import tc.graph
from tests.graph.comparison import same, uniform, whole
from tests.graph.one_node import check, computed, one_node

F = np.float32
I64 = np.int64


# --- gathers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("indices", [[0, -1, 2, 1], [[1, -2], [0, 0], [-1, 1]], 1, [], [[-1]]])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_gather(axis: int, indices: Sequence[int], dtype: str) -> None:
    x, at = uniform(3, 4, 5), np.array(indices, dtype)
    check("Gather", {"X": x, "I": at}, {"Y": np.take(x, at.astype(I64), axis)}, axis=axis)


@pytest.mark.parametrize("dtype", ["bool", "float16", "uint8", "int64"])
def test_gather_of_other_types(dtype: str) -> None:
    x, at = whole(7, 3).astype(dtype), np.array([-1, 0, -7], I64)
    check("Gather", {"X": x, "I": at}, {"Y": x[at]}, opset=9, compiled=True)


def test_gather_from_nothing_and_out_of_range() -> None:
    check("Gather", {"X": np.zeros((0, 3), F), "I": np.zeros(0, I64)}, {"Y": np.zeros((0, 3), F)})
    check("Gather", {"X": np.zeros((3, 0), F), "I": np.zeros(2, I64)}, {"Y": np.zeros((2, 0), F)}, compiled=True)
    for index in (3, -4):
        arrays = {"X": uniform(3), "I": np.array([0, index])}
        for compiled in (False, True):
            with pytest.raises(tc.ArgumentError, match="dimension 0 of X"):
                computed(one_node("Gather", arrays), arrays, compiled=compiled)


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_gather_elements(axis: int) -> None:
    x = uniform(4, 5, 6)
    shape = [3, 2, 4]
    shape[axis] = 9
    at = whole(*shape, low=-x.shape[axis], high=x.shape[axis], dtype="int64")
    part = x[tuple(slice(None) if at_ == axis % 3 else slice(0, shape[at_]) for at_ in range(3))]
    check("GatherElements", {"X": x, "I": at}, {"Y": np.take_along_axis(part, at, axis)}, axis=axis)


def test_gather_elements_of_vectors_and_nothing() -> None:
    x, at = uniform(5), np.array([4, -5, 0], np.int32)
    check("GatherElements", {"X": x, "I": at}, {"Y": x[at]}, opset=11, compiled=True)
    check("GatherElements", {"X": x, "I": at[:0]}, {"Y": x[:0]})
    with pytest.raises(tc.GraphError, match="the indices have 1 dimensions and the operand 2; give both as many"):
        computed(one_node("GatherElements", {"X": uniform(2, 2), "I": at}), {"X": uniform(2, 2), "I": at})


@pytest.mark.parametrize(("width", "batches"), [(1, 0), (2, 0), (3, 0), (1, 1), (2, 1), (1, 2)])
def test_gather_points(width: int, batches: int) -> None:
    x = uniform(2, 3, 4)
    shape = (*x.shape[:batches], 5, width)
    at = np.stack([whole(*shape[:-1], low=-n, high=n, seed=n) for n in x.shape[batches : batches + width]], -1).astype(
        I64
    )
    wanted = np.empty((*shape[:-1], *x.shape[batches + width :]), F)
    for place in np.ndindex(*shape[:-1]):
        wanted[place] = x[(*place[:batches], *at[place])]
    check("GatherND", {"X": x, "I": at}, {"Y": wanted}, batch_dims=batches)


def test_gather_points_of_one_point() -> None:
    x = uniform(3, 4)
    check("GatherND", {"X": x, "I": np.array([-1, 2])}, {"Y": x[-1, 2]}, opset=11)
    check("GatherND", {"X": x, "I": np.zeros((0, 2), I64)}, {"Y": np.zeros(0, F)}, compiled=True)


# --- arg-reductions and one-hot --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("last", "keep"), [(0, 1), (1, 0)])
def test_arg_reductions(kind: str, axis: int, last: int, keep: int) -> None:
    x = whole(3, 7, 5, low=-2, high=3).astype(F)
    find = np.argmax if kind == "ArgMax" else np.argmin
    wanted = find(np.flip(x, axis), axis) if last else find(x, axis)
    wanted = x.shape[axis] - 1 - wanted if last else wanted
    wanted = np.expand_dims(wanted, axis) if keep else wanted
    check(kind, {"X": x}, {"Y": wanted}, axis=axis, keepdims=keep, select_last_index=last)


def test_arg_reductions_of_special_numbers_and_types() -> None:
    x = np.array([[0, np.nan, 1, np.nan], [-np.inf, -np.inf, -np.inf, -np.inf]], F)
    check("ArgMax", {"X": x}, {"Y": np.array([1, 0])}, axis=1, keepdims=0, compiled=True)
    check("ArgMin", {"X": x}, {"Y": np.array([3, 3])}, axis=1, keepdims=0, select_last_index=1, compiled=True)
    check("ArgMax", {"X": whole(6, dtype="uint8", low=0)}, {"Y": np.array([whole(6, low=0).argmax()])}, opset=11)
    check("ArgMin", {"X": uniform(4).astype(np.float16)}, {"Y": np.array(uniform(4).argmin())}, keepdims=0)
    check("ArgMax", {"X": np.zeros((0, 3), F)}, {"Y": np.zeros((0, 1), I64)}, axis=1)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_one_hot(axis: int) -> None:
    at = np.array([[0, 3, -1], [-4, 4, -5]], I64)
    hot = (np.where(at < 0, at + 4, at)[..., None] == np.arange(4)) * 5 - 2
    values = np.array([-2, 3], np.int32)
    wanted = np.moveaxis(hot, -1, axis).astype(np.int32)
    check("OneHot", {"I": at, "D": np.array([4]), "V": values}, {"Y": wanted}, constants=["D"], axis=axis)


def test_one_hot_of_other_types_and_depths() -> None:
    values = np.array([0, 1], F)
    wanted = np.eye(3, dtype=F)[[2, 0]]
    at = np.array([2, 0], np.uint8)
    check("OneHot", {"I": at, "D": np.array(3.0, F), "V": values}, {"Y": wanted}, opset=9)
    check("OneHot", {"I": at.astype(F), "D": np.array([3], np.int32), "V": values}, {"Y": wanted}, compiled=True)
    check("OneHot", {"I": at, "D": np.array(0), "V": values}, {"Y": np.zeros((2, 0), F)})
    arrays = {"I": at, "D": np.array(-1), "V": values}
    with pytest.raises(tc.GraphError, match="the depth is -1; it must be 0 at least"):
        computed(one_node("OneHot", arrays), arrays)


# --- scatters --------------------------------------------------------------------------------------------

REDUCTIONS = {"none": None, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}


def scattered(x: np.ndarray, at: np.ndarray, updates: np.ndarray, axis: int, reduction: str) -> np.ndarray:
    y, function = x.copy(), REDUCTIONS[reduction]
    for place in np.ndindex(*at.shape):
        target = (*place[:axis], at[place], *place[axis + 1 :])
        y[target] = updates[place] if function is None else function(y[target], updates[place])
    return y


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (1, 1), (4, 5)])
def test_scatter_elements(reduction: str, axis: int, shape: tuple[int, int]) -> None:
    x = uniform(4, 5)
    at = whole(*shape, low=-x.shape[axis], high=x.shape[axis], dtype="int64")
    updates = uniform(*shape, seed=1)
    arrays = {"X": x, "I": at, "U": updates}
    attributes: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
    check("ScatterElements", arrays, {"Y": scattered(x, at, updates, axis, reduction)}, axis=axis, **attributes)


def test_scatter_elements_compiled() -> None:
    x, at, updates = uniform(3, 4, 5), whole(2, 4, 3, low=-3, high=3), uniform(2, 4, 3, seed=2)
    arrays = {"X": x, "I": at, "U": updates}
    check("Scatter", arrays, {"Y": scattered(x, at, updates, 0, "none")}, opset=9, compiled=True)
    added = scattered(x, at, updates, 0, "add")
    check("ScatterElements", arrays, {"Y": added}, opset=16, reduction="add", compiled=True)
    nothing = {"X": x, "I": at[:0], "U": updates[:0]}
    check("ScatterElements", nothing, {"Y": x}, reduction="max")


def test_scatter_refuses() -> None:
    arrays = {"X": uniform(3), "I": np.array([0]), "U": uniform(1)}
    with pytest.raises(tc.GraphError, match="the reduction `sub` is not known; use none, add, mul, max, min"):
        computed(one_node("ScatterElements", arrays, reduction="sub"), arrays)
    uneven = {**arrays, "U": uniform(1, 1)}
    with pytest.raises(tc.GraphError, match="the indices and the updates must have as many dimensions as each other"):
        computed(one_node("ScatterElements", uneven), uneven)
    outside = {**arrays, "I": np.array([3])}
    for reduction in ("none", "add"):
        with pytest.raises(tc.ArgumentError, match="index tensor J gives 3"):
            computed(one_node("ScatterElements", outside, reduction=reduction), outside)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("width", [1, 2, 3])
def test_scatter_points(reduction: str, width: int) -> None:
    x = whole(3, 4, 5, dtype="int64")
    at = np.stack([whole(2, 3, low=-n, high=n, seed=n) for n in x.shape[:width]], -1).astype(I64)
    updates = whole(2, 3, *x.shape[width:], seed=3, dtype="int64")
    wanted, function = x.copy(), REDUCTIONS[reduction]
    for place in np.ndindex(2, 3):
        old = wanted[tuple(at[place])]
        wanted[tuple(at[place])] = updates[place] if function is None else function(old, updates[place])
    attributes: dict[str, Any] = {} if reduction == "none" else {"reduction": reduction}
    check("ScatterND", {"X": x, "I": at, "U": updates}, {"Y": wanted}, **attributes)


def test_scatter_points_of_one_point_and_of_none() -> None:
    x, row = uniform(3, 4), uniform(4, seed=1)
    wanted = x.copy()
    wanted[2] = row
    check("ScatterND", {"X": x, "I": np.array([-1]), "U": row}, {"Y": wanted}, opset=11, compiled=True)
    check("ScatterND", {"X": x, "I": np.zeros((0, 1), I64), "U": np.zeros((0, 4), F)}, {"Y": x})


@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("axis", [1, -2])
def test_tensor_scatter(mode: str, axis: int) -> None:
    cache, starts = uniform(2, 5, 5, 3), np.array([1, 4 if mode == "circular" else 3])
    updates = uniform(2, 2, 5, 3, seed=1) if axis == 1 else uniform(2, 5, 2, 3, seed=1)
    wanted = np.moveaxis(cache, axis, 1).copy()
    for batch, start in enumerate(starts):
        wanted[batch, (start + np.arange(2)) % 5] = np.moveaxis(updates, axis, 1)[batch]
    wanted = np.ascontiguousarray(np.moveaxis(wanted, 1, axis))
    check("TensorScatter", {"C": cache, "U": updates, "W": starts}, {"Y": wanted}, opset=24, mode=mode, axis=axis)


def test_tensor_scatter_from_the_start_and_out_of_range() -> None:
    cache, updates = uniform(2, 4, 3), uniform(2, 2, 3, seed=1)
    wanted = cache.copy()
    wanted[:, :2] = updates
    check("TensorScatter", {"C": cache, "U": updates}, {"Y": wanted}, opset=24, compiled=True)
    check("TensorScatter", {"C": cache, "U": updates[:, :0]}, {"Y": cache}, opset=24)
    arrays = {"C": cache, "U": updates, "W": np.array([0, 3])}
    with pytest.raises(tc.ArgumentError, match="index tensor J gives 4"):
        computed(one_node("TensorScatter", arrays, opset=24), arrays)
    with pytest.raises(tc.GraphError, match="axis 0 is that of the batches; give the axis of the rows"):
        computed(one_node("TensorScatter", arrays, opset=24, axis=0), arrays)
    with pytest.raises(tc.GraphError, match="the mode `random` is not known; use linear or circular"):
        computed(one_node("TensorScatter", arrays, opset=24, mode="random"), arrays)


# --- shapes that data say --------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 1, 4), (), (0, 3), (1,)])
@pytest.mark.parametrize("dtype", ["bool", "float32", "int8"])
def test_nonzero(shape: tuple[int, ...], dtype: str) -> None:
    x = np.asarray(whole(*shape, low=-1, high=2)).astype(dtype)
    wanted = np.array(np.nonzero(x), I64) if shape else np.zeros((0, int(x != 0)), I64)
    check("NonZero", {"X": x}, {"Y": wanted}, opset=9)


def test_nonzero_of_other_counts_with_one_model() -> None:
    x = uniform(4, 3)
    model = one_node("NonZero", {"X": x})
    for bound in (0.0, 1.0, 9.0):
        given = np.where(x > bound, x, 0)
        same(computed(model, {"X": given}, compiled=True)[0], np.array(np.nonzero(given)))
    check("NonZero", {"X": np.array([np.nan, -0.0, 0.0], F)}, {"Y": np.array([[0]])})
    check("NonZero", {"X": np.array([0, 3, 1])}, {"Y": np.array([[1, 2]])}, constants=["X"])


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("flags", [[True, False, True], [False, False], [True] * 3])
def test_compress(axis: int | None, flags: Sequence[bool]) -> None:
    x, held = uniform(3, 4), np.array(flags)
    attributes: dict[str, Any] = {} if axis is None else {"axis": axis}
    check("Compress", {"X": x, "C": held}, {"Y": np.compress(held, x, axis)}, **attributes)
    check("Compress", {"X": x, "C": held}, {"Y": np.compress(held, x, axis)}, constants=["C"], **attributes)


def test_compress_compiled_and_refused() -> None:
    x, held = whole(5, 2, dtype="int16"), np.array([0, 1, 1, 0, 1], bool)
    check("Compress", {"X": x, "C": held}, {"Y": x[held]}, axis=0, opset=9, compiled=True)
    arrays = {"X": x, "C": held[None]}
    with pytest.raises(tc.GraphError, match="the condition has 2 dimensions; give one"):
        computed(one_node("Compress", arrays), arrays)


def unique(x: np.ndarray, axis: int | None, ascending: bool) -> dict[str, np.ndarray]:
    rows = [x.reshape(-1)[i] for i in range(x.size)] if axis is None else list(np.moveaxis(x, axis, 0))
    keys = [tuple(np.ravel(row)) for row in rows]
    first = list(dict.fromkeys(keys))
    order = sorted(first) if ascending else first
    indices = [keys.index(key) for key in order]
    return {
        "Y": np.take(x, indices, axis),
        "indices": np.array(indices, I64),
        "inverse": np.array([order.index(key) for key in keys], I64),
        "counts": np.array([keys.count(key) for key in order], I64),
    }


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bfloat16", "bool"])
def test_unique(axis: int | None, ascending: bool, dtype: str) -> None:
    x = whole(4, 3, 2, low=0, high=2).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    attributes: dict[str, Any] = (
        {"sorted": int(ascending)} if axis is None else {"sorted": int(ascending), "axis": axis}
    )
    check("Unique", {"X": x}, unique(x, axis, ascending), **attributes)


def test_unique_of_nothing_and_one_result() -> None:
    check("Unique", {"X": np.zeros(0, F)}, {"Y": np.zeros(0, F)})
    check("Unique", {"X": np.array([2, 1, 2])}, {"Y": np.array([1, 2])}, opset=11, compiled=True)


BOXES = np.array([[[0, 0, 2, 2], [2, 2, 0, 0.1], [5, 5, 6, 6], [0, 1, 2, 3], [4, 4, 4, 9]]], F)
SCORES = np.array([[[0.9, 0.95, 0.5, 0.3, 0.1], [0.1, 0.2, 0.3, 0.3, 0.9]]], F)
LIMITS = {"M": np.array([9]), "O": np.array([0.3], F), "S": np.array([0.15], F)}


def test_non_max_suppression() -> None:
    wanted = np.array([[0, 0, 1], [0, 0, 2], [0, 1, 4], [0, 1, 2], [0, 1, 3]])
    arrays = {"B": BOXES, "C": SCORES, **LIMITS, "O": np.array([0.2], F)}
    check("NonMaxSuppression", arrays, {"Y": wanted}, opset=11, compiled=True)
    first = np.array([[0, 0, 1], [0, 1, 4]])
    check("NonMaxSuppression", {**arrays, "M": np.array([1])}, {"Y": first}, opset=10)
    check("NonMaxSuppression", {"B": BOXES, "C": SCORES}, {"Y": np.zeros((0, 3), I64)})
    middles = np.concatenate(((BOXES[..., :2] + BOXES[..., 2:]) / 2, abs(BOXES[..., 2:] - BOXES[..., :2])), -1)
    check("NonMaxSuppression", {**arrays, "B": middles}, {"Y": wanted}, center_point_box=1)
    every = {**arrays, "S": None, "O": np.array([1.0], F)}
    order = [[0, c, int(i)] for c in range(2) for i in np.argsort(-SCORES[0, c], kind="stable")]
    check("NonMaxSuppression", every, {"Y": np.array(order)})


def test_what_data_say_is_used_by_what_comes_next() -> None:
    """Two such operators, the second on what the first gives, in the body of a loop."""
    body = helper.make_graph(
        [
            helper.make_node("NonZero", ["kept"], ["places"]),
            helper.make_node("Transpose", ["places"], ["points"]),
            helper.make_node("GatherND", ["kept", "points"], ["rest"]),
            helper.make_node("Sub", ["rest", "one"], ["less"]),
            helper.make_node("Identity", ["holds"], ["on"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("holds", TensorProto.BOOL, []),
            helper.make_tensor_value_info("kept", TensorProto.INT64, ["N"]),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("less", TensorProto.INT64, None),
        ],
        [helper.make_tensor("one", TensorProto.INT64, [], [1])],
    )
    graph = helper.make_graph(
        [
            helper.make_node("Loop", ["trips", "", "x"], ["left"], body=body),
            helper.make_node("Unique", ["left"], ["Y"]),
        ],
        "loops",
        [helper.make_tensor_value_info("x", TensorProto.INT64, [6])],
        [helper.make_tensor_value_info("Y", TensorProto.INT64, None)],
        [helper.make_tensor("trips", TensorProto.INT64, [], [2])],
    )
    model = tc.graph.load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)]))
    x = np.array([0, 1, 5, 3, 1, 3])
    for compiled in (False, True):
        same(computed(model, {"x": x}, compiled=compiled)[0], np.array([1, 3]))
    same(computed(model, {"x": x + 1}, compiled=True)[0], np.array([0, 2, 4]))
