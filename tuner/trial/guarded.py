"""Arrays between guard pages, which show out-of-bounds writes."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.language.program.specialization import Layout
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

Array = npt.NDArray[Any]

_PAGE: Final = mmap.PAGESIZE
# Size of the inaccessible region on either side; it takes addresses, no memory.
_GUARD: Final = 1 << 20
_PROT_NONE: Final = 0
# What no kernel computes, most likely: as a float, a NaN with a message.
_POISON: Final = 0xFB
_LIBC: Final = ctypes.CDLL(None, use_errno=True)


class GuardedArray:
    """An array between inaccessible pages; it begins as poison, as does the rest of its last page.

    ``strides``: in bytes, those of a C-contiguous array for None.  What lies between elements is poison, too.
    """

    def __init__(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None) -> None:
        usual = tuple(step * dtype.itemsize for step in np.empty(shape, np.int8).strides)
        steps = usual if strides is None or 0 in shape else strides
        ends = [(extent - 1) * step for extent, step in zip(shape, steps, strict=True)]
        first = -sum(end for end in ends if end < 0)
        self._size = 0 if 0 in shape else first + sum(end for end in ends if end > 0) + dtype.itemsize
        pages = -(-max(self._size, 1) // _PAGE)
        self._memory = mmap.mmap(-1, pages * _PAGE + 2 * _GUARD)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self._bytes[_GUARD:-_GUARD] = _POISON
        # Not ``as_strided``, which knows no types but NumPy's own.
        self.array: Array = np.ndarray(shape, dtype, self._bytes[_GUARD : _GUARD + self._size], first, steps)
        self._between: Array = np.empty(0, np.int64)
        if steps != usual:
            inside = np.zeros(self._size, np.bool_)
            np.ndarray((*shape, dtype.itemsize), np.bool_, inside, first, (*steps, 1))[...] = True
            self._between = np.flatnonzero(~inside)
        for first in (0, _GUARD + pages * _PAGE):
            address = self._bytes.ctypes.data + first
            if _LIBC.mprotect(ctypes.c_void_p(address), ctypes.c_size_t(_GUARD), _PROT_NONE):
                raise OSError(ctypes.get_errno(), "cannot protect memory")

    @property
    def given(self) -> Array:
        """The array, as kernels take it."""
        return self.array

    def write(self, values: Array) -> None:
        """Gives it these values."""
        self.array[...] = values

    def read(self) -> Array:
        """Its values."""
        return self.array

    @property
    def is_intact(self) -> bool:
        """Whether what follows the array, and lies between its elements, still is poison."""
        between = self._bytes[_GUARD : _GUARD + self._size][self._between]
        return bool((self._bytes[_GUARD + self._size : -_GUARD] == _POISON).all() and (between == _POISON).all())


# Shape, type and strides in bytes.
Made: TypeAlias = tuple[tuple[int, ...], "np.dtype[Any]", tuple[int, ...]]


def made_like(layout: Layout) -> Made:
    """What a new array of such a layout is made from."""
    dtype = numpy_dtype(layout.type)
    return layout.shape, dtype, tuple(stride * dtype.itemsize for stride in layout.strides)
