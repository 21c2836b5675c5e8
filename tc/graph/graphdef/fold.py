"""Arithmetic on known contents: shapes are numbers or sizes, and never become tensors.

Contents are NumPy arrays; those with open sizes have the dtype ``object``.  Floats are computed by kernels.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tc.base.types import ScalarType
from tc.graph.graphdef.operation import MOST_FOLDED, Operation
from tc.graph.graphdef.operators.gathers import stitch_sources
from tc.graph.graphdef.operators.layout import concat_places, expanded_shape, squeezed_shape, target_shape
from tc.graph.graphdef.operators.slicing import plain_ranges, strided_ranges
from tc.graph.ir.sizes import Shape, Size
from tc.graph.ir.values import Value
from tc.runtime.frameworks.numpy_arrays import numpy_dtype, scalar_type_of

Contents: TypeAlias = Sequence[np.ndarray]
Fold: TypeAlias = Callable[[Operation, Contents], "np.ndarray | None"]


def folded(operation: Operation, known: Sequence[np.ndarray | None]) -> Sequence[Value] | None:
    """The only result of an operator for operands that are known; None where its rule computes it."""
    fold = _FOLDS.get(operation.kind)
    given = [array for array in known if array is not None and array.dtype.kind in "iubO"]
    if fold is None or len(given) < len(known):
        return None
    with np.errstate(all="ignore"):  # integers wrap, and divisions by 0 give 0, as in kernels
        try:
            found = fold(operation, given)
        except ValueError:  # shapes that do not fit, or that NumPy does not have: the rule says what is wrong
            found = None
    if found is None or found.size > MOST_FOLDED:
        return None
    if found.dtype != object:
        return [operation.known(found, scalar_type_of(found.dtype, operation.node.place))]
    if not any(isinstance(size, Size) for size in found.reshape(-1)):
        type = _type(operation, given)
        return [operation.known(found.astype(numpy_dtype(type)), type)]
    return [operation.known(found, _type(operation, given))]


def _type(operation: Operation, given: Contents) -> ScalarType:
    """That of the sizes which are open."""
    if operation.kind == "Cast":
        return operation.type("DstT")
    return next(value.type for value, array in zip(operation.operands, given, strict=True) if array.dtype == object)


# --- arithmetic ------------------------------------------------------------------------------------------


def _arithmetic(numbers: Callable[..., Any], sizes: Callable[[Any, Any], object]) -> Fold:
    """A function of arrays of integers; ``sizes`` of two elements, one of which is open."""

    def compute(_operation: Operation, known: Contents) -> np.ndarray | None:
        left, right = known
        if not _are_few(left, right) or bool in (left.dtype, right.dtype):
            return None
        if object in (left.dtype, right.dtype):
            return _by_element(sizes, left, right)
        return np.asarray(numbers(left, right)) if left.dtype == right.dtype else None

    return compute


def _are_few(*arrays: np.ndarray) -> bool:
    """Whether the arrays broadcast to a small one; ValueError if they do not at all."""
    return math.prod(np.broadcast_shapes(*(array.shape for array in arrays))) <= MOST_FOLDED


def _truth(function: Callable[..., Any]) -> Fold:
    """A comparison of numbers, or a function of truth values."""

    def compute(_operation: Operation, known: Contents) -> np.ndarray | None:
        left, right = known
        same = left.dtype == right.dtype != object
        return np.asarray(function(left, right)) if same and _are_few(left, right) else None

    return compute


def _by_element(function: Callable[[Any, Any], object], *operands: np.ndarray) -> np.ndarray:
    arrays = np.broadcast_arrays(*operands)
    made = np.empty(arrays[0].shape, object)
    for place in np.ndindex(made.shape):
        made[place] = function(*(_plain(array[place]) for array in arrays))
    return made


def _plain(element: object) -> object:
    return int(element) if isinstance(element, np.integer) else element


def _truncated(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    quotient, rest = np.floor_divide(left, right), np.remainder(left, right)
    inexact = (rest != 0) & ((left < 0) != (right < 0))
    return np.asarray(quotient + inexact.astype(quotient.dtype))


def _greatest(left: Any, right: Any) -> object:
    """The greater size; one that is open is 1 at least."""
    return left if left + 1 > right else right


def _least(left: Any, right: Any) -> object:
    return right if left + 1 > right else left


def _negative(_operation: Operation, known: Contents) -> np.ndarray | None:
    return None if known[0].dtype == bool else np.asarray(-known[0])


def _not(_operation: Operation, known: Contents) -> np.ndarray | None:
    return ~known[0] if known[0].dtype == bool else None


def _square(_operation: Operation, known: Contents) -> np.ndarray | None:
    return None if known[0].dtype == bool else np.asarray(known[0] * known[0])


def _select(_operation: Operation, known: Contents) -> np.ndarray | None:
    condition, then, otherwise = known
    if condition.dtype != bool or (condition.ndim == 1 < then.ndim) or not _are_few(*known):
        return None
    return np.where(condition, then, otherwise)


def _cast(operation: Operation, known: Contents) -> np.ndarray | None:
    type = operation.type("DstT")
    if known[0].dtype == object:
        return known[0] if type.is_integer else None
    return None if type.is_half else known[0].astype(numpy_dtype(type))


def _reduction(function: np.ufunc, *, sizes: bool) -> Fold:
    def compute(operation: Operation, known: Contents) -> np.ndarray | None:
        array, axes = known
        if axes.dtype == object or (array.dtype == object and not sizes) or array.dtype == bool:
            return None
        along = tuple({operation.axis(int(axis), array.ndim) for axis in axes.reshape(-1)})
        if not array.size and function.identity is None:
            return None
        found = function.reduce(array, along, dtype=array.dtype, keepdims=operation.flag("keep_dims", False))
        if array.dtype != object:
            return np.array(found, array.dtype)
        made = np.empty(np.shape(found), object)
        made[...] = found
        return made

    return compute


# --- layout ----------------------------------------------------------------------------------------------


def _pack(operation: Operation, known: Contents) -> np.ndarray | None:
    if len({array.shape for array in known}) != 1:
        return None
    return np.stack(list(known), operation.axis(operation.integer("axis", 0), known[0].ndim + 1))


def _concat(operation: Operation, known: Contents) -> np.ndarray | None:
    at, places = concat_places(operation)
    arrays = [known[place] for place in places]
    axis = operation.axis(operation.whole(at), arrays[0].ndim)
    if len({(*array.shape[:axis], *array.shape[axis + 1 :], array.ndim) for array in arrays}) != 1:
        return None
    return np.concatenate(arrays, axis)


def _reshape(operation: Operation, known: Contents) -> np.ndarray | None:
    return _shaped(known[0], target_shape(operation, known[0].shape))


def _shaped(array: np.ndarray, shape: Shape) -> np.ndarray | None:
    """The contents in another shape; None where it is open, or has other numbers of elements."""
    wanted = tuple(size for size in shape if isinstance(size, int))
    return array.reshape(wanted) if len(wanted) == len(shape) and math.prod(wanted) == array.size else None


def _expand_dimensions(operation: Operation, known: Contents) -> np.ndarray | None:
    return _shaped(known[0], expanded_shape(operation, known[0].shape))


def _squeeze(operation: Operation, known: Contents) -> np.ndarray | None:
    return _shaped(known[0], squeezed_shape(operation, known[0].shape))


def _slice(operation: Operation, known: Contents) -> np.ndarray | None:
    return plain_ranges(operation, known[0].shape).of_contents(known[0])


def _strided(operation: Operation, known: Contents) -> np.ndarray | None:
    return strided_ranges(operation, known[0].shape).of_contents(known[0])


def _gather(operation: Operation, known: Contents) -> np.ndarray | None:
    array, indices = known[:2]
    if indices.dtype.kind not in "iu" or operation.integer("batch_dims", 0):
        return None
    axis = operation.axis(operation.whole(2) if len(known) > 2 else 0, array.ndim)
    if indices.size and not (indices.min() >= 0 and indices.max() < array.shape[axis]):
        raise operation.error(f"an index is not in 0..{array.shape[axis] - 1}")
    few = array.size * indices.size <= MOST_FOLDED * max(array.shape[axis], 1)
    return np.take(array, indices.astype(np.int64), axis) if few else None


def _stitch(_operation: Operation, known: Contents) -> np.ndarray | None:
    """Of scalars at known places, all of which are filled."""
    count = len(known) // 2
    indices, data = known[:count], known[count:]
    if any(index.dtype == object or index.shape != part.shape for index, part in zip(indices, data, strict=True)):
        return None
    if any((index < 0).any() for index in indices):
        return None
    if max((int(index.max()) for index in indices if index.size), default=0) >= MOST_FOLDED:
        return None
    source = stitch_sources(indices)
    if (source < 0).any():
        return None
    return np.take(np.concatenate([part.reshape(-1) for part in data]), source)


def _inverse(_operation: Operation, known: Contents) -> np.ndarray | None:
    (order,) = known
    if order.ndim != 1 or order.dtype == object or not np.array_equal(np.sort(order), np.arange(order.size)):
        return None
    return np.argsort(order).astype(order.dtype)


def _filled(_operation: Operation, known: Contents) -> np.ndarray | None:
    shape, value = known
    small = shape.dtype != object and shape.ndim == 1 and (shape >= 0).all() and value.ndim == 0
    return np.full(shape, value) if small and math.prod(map(int, shape)) <= MOST_FOLDED else None


def _range(_operation: Operation, known: Contents) -> np.ndarray | None:
    if any(array.dtype == object or array.ndim for array in known) or not known[2]:
        return None
    start, limit, step = (int(array) for array in known)
    if abs(limit - start) > MOST_FOLDED * abs(step):
        return None
    return np.arange(start, limit, step, dtype=np.int64).astype(known[0].dtype)


def _identity(_operation: Operation, known: Contents) -> np.ndarray | None:
    return known[0]


_ADD: Final = _arithmetic(np.add, operator.add)
_FLOOR_DIVIDE: Final = _arithmetic(np.floor_divide, operator.floordiv)
# Sizes are not negative, so that it does not matter which way they round.
_TRUNCATE: Final = _arithmetic(_truncated, operator.floordiv)
_FOLDS: Final[dict[str, Fold]] = {
    "Add": _ADD,
    "AddV2": _ADD,
    "Cast": _cast,
    "Concat": _concat,
    "ConcatV2": _concat,
    "Div": _TRUNCATE,
    "DynamicStitch": _stitch,
    "Equal": _truth(np.equal),
    "ExpandDims": _expand_dimensions,
    "Fill": _filled,
    "FloorDiv": _FLOOR_DIVIDE,
    "FloorMod": _arithmetic(np.remainder, operator.mod),
    "Gather": _gather,
    "GatherV2": _gather,
    "Greater": _truth(np.greater),
    "GreaterEqual": _truth(np.greater_equal),
    "InvertPermutation": _inverse,
    "Less": _truth(np.less),
    "LessEqual": _truth(np.less_equal),
    "LogicalAnd": _truth(np.logical_and),
    "LogicalNot": _not,
    "LogicalOr": _truth(np.logical_or),
    "Max": _reduction(np.maximum, sizes=False),
    "Maximum": _arithmetic(np.maximum, _greatest),
    "Min": _reduction(np.minimum, sizes=False),
    "Minimum": _arithmetic(np.minimum, _least),
    "Mod": _arithmetic(np.fmod, operator.mod),
    "Mul": _arithmetic(np.multiply, operator.mul),
    "Neg": _negative,
    "NotEqual": _truth(np.not_equal),
    "Pack": _pack,
    "Prod": _reduction(np.multiply, sizes=True),
    "Range": _range,
    "Reshape": _reshape,
    "Select": _select,
    "SelectV2": _select,
    "Slice": _slice,
    "Square": _square,
    "Squeeze": _squeeze,
    "StridedSlice": _strided,
    "Sub": _arithmetic(np.subtract, operator.sub),
    "Sum": _reduction(np.add, sizes=True),
    "TruncateDiv": _TRUNCATE,
    "TruncateMod": _arithmetic(np.fmod, operator.mod),
}
