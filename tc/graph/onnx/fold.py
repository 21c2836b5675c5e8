"""Arithmetic on known contents: shapes are numbers or sizes, and never become tensors.

Contents are NumPy arrays; those with open sizes have the dtype ``object``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, Final

import numpy as np

from tc.base.errors import GraphError
from tc.graph.ir.sizes import Dimension, Size, elements
from tc.graph.onnx.operation import Operation
from tc.graph.onnx.tensors import array_of, dtype_of

# Sums and products of these are rounded by NumPy as by kernels.
_FLOATS: Final = (np.dtype(np.float32), np.dtype(np.float64))
Contents = Sequence[np.ndarray | None]


def folded(operation: Operation, known: Contents) -> tuple[np.ndarray, ...] | None:
    """The results of an operator for operands that are known; None where a kernel computes it."""
    rule, given = _RULES.get(operation.kind), [array for array in known if array is not None]
    complete = len(given) == sum(operand is not None for operand in operation.operands)
    if rule is None or not (complete or operation.kind in OF_SHAPES):
        return None
    found = rule(operation, given)
    return None if found is None else (found,)


Rule = Callable[[Operation, Sequence[np.ndarray]], np.ndarray | None]


def _shape(operation: Operation, _known: Sequence[np.ndarray]) -> np.ndarray:
    shape = operation.operand(0).shape
    rank = len(shape)
    start, end = operation.integer("start", 0), operation.integer("end", rank)
    first, last = (min(max(place + rank if place < 0 else place, 0), rank) for place in (start, end))
    return sized(list(shape[first:last]))


def sized(sizes: Sequence[object]) -> np.ndarray:
    """Sizes as contents."""
    if any(isinstance(size, Size) for size in sizes):
        made = np.empty(len(sizes), object)
        made[:] = sizes
        return made
    return np.array(sizes, np.int64)


def _constant(operation: Operation, _known: Sequence[np.ndarray]) -> np.ndarray | None:
    attributes = operation.attributes
    if "value" in attributes:
        return array_of(attributes["value"].t, None, operation.builder.origin)
    for name, dtype in (("value_float", np.float32), ("value_int", np.int64)):
        if name in attributes:
            held = attributes[name]
            return np.array(held.f if dtype is np.float32 else held.i, dtype)
    if "value_floats" in attributes:
        return np.array(attributes["value_floats"].floats, np.float32)
    if "value_ints" in attributes:
        return np.array(attributes["value_ints"].ints, np.int64)
    raise operation.error("constants that are texts, or sparse, are not supported")


def _cast(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    (array,) = known
    type = operation.type_of(operation.integer("to"))
    if array.dtype == object:
        return array if type.is_integer else None
    if type.is_half or not (array.dtype.kind in "iub" or (type.is_integer and _has_integers(array, dtype_of(type)))):
        return None  # floats are rounded and saturate as kernels have it
    return array.astype(dtype_of(type))


def _has_integers(array: np.ndarray, dtype: np.dtype) -> bool:
    """Whether these are floats that are small integers of a type."""
    if array.dtype not in _FLOATS or not np.isfinite(array).all():
        return False
    ends, most = np.iinfo(dtype), 1 << 24  # float32 has all integers up to that
    return bool(((array % 1 == 0) & (array >= max(ends.min, -most)) & (array <= min(ends.max, most))).all())


def _arithmetic(function: Callable[[Any, Any], object]) -> Rule:
    def compute(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
        left, right = known
        if left.dtype == right.dtype and left.dtype in _FLOATS and function is not _divide:
            with np.errstate(all="ignore"):
                return np.asarray(function(left, right))
        if left.dtype.kind not in "iO" or right.dtype.kind not in "iO":
            return None
        return _result(np.asarray(_by_element(function, left, right)), left, right)

    return compute


def _by_element(function: Callable[[Any, Any], object], left: np.ndarray, right: np.ndarray) -> np.ndarray:
    one, other = np.broadcast_arrays(left, right)
    made = np.empty(one.shape, object)
    for place in np.ndindex(one.shape):
        first, second = one[place], other[place]
        made[place] = function(*(int(x) if isinstance(x, np.integer) else x for x in (first, second)))
    return made


def _result(made: np.ndarray, *operands: np.ndarray) -> np.ndarray:
    """The contents as integers, if no size is open."""
    if any(isinstance(size, Size) for size in made.reshape(-1)):
        return made
    dtypes = [array.dtype for array in operands if array.dtype != object]
    return made.astype(dtypes[0] if dtypes else np.int64)


def _divide(dividend: Dimension, divisor: Dimension) -> Dimension:
    if isinstance(dividend, Size) or isinstance(divisor, Size):
        return dividend // divisor
    if divisor == 0:
        return 0
    quotient = abs(dividend) // abs(divisor)
    return quotient if (dividend < 0) == (divisor < 0) else -quotient


def _gather(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    array, indices = known
    if indices.dtype == object or not array.shape:
        return None
    axis = operation.axis(operation.integer("axis", 0), array.ndim)
    extent = array.shape[axis]
    if indices.size and not (-extent <= indices.min() and indices.max() < extent):
        raise operation.error(f"an index is not in {-extent}..{extent - 1}")
    return np.asarray(np.take(array, indices, axis))  # a size alone is no array


def _concat(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    axis = operation.axis(operation.integer("axis"), known[0].ndim)
    return np.concatenate(list(known), axis)


def _unsqueeze(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    axes = operation.list("axes") if len(known) == 1 else tuple(int(axis) for axis in known[1])
    return np.expand_dims(known[0], axes or ())


def _squeeze(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    axes = operation.list("axes") if len(known) == 1 else tuple(int(axis) for axis in known[1])
    return np.squeeze(known[0], axes)


def _slice(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    array = known[0]
    if any(part.dtype == object for part in known[1:]):
        return None
    if len(known) == 1:
        starts, ends = operation.list("starts") or (), operation.list("ends") or ()
        axes = operation.list("axes") or tuple(range(len(starts)))
        steps = (1,) * len(starts)
    else:
        starts, ends = tuple(map(int, known[1])), tuple(map(int, known[2]))
        axes = tuple(map(int, known[3])) if len(known) > 3 else tuple(range(len(starts)))
        steps = tuple(map(int, known[4])) if len(known) > 4 else (1,) * len(starts)
    index = [slice(None)] * array.ndim
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        last: int | None = None if step < 0 and end < -array.shape[axis] else end
        index[axis] = slice(start, last, step)
    return array[tuple(index)]


def _reshape(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    if len(known) != 2 or known[1].dtype == object:
        return None
    shape = [known[0].shape[i] if size == 0 else int(size) for i, size in enumerate(known[1])]
    return known[0].reshape(shape)


def _product(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    array = known[0]
    if len(known) > 1 or "axes" in operation.attributes or array.dtype.kind not in "iO":
        return None
    total = np.array(elements([int(x) if isinstance(x, np.integer) else x for x in array.reshape(-1)]))
    return total.reshape((1,) * array.ndim if operation.integer("keepdims", 1) else ())


def _size(operation: Operation, _known: Sequence[np.ndarray]) -> np.ndarray:
    return np.array(elements(operation.operand(0).shape))


def _filled(operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    (shape,) = known
    if shape.dtype == object or np.prod(shape, dtype=np.int64) > _MOST_FILLED:
        return None
    value = operation.attributes.get("value")
    held = np.zeros(1, np.float32) if value is None else array_of(value.t, None, operation.builder.origin)
    if held.dtype.kind not in "iub" or (shape < 0).any():
        return None
    return np.full(shape, held.reshape(-1)[0])


def _equal(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    left, right = known
    if left.dtype.kind not in "iO" or right.dtype.kind not in "iO":
        return None
    return _by_element(operator.eq, left, right).astype(bool)


def _of_numbers(function: Callable[..., np.ndarray]) -> Rule:
    """What NumPy computes of numbers as kernels do, whatever they are; not of open sizes."""

    def compute(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
        return None if any(array.dtype == object for array in known) else np.asarray(function(*known))

    return compute


def _of_all(function: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Rule:
    return _of_numbers(lambda *arrays: reduce(function, arrays))


def _where(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    condition, then, otherwise = known
    if then.dtype.kind not in "iO" or otherwise.dtype.kind not in "iO":
        return None
    return _result(np.where(condition, then.astype(object), otherwise.astype(object)), then, otherwise)


def _range(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    if any(array.dtype.kind != "i" for array in known) or not known[2]:
        return None
    start, limit, step = (int(array.reshape(())) for array in known)
    if abs((limit - start) // step) > _MOST_FILLED:
        return None
    return np.arange(start, limit, step).astype(known[0].dtype)


def _expand(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray | None:
    array, shape = known
    if shape.dtype == object or np.prod(shape, dtype=np.int64) > _MOST_FILLED or array.dtype.kind not in "iOb":
        return None
    try:
        return np.broadcast_to(array, np.broadcast_shapes(array.shape, tuple(map(int, shape))))
    except ValueError as error:
        raise GraphError(str(error)) from None


def _identity(_operation: Operation, known: Sequence[np.ndarray]) -> np.ndarray:
    return known[0]


_MOST_FILLED: Final = 4096
# What needs no contents, only shapes.
OF_SHAPES: Final = frozenset(("Shape", "Size", "Constant"))
_RULES: Final[dict[str, Rule]] = {
    "Abs": _of_numbers(np.abs),
    "Add": _arithmetic(operator.add),
    "And": _of_numbers(np.logical_and),
    "Cast": _cast,
    "Concat": _concat,
    "Constant": _constant,
    "ConstantOfShape": _filled,
    "Div": _arithmetic(_divide),
    "Equal": _equal,
    "Expand": _expand,
    "Gather": _gather,
    "Greater": _of_numbers(np.greater),
    "GreaterOrEqual": _of_numbers(np.greater_equal),
    "Identity": _identity,
    "Less": _of_numbers(np.less),
    "LessOrEqual": _of_numbers(np.less_equal),
    "Max": _of_all(np.maximum),
    "Min": _of_all(np.minimum),
    "Mul": _arithmetic(operator.mul),
    "Neg": _of_numbers(np.negative),
    "Not": _of_numbers(np.logical_not),
    "Or": _of_numbers(np.logical_or),
    "Range": _range,
    "ReduceProd": _product,
    "Reshape": _reshape,
    "Shape": _shape,
    "Size": _size,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Sub": _arithmetic(operator.sub),
    "Unsqueeze": _unsqueeze,
    "Where": _where,
}
