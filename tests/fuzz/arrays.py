"""Arrays of every type, content and layout, from NumPy or PyTorch."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeGuard

import ml_dtypes
import numpy as np

import tc
from tc.reference.bounded import Array
from tests.fuzz.recipe import Content, Layout, TensorArgument

# PyTorch takes seconds to load, which programs without its arrays can do without.
if TYPE_CHECKING:
    import torch

_PADDING = 3


@dataclass(frozen=True, slots=True)
class Placed:
    """``view`` is the array; ``base`` is all the memory around it."""

    view: Array
    base: Array


def dtype_of(type: tc.ScalarType) -> np.dtype[Any]:
    """NumPy's type for a scalar type (importing ml_dtypes has registered its own by name)."""
    return np.dtype(type.value)


def fill(rng: np.random.Generator, type: tc.ScalarType, shape: tuple[int, ...], content: Content) -> Array:
    """A contiguous array of random values."""
    if type is tc.ScalarType.BOOL:
        return np.array(rng.integers(0, 2, shape), np.bool_)
    values = _floats(rng, type, shape, content) if type.is_floating else _integers(rng, type, shape, content)
    with np.errstate(over="ignore"):
        return np.array(values, dtype_of(type))


def _integers(rng: np.random.Generator, type: tc.ScalarType, shape: tuple[int, ...], content: Content) -> Array:
    dtype = np.dtype(type.value)
    if content is Content.WIDE:
        return rng.integers(type.minimum, type.maximum, shape, dtype, endpoint=True)
    values = rng.integers(max(type.minimum, -9), 10, shape).astype(dtype)
    if content is Content.SPARSE:
        values[rng.random(shape) < 0.7] = 0
    if content is Content.SPECIAL:
        extremes = np.array([type.minimum, type.minimum + 1, type.maximum, type.maximum - 1, 0, 1], dtype)
        return np.where(rng.random(shape) < 0.25, rng.choice(extremes, shape), values)
    return values


def _floats(rng: np.random.Generator, type: tc.ScalarType, shape: tuple[int, ...], content: Content) -> Array:
    values = rng.uniform(-2.0, 2.0, shape)
    values = np.where(rng.random(shape) < 0.2, np.round(values), values)
    if content is Content.SPARSE:
        values = np.where(rng.random(shape) < 0.7, 0.0, values)
    if content is Content.WIDE:
        values = values * 2.0 ** rng.integers(-8, 9, shape)
    if content is Content.SPECIAL:
        most = type.largest
        least = type.smallest_subnormal
        special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, least, -least, 5 * least])
        values = np.where(rng.random(shape) < 0.15, rng.choice(special, shape), values)
        # Few of the greatest: what overflows in one order of operations only is ambiguous.
        if rng.random() < 0.3:
            values = np.where(rng.random(shape) < 0.05, rng.choice([most, -most], shape), values)
    return values


def make(rng: np.random.Generator, argument: TensorArgument, shape: tuple[int, ...]) -> Placed:
    """The array of an argument."""
    if argument.below is not None:
        values = np.array(rng.integers(0, max(argument.below, 1), shape), dtype_of(argument.type))
    else:
        values = fill(rng, argument.type, shape, argument.content)
    return place(rng, values, argument.layout)


def place(rng: np.random.Generator, values: Array, layout: Layout) -> Placed:
    """The values in memory as the layout says; a broadcast repeats some of them."""
    match layout:
        case Layout.CONTIGUOUS:
            return Placed(values, values)
        case Layout.READ_ONLY:
            values.flags.writeable = False
            return Placed(values, values)
        case Layout.TRANSPOSED:
            order = rng.permutation(values.ndim)
            base = values.transpose(order).copy(order="C")
            return Placed(base.transpose(np.argsort(order)), base)
        case Layout.STRIDED:
            steps = rng.integers(1, 4, values.ndim)
            base = np.ones([n * s for n, s in zip(values.shape, steps, strict=True)], values.dtype)
            view = _every(base, steps.tolist())
        case Layout.REVERSED:
            base = np.empty(values.shape, values.dtype)
            view = _every(base, rng.choice([-1, 1], values.ndim).tolist())
        case Layout.OFFSET:
            base = np.ones(values.size + 2 * _PADDING, values.dtype)
            view = base[_PADDING : _PADDING + values.size].reshape(values.shape)
        case Layout.BROADCAST:
            base = values
            for axis in np.flatnonzero(rng.random(values.ndim) < 0.5):
                base = base.take(range(min(1, base.shape[axis])), axis)
            strides = np.broadcast_to(base, values.shape).strides
            return Placed(np.ndarray(values.shape, base.dtype, base, strides=strides), base)
    view[...] = values
    return Placed(view, base)


def _every(array: Array, steps: list[int]) -> Array:
    """A view of every so many elements in each dimension, backwards where a step is negative."""
    indices: list[Any] = [slice(None, None, step) for step in steps]
    return array[(..., *indices)]


def to_torch(array: Array) -> torch.Tensor:
    """The same memory as a tensor of PyTorch."""
    import torch

    if hasattr(ml_dtypes, array.dtype.name):  # PyTorch takes their bits
        bits = np.dtype(f"int{8 * array.itemsize}")
        return torch.from_numpy(array.view(bits)).view(getattr(torch, array.dtype.name))
    return torch.from_numpy(array)


def to_numpy(array: object) -> Array:
    """The same memory as an array of NumPy."""
    if not is_tensor(array):
        return np.asarray(array)
    import torch

    name = str(array.dtype).removeprefix("torch.")
    if hasattr(ml_dtypes, name):
        bits = getattr(torch, f"int{8 * array.element_size()}")
        return np.asarray(array.view(bits).numpy().view(np.dtype(name)))
    return np.asarray(array.numpy())


def is_tensor(array: object) -> TypeGuard[torch.Tensor]:
    """Whether it is one of PyTorch."""
    return "torch" in sys.modules and isinstance(array, sys.modules["torch"].Tensor)
