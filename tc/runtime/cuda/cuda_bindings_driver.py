"""The CUDA driver through NVIDIA's cuda-bindings.  Imported where a kernel is to run on a GPU."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Final

from tc.base.errors import DeviceError
from tc.base.grid import GridKernel
from tc.runtime.cuda.cuda_bindings_calls import checked, cuda, reason, relaxed
from tc.runtime.cuda.cuda_bindings_modules import Graph, Module
from tc.runtime.cuda.cuda_driver import KEPT, CudaDevice, Event, Launch, LaunchGraph, LoadedModule, unreadable
from tc.runtime.views.view import Stream

_STATUS: Final = cuda.CUresult
_OUT_OF_MEMORY: Final = _STATUS.CUDA_ERROR_OUT_OF_MEMORY
_NOT_READY: Final = _STATUS.CUDA_ERROR_NOT_READY
_IMPLICIT: Final = _STATUS.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
# Binaries of a later major version of CUDA than the driver's.
_UNREADABLE: Final = frozenset(
    getattr(_STATUS, f"CUDA_ERROR_{name}") for name in ("INVALID_IMAGE", "NO_BINARY_FOR_GPU", "INVALID_SOURCE")
)
_NOT_CAPTURED: Final = cuda.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_NONE
_THRESHOLD: Final = cuda.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
_NO_TIMING: Final = int(cuda.CUevent_flags.CU_EVENT_DISABLE_TIMING)
_PORTABLE: Final = cuda.CU_MEMHOSTALLOC_PORTABLE | cuda.CU_MEMHOSTALLOC_DEVICEMAP
_ORDINAL: Final = cuda.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
_MAJOR: Final = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
_MINOR: Final = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
_MULTIPROCESSORS: Final = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
_KILOHERTZ: Final = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_CLOCK_RATE
_CACHE: Final = cuda.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE
_AS_IT_IS: Final = nullcontext()


class BindingsDriver:
    """``CudaDriver`` by cuda-bindings."""

    name: Final = "cuda-bindings"
    graphs: Final = True

    def __init__(self) -> None:
        try:
            status, *_ = cuda.cuInit(0)
        except RuntimeError as error:
            raise DeviceError(f"the CUDA driver cannot be loaded ({error})") from error
        if status == _STATUS.CUDA_ERROR_NO_DEVICE:
            raise DeviceError("the CUDA driver finds no device; look at nvidia-smi and CUDA_VISIBLE_DEVICES")
        checked((status,))
        # Finalizers come here too, at any time.
        self._lock = threading.RLock()
        self._primary: dict[int, Any] = {}
        self._pools: dict[int, Any] = {}
        self._devices = tuple(map(_device, range(checked(cuda.cuDeviceGetCount()))))

    def version(self) -> str:
        """Of CUDA, as the driver supports it: ``13.0``."""
        number = checked(cuda.cuDriverGetVersion())
        return f"{number // 1000}.{number % 1000 // 10}"

    def devices(self) -> tuple[CudaDevice, ...]:
        """All that the process may use, by number."""
        return self._devices

    def current_device(self) -> int:
        """That of the current context of this thread; 0 where it has none."""
        return _current() or 0

    def on(self, device: int) -> AbstractContextManager[None]:
        """In the block, a context of the device is current: the one that is, else the primary one."""
        return _AS_IT_IS if _current() == device else _Pushed(self._primary_context(device))

    def _primary_context(self, device: int) -> Any:
        with self._lock:
            if device not in self._primary:
                self._primary[device] = checked(cuda.cuDevicePrimaryCtxRetain(device))
            return self._primary[device]

    def device_of(self, address: int) -> int:
        """The device that holds the memory at an address."""
        return int(checked(cuda.cuPointerGetAttribute(_ORDINAL, address)))

    def load(self, code: bytes, kernels: Sequence[GridKernel]) -> LoadedModule:
        """A binary whose kernels are to be launched like this."""
        with relaxed():
            status, library = cuda.cuLibraryLoadData(code, [], [], 0, [], [], 0)
        if status in _UNREADABLE:
            raise unreadable(self.version(), reason(status))
        return Module(checked((status, library)), kernels)

    def graph(self, launches: Sequence[Launch]) -> LaunchGraph:
        """The launches as a graph of the current context."""
        return Graph(launches)

    def allocate(self, size: int, stream: Stream) -> int:
        """The address of memory for work on a stream of the current context; MemoryError if there is not enough."""
        pool = self._pool(self.current_device())
        status, address = cuda.cuMemAllocFromPoolAsync(max(size, 1), pool, stream.handle)
        if status == _OUT_OF_MEMORY:
            raise MemoryError(f"the CUDA device has no {size} bytes left")
        return int(checked((status, address)))

    def _pool(self, device: int) -> Any:
        """A pool that keeps some memory: the driver's own pool returns all of it at every synchronization."""
        with self._lock:
            if device not in self._pools:
                wanted = cuda.CUmemPoolProps()
                wanted.allocType = cuda.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
                wanted.location.type = cuda.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
                wanted.location.id = device
                with relaxed():
                    pool = checked(cuda.cuMemPoolCreate(wanted))
                checked(cuda.cuMemPoolSetAttribute(pool, _THRESHOLD, cuda.cuuint64_t(KEPT)))
                self._pools[device] = pool
            return self._pools[device]

    def free(self, address: int, stream: Stream) -> None:
        """Gives memory back once the work that the stream was given so far has ended."""
        with relaxed():
            checked(cuda.cuMemFreeAsync(address, stream.handle))

    def copy_to_host(self, host: int, address: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""
        self.synchronize()
        checked(cuda.cuMemcpyDtoH(host, address, size))

    def copy_to_device(self, address: int, host: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""
        self.synchronize()
        checked(cuda.cuMemcpyHtoD(address, host, size))
        self.synchronize()

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Copies bytes of the device in the order of a stream of the current context."""
        checked(cuda.cuMemcpyDtoDAsync(target, source, size, stream.handle))

    def clear(self, address: int, size: int, stream: Stream) -> None:
        """Zeros in so many bytes, in the order of a stream of the current context."""
        checked(cuda.cuMemsetD8Async(address, 0, size, stream.handle))

    def shared_word(self) -> _Word:
        """A new one; the current context may be any."""
        with relaxed():
            return _Word(int(checked(cuda.cuMemHostAlloc(ctypes.sizeof(ctypes.c_int32), _PORTABLE))))

    def record(self, stream: Stream, *, timed: bool = False) -> _Event:
        """The end of what a stream of the current context was given so far."""
        event = _Event(checked(cuda.cuEventCreate(0 if timed else _NO_TIMING)))
        checked(cuda.cuEventRecord(event.handle, stream.handle))
        return event

    def wait(self, stream: Stream, event: Event) -> None:
        """Further work of the stream begins after the event."""
        assert isinstance(event, _Event)
        checked(cuda.cuStreamWaitEvent(stream.handle, event.handle, 0))

    def captures(self, stream: Stream) -> bool:
        """Whether what a stream is given becomes part of a graph, and runs when that does.

        Also for the default stream while it can be given nothing, because such a stream would wait for it.
        """
        status, state = cuda.cuStreamIsCapturing(stream.handle)
        # The default stream is asked for while one captures that it would wait for.
        return status == _IMPLICIT or (not status and state != _NOT_CAPTURED)

    def synchronize(self, stream: Stream | None = None) -> None:
        """Waits for a stream of the current context, or for all of its work."""
        checked(cuda.cuCtxSynchronize() if stream is None else cuda.cuStreamSynchronize(stream.handle))


class _Pushed:
    """A context that is current in a block, and not the one that was; for one block."""

    def __init__(self, context: Any) -> None:
        self._context = context

    def __enter__(self) -> None:
        checked(cuda.cuCtxPushCurrent(self._context))

    def __exit__(self, *_: object) -> None:
        cuda.cuCtxPopCurrent()


def _current() -> int | None:
    """The device of this thread's context; None without one, where asking for its device would be a failed call."""
    _, context = cuda.cuCtxGetCurrent()
    return int(checked(cuda.cuCtxGetDevice())) if int(context) else None


def _device(number: int) -> CudaDevice:
    device = checked(cuda.cuDeviceGet(number))
    name = checked(cuda.cuDeviceGetName(256, device)).partition(b"\0")[0].decode(errors="replace")
    wanted = (_MAJOR, _MINOR, _MULTIPROCESSORS, _KILOHERTZ, _CACHE)
    major, minor, count, clock, cache = (int(checked(cuda.cuDeviceGetAttribute(which, device))) for which in wanted)
    return CudaDevice(name, (major, minor), count, 1e3 * clock, int(checked(cuda.cuDeviceTotalMem(device))), cache)


class _Word:
    """Page-locked memory that all devices see at the address at which the process does."""

    def __init__(self, address: int) -> None:
        self._address = address
        self._word = ctypes.c_int32.from_address(address)
        self._word.value = 0

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            with relaxed():
                cuda.cuMemFreeHost(self._address)

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

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def __del__(self, is_finalizing: Callable[[], bool] = sys.is_finalizing) -> None:
        if not is_finalizing():
            cuda.cuEventDestroy(self.handle)

    def done(self) -> bool:
        with relaxed():
            (status,) = cuda.cuEventQuery(self.handle)
        if status == _NOT_READY:
            return False
        checked((status,))
        return True

    def seconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, _Event)
        return float(checked(cuda.cuEventElapsedTime(earlier.handle, self.handle))) * 1e-3
