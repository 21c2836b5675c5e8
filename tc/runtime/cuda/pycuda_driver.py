"""The CUDA driver for processes that use PyCUDA.  Imported where a kernel is to run on a GPU.

PyCUDA has the devices and the contexts.  All else is asked of the library that it has loaded: PyCUDA itself launches on
streams of its own only, and what it makes can be let go of by one thread only.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from tc.base.errors import DeviceError
from tc.base.grid import GridKernel
from tc.runtime.cuda.cuda_driver import (
    KEPT,
    CudaDevice,
    Event,
    Launch,
    LaunchGraph,
    LoadedModule,
    failure,
    launch_failed,
    packed_launch,
    unreadable,
)
from tc.runtime.cuda.libcuda import Libcuda
from tc.runtime.views.view import Stream

try:
    import pycuda.driver as cuda
except ImportError as error:
    raise DeviceError(
        f"TC_CUDA_RUNTIME asks for PyCUDA, which cannot be imported ({error}); "
        "install it, for example by: pip install 'tensor-comprehensions[pycuda]'"
    ) from error

from tc.runtime.cuda.pycuda_contexts import primary_context, pushed

# Of cuda.h: statuses, ``CUresult``.
_OUT_OF_MEMORY, _NOT_READY, _IMPLICIT = 2, 600, 906
_UNREADABLE: Final = frozenset((200, 209, 300))  # the image is invalid, has no binary for the device, or its source is
_GONE: Final = frozenset((400, 709))  # the handle is invalid, or its context destroyed
# Attributes of devices, addresses, kernels and pools, and flags.
_POOLS_SUPPORTED, _ORDINAL, _DYNAMIC_SHARED, _THRESHOLD = 115, 9, 8, 4
_NO_TIMING, _PORTABLE_AND_MAPPED, _RELAXED = 2, 1 | 2, 2


class _PoolProperties(ctypes.Structure):
    """``CUmemPoolProps``: memory of one device that stays there."""

    _fields_ = (
        ("kind", ctypes.c_int),
        ("exported", ctypes.c_int),
        ("place", ctypes.c_int),
        ("device", ctypes.c_int),
        ("security", ctypes.c_void_p),
        ("others", ctypes.c_char * 64),
    )


@contextmanager
def _relaxed(calls: Libcuda) -> Iterator[None]:
    """In the block, calls that captures do not allow leave them alone: anybody's would end with an error otherwise."""
    mode = ctypes.c_int(_RELAXED)
    status = calls.status("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))
    try:
        yield
    finally:
        if not status:
            calls.status("cuThreadExchangeStreamCaptureMode", ctypes.byref(mode))


class PycudaDriver:
    """``CudaDriver`` in the contexts of PyCUDA."""

    name: Final = "pycuda"
    graphs: Final = False

    def __init__(self) -> None:
        try:
            cuda.init()
            self._devices = tuple(map(_device, range(cuda.Device.count())))
        except cuda.Error as error:
            raise DeviceError(f"PyCUDA finds no device: {error}") from error
        self._calls = Libcuda()
        # Finalizers come here too, at any time.
        self._lock = threading.RLock()
        self._pools: dict[int, int] = {}

    def version(self) -> str:
        """Of CUDA, as the driver supports it: ``13.0``."""
        number = cuda.get_driver_version()
        return f"{number // 1000}.{number % 1000 // 10}"

    def devices(self) -> tuple[CudaDevice, ...]:
        """All that the process may use, by number."""
        return self._devices

    def current_device(self) -> int:
        """That of the current context of this thread; 0 where it has none."""
        return self._current() or 0

    def _current(self) -> int | None:
        """The device of this thread's context; None without one, where asking for its device would be a failed call."""
        return self._calls.number("cuCtxGetDevice") if self._calls.handle("cuCtxGetCurrent") else None

    def on(self, device: int) -> AbstractContextManager[None]:
        """In the block, a context of the device is current: the one that is, else the primary one."""
        return nullcontext() if self._current() == device else pushed(primary_context(device))

    def device_of(self, address: int) -> int:
        """The device that holds the memory at an address."""
        return self._calls.number("cuPointerGetAttribute", _ORDINAL, address)

    def load(self, code: bytes, kernels: Sequence[GridKernel]) -> LoadedModule:
        """A binary whose kernels are to be launched like this."""
        library = ctypes.c_size_t()
        with _relaxed(self._calls):
            status = self._calls.status("cuLibraryLoadData", ctypes.byref(library), code, None, None, 0, None, None, 0)
        if status in _UNREADABLE:
            raise unreadable(self.version(), self._calls.reason(status))
        self._calls.check(status)
        return _Module(self._calls, library.value, kernels)

    def graph(self, _launches: Sequence[Launch]) -> LaunchGraph:
        """None: contexts of PyCUDA may end with their threads, and what is theirs with them."""
        raise DeviceError("contexts of PyCUDA may end before their graphs; use cuda-bindings for graphs")

    def allocate(self, size: int, stream: Stream) -> int:
        """The address of memory for work on a stream of the current context; MemoryError if there is not enough."""
        address, pool, least = ctypes.c_size_t(), self._pool(self.current_device()), max(size, 1)
        place = ctypes.byref(address)
        if pool:
            status = self._calls.status("cuMemAllocFromPoolAsync", place, least, pool, stream.handle)
        else:
            status = self._calls.status("cuMemAlloc_v2", place, least)
        if status == _OUT_OF_MEMORY:
            raise MemoryError(f"the CUDA device has no {size} bytes left")
        self._calls.check(status)
        return address.value

    def free(self, address: int, stream: Stream) -> None:
        """Gives memory back once the work that the stream was given so far has ended."""
        if self._pool(self.current_device()):
            with _relaxed(self._calls):
                self._calls.call("cuMemFreeAsync", address, stream.handle)
        else:  # this waits for all work of the device
            self._calls.call("cuMemFree_v2", address)

    def _pool(self, device: int) -> int:
        """A pool that keeps some memory: the driver's own pool returns all of it at every synchronization.

        0 for devices without pools, as virtual ones may be.
        """
        with self._lock:
            if device not in self._pools:
                supported = self._calls.number("cuDeviceGetAttribute", _POOLS_SUPPORTED, device)
                self._pools[device] = self._new_pool(device) if supported else 0
            return self._pools[device]

    def _new_pool(self, device: int) -> int:
        wanted, kept = _PoolProperties(kind=1, place=1, device=device), ctypes.c_uint64(KEPT)
        with _relaxed(self._calls):
            pool = self._calls.handle("cuMemPoolCreate", ctypes.byref(wanted))
        self._calls.call("cuMemPoolSetAttribute", pool, _THRESHOLD, ctypes.byref(kept))
        return pool

    def copy_to_host(self, host: int, address: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""
        self.synchronize()
        self._calls.call("cuMemcpyDtoH_v2", host, address, size)

    def copy_to_device(self, address: int, host: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""
        self.synchronize()
        self._calls.call("cuMemcpyHtoD_v2", address, host, size)
        self.synchronize()

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Copies bytes of the device in the order of a stream of the current context."""
        self._calls.call("cuMemcpyDtoDAsync_v2", target, source, size, stream.handle)

    def clear(self, address: int, size: int, stream: Stream) -> None:
        """Zeros in so many bytes, in the order of a stream of the current context."""
        self._calls.call("cuMemsetD8Async", address, 0, size, stream.handle)

    def shared_word(self) -> _Word:
        """A new one; the current context may be any."""
        # Contexts of PyCUDA may end with their threads, and what is theirs with them.
        with pushed(primary_context(self.current_device())), _relaxed(self._calls):
            return _Word(self._calls)

    def record(self, stream: Stream, *, timed: bool = False) -> _Event:
        """The end of what a stream of the current context was given so far."""
        event = _Event(self._calls, timed=timed)
        self._calls.call("cuEventRecord", event.handle, stream.handle)
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Further work of the stream begins after the event."""
        assert isinstance(event, _Event)
        self._calls.call("cuStreamWaitEvent", stream.handle, event.handle, 0)

    def captures(self, stream: Stream) -> bool:
        """Whether what a stream is given becomes part of a graph, and runs when that does.

        Also for the default stream while it can be given nothing, because such a stream would wait for it.
        """
        state = ctypes.c_int()
        status = self._calls.status("cuStreamIsCapturing", stream.handle, ctypes.byref(state))
        # The default stream is asked for while one captures that it would wait for.
        return status == _IMPLICIT or (not status and state.value != 0)

    def synchronize(self, stream: Stream | None = None) -> None:
        """Waits for a stream of the current context, or for all of its work."""
        if stream is None:
            self._calls.call("cuCtxSynchronize")
        else:
            self._calls.call("cuStreamSynchronize", stream.handle)


def _device(number: int) -> CudaDevice:
    device = cuda.Device(number)
    attribute, kinds = device.get_attribute, cuda.device_attribute
    return CudaDevice(
        device.name(),
        device.compute_capability(),
        multiprocessors=attribute(kinds.MULTIPROCESSOR_COUNT),
        clock=1e3 * attribute(kinds.CLOCK_RATE),
        memory=device.total_memory(),
        cache=attribute(kinds.L2_CACHE_SIZE),
    )


class _Module:
    """A library of the driver, whose kernels run in every context."""

    def __init__(self, calls: Libcuda, library: int, kernels: Sequence[GridKernel]) -> None:
        self._calls = calls
        self._library = library
        self._kernels = [(k, calls.handle("cuLibraryGetKernel", library, k.name.encode())) for k in kernels]
        self._prepared: set[tuple[int, int]] = set()

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        # At its end, the process gives everything back.
        if not is_finalizing():
            with _relaxed(self._calls):
                self._calls.status("cuLibraryUnload", self._library)

    def launch(self, number: int, arguments: bytes, stream: Stream, places: Sequence[int] = ()) -> None:
        kernel, function = self._kernels[number]
        if kernel.dynamic_bytes:
            self._prepare(number)
        packed = packed_launch(arguments, places)
        sizes = (*kernel.grid, *kernel.block, kernel.dynamic_bytes)
        given = packed.parameters or None, packed.extra or None
        self._check(kernel, self._calls.status("cuLaunchKernel", function, *sizes, stream.handle, *given))

    def _prepare(self, number: int) -> None:
        """Blocks get more shared memory than usual only after this."""
        device = self._calls.number("cuCtxGetDevice")
        if (number, device) not in self._prepared:
            kernel, function = self._kernels[number]
            wanted = _DYNAMIC_SHARED, kernel.dynamic_bytes, function, device
            self._check(kernel, self._calls.status("cuKernelSetAttribute", *wanted))
            self._prepared.add((number, device))

    def _check(self, kernel: GridKernel, status: int) -> None:
        if status:
            raise failure(self._calls.name_of(status), launch_failed(kernel, self._calls.reason(status)))


class _Word:
    """Page-locked memory that all devices see at the address at which the process does."""

    def __init__(self, calls: Libcuda) -> None:
        self._calls = calls
        self._address = calls.handle("cuMemHostAlloc", ctypes.sizeof(ctypes.c_int32), _PORTABLE_AND_MAPPED)
        self._word = ctypes.c_int32.from_address(self._address)
        self._word.value = 0

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "_address") and not is_finalizing():
            with _relaxed(self._calls):
                self._calls.status("cuMemFreeHost", self._address)

    @property
    def address(self) -> int:
        return self._address

    def take(self) -> int:
        value = self._word.value
        if value:
            self._word.value = 0
        return value


class _Event:
    """An event of the driver."""

    def __init__(self, calls: Libcuda, *, timed: bool) -> None:
        self._calls = calls
        # An event ends with its context, which PyCUDA destroys with the last reference to it.
        self._context = cuda.Context.get_current()
        self.handle: Final = calls.handle("cuEventCreate", 0 if timed else _NO_TIMING)

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if hasattr(self, "handle") and not is_finalizing():
            self._calls.status("cuEventDestroy_v2", self.handle)

    def done(self) -> bool:
        with _relaxed(self._calls):
            status = self._calls.status("cuEventQuery", self.handle)
        if status == _NOT_READY:
            return False
        if status not in _GONE:  # whoever detached the context has waited for it
            self._calls.check(status)
        return True

    def seconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, _Event)
        milliseconds = ctypes.c_float()
        self._calls.call("cuEventElapsedTime", ctypes.byref(milliseconds), earlier.handle, self.handle)
        return milliseconds.value * 1e-3
