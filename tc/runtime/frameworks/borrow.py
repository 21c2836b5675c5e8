"""NumPy arrays over the memory of any array that the runtime can describe, or over a copy from a GPU."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.runtime.views.view import ArrayView


class _Exporter:
    """Hands an address to NumPy through ``__array_interface__`` and keeps the memory alive."""

    def __init__(self, view: ArrayView, *, writable: bool) -> None:
        size = view.type.itemsize
        self._view = view
        self.__array_interface__ = {
            "version": 3,
            "shape": view.shape,
            # Raw bytes: the interface has no name for bfloat16.
            "typestr": f"|V{size}",
            "data": (view.address, not writable),
            "strides": tuple(stride * size for stride in view.strides),
        }


def borrow_raw(view: ArrayView) -> np.ndarray:
    """A read-only array of the same elements as uninterpreted bytes, at the same place."""
    return np.asarray(_Exporter(view, writable=False))


def borrow_to_write(view: ArrayView) -> np.ndarray:
    """An array of the same elements, at the same place in the memory of this machine, that may be written."""
    dtype = numpy_dtype(view.type)
    return np.empty(view.shape, dtype) if view.size == 0 else np.asarray(_Exporter(view, writable=True)).view(dtype)


def borrow(view: ArrayView) -> np.ndarray:
    """A read-only array of the same elements, without a copy unless they lie on a GPU.

    Empty arrays have no memory to share.
    """
    dtype = numpy_dtype(view.type)
    if view.size == 0:
        return np.empty(view.shape, dtype)
    return borrow_raw(view if view.memory is None else _copied(view, view.memory.device)).view(dtype)


def _copied(view: ArrayView, device: int) -> ArrayView:
    """The same elements in the memory of this machine, with what lies between them."""
    from tc.runtime.frameworks.device_array import read_bytes

    size = view.type.itemsize
    spans = [stride * (extent - 1) for extent, stride in zip(view.shape, view.strides, strict=True)]
    first, last = sum(min(span, 0) for span in spans), sum(max(span, 0) for span in spans)
    copied = np.frombuffer(read_bytes(view.address + first * size, (last - first + 1) * size, device), np.uint8)
    return replace(view, address=copied.ctypes.data - first * size, owner=copied, lease=copied, memory=None)
