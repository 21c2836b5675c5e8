"""``ArrayView``: what the runtime knows of an array, whichever framework made it."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import field
from enum import Enum
from typing import Final, TypeAlias

from tc.base.counted import counted
from tc.base.errors import ArgumentError
from tc.base.frozen import frozen
from tc.base.types import ScalarType


class Framework(Enum):
    """Who made an array, and so in whose kind results are returned."""

    NUMPY = "NumPy"
    TORCH = "PyTorch"
    JAX = "JAX"
    CUPY = "CuPy"
    PYCUDA = "PyCUDA"
    OTHER = "DLPack"


@frozen
class Stream:
    """An order of work on a CUDA device: its handle in the driver, 0 for the default one of the device.

    ``owner``: the object of the framework that it comes from; it keeps the stream alive.
    """

    handle: int
    owner: object = field(default=None, repr=False, compare=False)

    def __cuda_stream__(self) -> tuple[int, int]:
        """The version of the protocol, and the handle (cuda.core, "CUDA Stream Protocol")."""
        return 0, self.handle


DEFAULT_STREAM: Final = Stream(0)
# The fingerprint of an array on a GPU: its shape, strides, type and device; its address, which is not 0; the stream on
# which it is ready.
Fingerprint: TypeAlias = tuple[Hashable, int, Stream]


@frozen
class CudaMemory:
    """Where elements lie that a GPU works on: the number of the device, and the stream on which they are ready."""

    device: int
    stream: Stream

    def __str__(self) -> str:
        return f"cuda:{self.device}"


@frozen
class ArrayView:
    """Elements at ``address``, with strides in elements (negative ones too).

    ``memory``: that of the GPU that holds them; None for the memory of this machine.
    Strides of dimensions with at most one element, and of empty arrays, say nothing about the memory and are those
    of a contiguous array.  ``owner`` is the array as it was passed; it and ``lease`` keep the memory alive.
    ``followed``: PyTorch would have to differentiate what is computed from it, here and now.
    """

    address: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    type: ScalarType
    writable: bool
    framework: Framework
    owner: object = field(repr=False, compare=False)
    lease: object = field(default=None, repr=False, compare=False)
    memory: CudaMemory | None = field(default=None, compare=False)
    followed: bool = field(default=False, compare=False)

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


def row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    """The strides of a C-contiguous array, in elements."""
    return tuple(math.prod(shape[position + 1 :]) for position in range(len(shape)))


def element_strides(shape: tuple[int, ...], strides: tuple[int, ...], unit: int, place: str) -> tuple[int, ...]:
    """``strides``, given in bytes with elements of ``unit`` bytes, or in elements (``unit`` 1), in elements.

    ArgumentError, naming ``place``, for a stride between elements.
    """
    empty = 0 in shape
    found: list[int] = []
    contiguous = 1
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent <= 1 or empty:
            step = contiguous
        else:
            step, rest = divmod(stride, unit)
            if rest:
                raise ArgumentError(
                    f"{place}: a stride of {counted(stride, 'byte')} is no multiple of the element size, "
                    f"{unit} bytes; pass a copy"
                )
        found.append(step)
        contiguous = step * max(extent, 1)
    return tuple(reversed(found))


def check_address(address: int, size: int, unit: int, place: str) -> None:
    """ArgumentError unless ``size`` elements of ``unit`` bytes may lie at ``address``."""
    if size == 0:
        return
    if address == 0:
        raise ArgumentError(f"{place}: the array has no memory of its own; pass one that holds its elements")
    if address % unit:
        raise ArgumentError(
            f"{place}: its first element lies at address {address:#x}, which is not aligned to {unit} bytes; "
            "pass a copy"
        )


def unsupported_type(name: str, place: str) -> ArgumentError:
    """The error for elements of a type that the language does not have."""
    return ArgumentError(f"{place}: element type {name} is not supported; known: {', '.join(map(str, ScalarType))}")
