"""A NumPy array over the memory of any array that the runtime can describe."""

from __future__ import annotations

import numpy as np

from tc.runtime.numpy_arrays import numpy_dtype
from tc.runtime.view import ArrayView


class _Exporter:
    """Hands an address to NumPy through ``__array_interface__`` and keeps the memory alive."""

    def __init__(self, view: ArrayView) -> None:
        size = view.type.itemsize
        self._view = view
        self.__array_interface__ = {
            "version": 3,
            "shape": view.shape,
            # Raw bytes: the interface has no name for bfloat16.
            "typestr": f"|V{size}",
            "data": (view.address, True),
            "strides": tuple(stride * size for stride in view.strides),
        }


def borrow_raw(view: ArrayView) -> np.ndarray:
    """A read-only array of the same elements as uninterpreted bytes, at the same place."""
    return np.asarray(_Exporter(view))


def borrow(view: ArrayView) -> np.ndarray:
    """A read-only array of the same elements, without a copy; empty arrays have no memory to share."""
    dtype = numpy_dtype(view.type)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    return borrow_raw(view).view(dtype)
