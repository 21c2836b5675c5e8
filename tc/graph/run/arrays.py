"""Arrays of values: views of memory by shape and strides, and what comes in from callers."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tc.base.errors import GraphError
from tc.dispatch.arguments import Arguments
from tc.graph.ir.nodes import View
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.ir.views import Reinterpret
from tc.runtime.frameworks.numpy_arrays import describe_numpy, numpy_dtype
from tc.runtime.views.view import ArrayView, Framework


def numbers(shape: Shape, what: str) -> tuple[int, ...]:
    """The shape, in which no size is open; GraphError otherwise."""
    found = tuple(extent for extent in shape if isinstance(extent, int))
    if len(found) != len(shape):
        raise GraphError(f"{what} has the shape {tuple(map(str, shape))}, which depends on open sizes")
    return found


def view_of(array: np.ndarray, node: View, operand: Value, value: Value) -> np.ndarray:
    """The view ``value`` of the operand's array."""
    if isinstance(node.how, Reinterpret):
        array = array.view(numpy_dtype(value.type))
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    if 0 in shape:
        return np.empty(shape, array.dtype)
    offset = node.offset
    assert isinstance(offset, int)
    first = array
    if offset:
        # An array of one element that begins there: as_strided measures from the first element of what it is given.
        low, flat = _flat(array, operand)
        first = flat[offset - low :]
    return _strided(first, shape, tuple(step * array.itemsize for step in steps))


def on_arrays(arrays: Mapping[str, np.ndarray]) -> Arguments:
    """A call on NumPy's arrays, which lie in order."""
    views = {name: describe_numpy(array, f"`{name}`") for name, array in arrays.items()}
    return Arguments(views, {}, {}, Framework.NUMPY)


def view_at(address: int, value: Value) -> ArrayView:
    """What lies at an address, where the value is.  Whoever reads it keeps the memory."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    return ArrayView(address, shape, steps, value.type, True, Framework.NUMPY, owner=None)


def lying(memory: np.ndarray, value: Value) -> np.ndarray:
    """The array of a value that begins where these bytes do."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    dtype = numpy_dtype(value.type)
    if 0 in shape:
        return np.empty(shape, dtype)
    return _strided(
        memory[: _span(value) * dtype.itemsize].view(dtype), shape, tuple(step * dtype.itemsize for step in steps)
    )


def laid(array: np.ndarray, value: Value) -> np.ndarray:
    """The array with the strides of its value."""
    if value.is_contiguous:
        return array
    memory = lying(np.zeros(_span(value) * array.itemsize, np.uint8), value)
    memory[...] = array
    return memory


def _span(value: Value) -> int:
    """How many elements lie from the first to the last, where no stride is negative."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    return 1 + sum((extent - 1) * step for extent, step in zip(shape, steps, strict=True))


def _flat(array: np.ndarray, value: Value) -> tuple[int, np.ndarray]:
    """All elements from the lowest in memory to the highest, and how far the lowest is from the first."""
    shape, steps = numbers(value.shape, value.name), numbers(value.steps, value.name)
    ends = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
    low, high = sum(min(end, 0) for end in ends), sum(max(end, 0) for end in ends)
    lowest = array
    for axis, step in enumerate(steps):
        if step < 0:
            lowest = np.flip(lowest, axis)
    return low, _strided(lowest, (high - low + 1,), (array.itemsize,))


def _strided(array: np.ndarray, shape: tuple[int, ...], steps: tuple[int, ...]) -> np.ndarray:
    """NumPy's ``as_strided``, of bytes for floats of eight bits, whose type it does not understand."""
    plain = array.view(np.uint8) if array.itemsize == 1 else array
    return np.lib.stride_tricks.as_strided(plain, shape, steps).view(array.dtype)
