"""``DeviceArray``: memory of a GPU that this package allocates for callers without a framework."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import numpy as np

from tc.base.errors import DeviceError
from tc.base.types import Kind, ScalarType
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import device_number, wait_for_device, waiting
from tc.runtime.cuda.deferred_free import DEFERRED_FREE, Borrower
from tc.runtime.frameworks.dlpack import CUDA_DEVICE
from tc.runtime.frameworks.dlpack_export import export_cuda
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.runtime.views.view import DEFAULT_STREAM, ArrayView, CudaMemory, Framework, Stream, row_major

_KINDS: Final = {Kind.BOOLEAN: "b", Kind.SIGNED: "i", Kind.UNSIGNED: "u", Kind.FLOATING: "f"}
# The streams of DLPack and of CUDA's array interface: 1 is the default one, -1 asks for no order.
_LEGACY, _NO_ORDER = 1, -1


class DeviceArray:
    """A C-contiguous array on a GPU; the memory goes with it.

    Any framework takes it over without a copy, through ``__dlpack__`` or ``__cuda_array_interface__``.  Who uses the
    latter keeps the array until their work has ended, as its rules demand.  ``numpy()`` copies it to this machine.
    """

    def __init__(self, shape: tuple[int, ...], type: ScalarType, memory: CudaMemory) -> None:
        self.shape: Final = shape
        self.type: Final = type
        self.memory: Final = memory
        self._driver = cuda_driver()
        self._borrowers: frozenset[Borrower] = frozenset()
        with self._driver.on(memory.device):
            # What a stream allocates that captures is memory of the graph, to be freed in it.
            self._of_graph: Final = self._driver.captures(memory.stream)
            self.address: Final = self._allocated() if self.nbytes else 0
        self.fingerprint: Final = ("own", shape, type.value, memory.device), self.address, memory.stream

    def _allocated(self) -> int:
        DEFERRED_FREE.purge()
        try:
            return self._driver.allocate(self.nbytes, self.memory.stream)
        except MemoryError:
            if self._of_graph or not DEFERRED_FREE.holds(self.memory.device):
                raise
            # The only wait: without it there would be no result.
            wait_for_device(self.memory.device)
            return self._driver.allocate(self.nbytes, self.memory.stream)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # An array whose memory could not be had has no address; at its end, the process gives everything back.
        if not getattr(self, "address", 0) or is_finalizing():
            return
        if not self._of_graph:
            DEFERRED_FREE.add(self._driver, self.memory, self.address, self._borrowers)
            return
        # If the graph is complete, its memory goes with it.
        with suppress(DeviceError), self._driver.on(self.memory.device):
            if self._driver.captures(self.memory.stream):
                self._driver.free(self.address, self.memory.stream)

    def __repr__(self) -> str:
        return f"<DeviceArray {self.type}{list(self.shape)} on {self.memory}>"

    @property
    def dtype(self) -> np.dtype:
        """NumPy's name for the elements; ArgumentError for bfloat16 without ml_dtypes."""
        return numpy_dtype(self.type)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.type.itemsize

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "version": 3,
            "shape": self.shape,
            "strides": None,
            "typestr": _type_text(self.type),
            "data": (self.address, False),
            "stream": self.memory.stream.handle or _LEGACY,
        }

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA_DEVICE, self.memory.device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Exports the array for work on ``stream``; BufferError for another device or a copy."""
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("a DeviceArray is exported where it is, without a copy")
        return self.lend(stream)

    def lend(self, stream: int | None, borrower: Borrower | None = None) -> object:
        """Exports the array through DLPack; ``stream`` waits for its elements, except during graph capture.

        ``borrower``: None for whoever works on just this stream.
        """
        own = self.memory.stream
        other = DEFAULT_STREAM if stream in (None, 0, _LEGACY) else Stream(int(stream or 0))
        if other != own:
            with self._driver.on(self.memory.device):
                if stream != _NO_ORDER and not any(map(self._driver.captures, (own, other))):
                    self._driver.wait(other, self._driver.record(own))
            borrower = borrower or (Borrower.DEFAULT_STREAM if other == DEFAULT_STREAM else Borrower.UNKNOWN)
        if borrower is not None:
            self._borrowers |= {borrower}
        return export_cuda(self.address, self.shape, self.type, self.memory.device, self)

    def used_on(self, stream: Stream) -> None:
        """From now on, work of another stream may use the memory, whose end nothing says."""
        if stream != self.memory.stream:
            self._borrowers |= {Borrower.DEFAULT_STREAM if stream == DEFAULT_STREAM else Borrower.UNKNOWN}

    def view(self) -> ArrayView:
        """What the runtime knows of it."""
        strides = row_major(self.shape)
        return ArrayView(self.address, self.shape, strides, self.type, True, Framework.OTHER, self, memory=self.memory)

    def numpy(self) -> np.ndarray:
        """A copy in the memory of this machine."""
        copied = np.empty(self.shape, self.dtype)
        if self.nbytes:
            with waiting(self.memory.device) as driver:
                driver.copy_to_host(copied.ctypes.data, self.address, self.nbytes)
        return copied


def _type_text(type: ScalarType) -> str:
    """The elements, as array interfaces call them: raw bytes where they have no name."""
    if type is ScalarType.BFLOAT16:
        return f"<V{type.itemsize}"
    return f"{'|' if type.itemsize == 1 else '<'}{_KINDS[type.kind]}{type.itemsize}"


def to_device(array: np.ndarray, type: ScalarType, device: int) -> DeviceArray:
    """A copy of a C-contiguous array on a device; DeviceError if there is none with this number."""
    copied = DeviceArray(array.shape, type, CudaMemory(device_number(device), DEFAULT_STREAM))
    if copied.nbytes:
        with waiting(device) as driver:
            driver.copy_to_device(copied.address, array.ctypes.data, copied.nbytes)
    return copied


def write_bytes(address: int, host: int, size: int, device: int) -> None:
    """Copies bytes at an address of this machine into a device's memory, after all work of the context."""
    with waiting(device) as driver:
        driver.copy_to_device(address, host, size)


def read_bytes(address: int, size: int, device: int) -> bytearray:
    """Bytes of a device's memory, after all work of the context."""
    copied = bytearray(size)
    with waiting(device) as driver:
        driver.copy_to_host(ctypes.addressof((ctypes.c_char * size).from_buffer(copied)), address, size)
    return copied
