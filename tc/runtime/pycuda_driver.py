"""The CUDA driver through PyCUDA, for processes that use it.  Imported where a kernel is to run on a GPU.

PyCUDA launches on the default stream and on streams that it made itself; those of others are refused.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from tc.errors import DeviceError, StickyDeviceError
from tc.grid import GridKernel
from tc.runtime.cuda_driver import CudaDevice, Event, LoadedModule, launch_failed
from tc.runtime.view import Stream

try:
    import pycuda.driver as cuda
except ImportError as error:
    raise DeviceError(
        f"TC_CUDA_RUNTIME asks for PyCUDA, which cannot be imported ({error}); "
        "install it, for example by: pip install 'tensor-comprehensions[pycuda]'"
    ) from error


@contextmanager
def _translated(said: str = "the CUDA driver failed") -> Iterator[None]:
    """Errors of PyCUDA in the block as ours."""
    try:
        yield
    except cuda.MemoryError as error:
        raise MemoryError(f"the CUDA device has not enough memory left ({error})") from error
    except cuda.Error as error:
        message = f"{said}: {error}"
        if _is_broken():
            raise StickyDeviceError(
                f"{message}; the device takes no more work from this process, start another one"
            ) from error
        raise DeviceError(message) from error


def _is_broken() -> bool:
    """Whether the current context takes no more work: then waiting for it fails, too."""
    if cuda.Context.get_current() is None:
        return False
    try:
        cuda.Context.synchronize()
    except cuda.Error:
        return True
    return False


class PycudaDriver:
    """``CudaDriver`` by PyCUDA."""

    name: Final = "pycuda"

    def __init__(self) -> None:
        with _translated("PyCUDA finds no device"):
            cuda.init()
            self._devices = tuple(map(_device, range(cuda.Device.count())))
        # Finalizers come here too, at any time.
        self._lock = threading.RLock()
        # PyCUDA's contexts belong to the threads that made them.
        self._own = threading.local()
        self._memory: dict[int, tuple[Any, int]] = {}
        # What other threads gave back of a thread's memory: PyCUDA frees it nowhere else.
        self._returned: dict[int, list[Any]] = {}

    def version(self) -> str:
        number = cuda.get_driver_version()
        return f"{number // 1000}.{number % 1000 // 10}"

    def devices(self) -> tuple[CudaDevice, ...]:
        return self._devices

    def current_device(self) -> int:
        if cuda.Context.get_current() is None:
            return 0
        current = cuda.Context.get_device()
        return next(number for number in range(len(self._devices)) if cuda.Device(number) == current)

    @contextmanager
    def on(self, device: int) -> Iterator[None]:
        if cuda.Context.get_current() is not None and self.current_device() == device:
            yield
            return
        with _translated():
            self._primary_context(device).push()
        try:
            yield
        finally:
            cuda.Context.pop()

    def _primary_context(self, device: int) -> Any:
        contexts: dict[int, Any] = self._own.__dict__.setdefault("contexts", {})
        if device not in contexts:
            contexts[device] = cuda.Device(device).retain_primary_context()
        return contexts[device]

    def device_of(self, _address: int) -> int:
        # PyCUDA asks for no attribute of an address; its arrays live in the context in which they are used.
        return self.current_device()

    def load(self, code: bytes, kernels: Sequence[GridKernel]) -> LoadedModule:
        return _Module(code, kernels)

    def allocate(self, size: int, _stream: Stream) -> int:
        here = threading.get_ident()
        with self._lock:
            returned = self._returned.pop(here, [])
        with _translated():
            for memory in returned:
                memory.free()
            memory = cuda.mem_alloc(max(size, 1))
        with self._lock:
            self._memory[int(memory)] = memory, here
        return int(memory)

    def free(self, address: int, _stream: Stream) -> None:
        with self._lock:
            memory, owner = self._memory.pop(address)
            if owner != threading.get_ident():
                self._returned.setdefault(owner, []).append(memory)
                return
        # This waits for all work of the device.
        with _translated():
            memory.free()

    def copy_to_host(self, host: int, address: int, size: int) -> None:
        with _translated():
            cuda.Context.synchronize()
            cuda.memcpy_dtoh((ctypes.c_char * size).from_address(host), address)

    def copy_to_device(self, address: int, host: int, size: int) -> None:
        with _translated():
            cuda.Context.synchronize()
            cuda.memcpy_htod(address, (ctypes.c_char * size).from_address(host))
            cuda.Context.synchronize()

    def clear(self, address: int, size: int, stream: Stream) -> None:
        own = _own(stream)
        with _translated():
            if own is None:
                cuda.memset_d8(address, 0, size)
            else:
                cuda.memset_d8_async(address, 0, size, own)

    def shared_word(self) -> _Word:
        flags = cuda.host_alloc_flags.PORTABLE | cuda.host_alloc_flags.DEVICEMAP
        with _translated():
            return _Word(cuda.pagelocked_empty((1,), np.int32, mem_flags=flags))

    def record(self, stream: Stream, *, timed: bool = False) -> _Event:
        with _translated():
            event = cuda.Event(0 if timed else cuda.event_flags.DISABLE_TIMING)
            return _Event(event.record(_own(stream)))

    def wait(self, stream: Stream, event: Event) -> None:
        assert isinstance(event, _Event)
        with _translated():
            if isinstance(stream.owner, cuda.Stream):
                stream.owner.wait_for_event(event.handle)
            else:  # PyCUDA has no call by which the default stream waits, or one of others
                event.handle.synchronize()

    def captures(self, _stream: Stream) -> bool:
        # PyCUDA makes no graphs, and launches on streams of its own only.
        return False

    def synchronize(self, stream: Stream | None = None) -> None:
        own = None if stream is None else _own(stream)
        with _translated():
            if own is None:
                cuda.Context.synchronize()
            else:
                own.synchronize()


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


def _own(stream: Stream) -> Any:
    """PyCUDA's stream; None for the default one."""
    if isinstance(stream.owner, cuda.Stream) or not stream.handle:
        return stream.owner if stream.handle else None
    raise DeviceError(
        f"PyCUDA cannot launch on stream {stream.handle:#x}, which another framework made; "
        "use the default stream, or set TC_CUDA_RUNTIME=cuda-bindings"
    )


class _Module:
    """A binary, loaded once per context."""

    def __init__(self, code: bytes, kernels: Sequence[GridKernel]) -> None:
        self._code = code
        self._kernels = tuple(kernels)
        self._lock = threading.Lock()
        # With the context and the module, so that neither goes and gives its address to another one.
        self._loaded: dict[int, tuple[Any, Any, tuple[Any, ...]]] = {}

    def launch(self, number: int, arguments: bytes, stream: Stream) -> None:
        kernel, own = self._kernels[number], _own(stream)
        function = self._functions()[number]
        with _translated(launch_failed(kernel, "").removesuffix(": ")):
            function._launch_kernel(kernel.grid, kernel.block, arguments, kernel.dynamic_bytes, own)

    def _functions(self) -> tuple[Any, ...]:
        context = cuda.Context.get_current()
        with self._lock:
            if context.handle not in self._loaded:
                with _translated():
                    module = cuda.module_from_buffer(self._code)
                    functions = tuple(_function(module, kernel) for kernel in self._kernels)
                self._loaded[context.handle] = context, module, functions
            return self._loaded[context.handle][2]


def _function(module: Any, kernel: GridKernel) -> Any:
    function = module.get_function(kernel.name)
    if kernel.dynamic_bytes:
        function.set_attribute(cuda.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, kernel.dynamic_bytes)
    return function


class _Word:
    """Page-locked memory that the device sees at an address of its own."""

    def __init__(self, memory: Any) -> None:
        memory[0] = 0
        self._memory = memory
        self._address = int(memory.base.get_device_pointer())

    @property
    def address(self) -> int:
        return self._address

    def take(self) -> int:
        value = int(self._memory[0])
        if value:
            self._memory[0] = 0
        return value


class _Event:
    """An event of PyCUDA."""

    def __init__(self, handle: Any) -> None:
        self.handle = handle

    def done(self) -> bool:
        with _translated():
            return bool(self.handle.query())

    def seconds_since(self, earlier: Event) -> float:
        assert isinstance(earlier, _Event)
        with _translated():
            return float(self.handle.time_since(earlier.handle)) * 1e-3
