"""OpenCL through pyopencl: source to binary to launch, on the first device that there is.

Arrays of the caller are used where they are.  On a processor (PoCL) that is the memory that kernels work on; elsewhere
the driver copies them.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from tc.base.errors import CompileError, DeviceError
from tc.base.frozen import frozen
from tc.base.grid import Argument, GridKernel, Place, Steps, launches
from tc.base.types import Kind, ScalarType
from tc.runtime.host.binary import Binary
from tc.runtime.host.c_compiler import keep, kept_text

_INSTALL: Final = (
    "kernels need pyopencl and a driver, such as PoCL: "
    "pip install 'tensor-comprehensions[opencl]' pocl-binary-distribution"
)
STANDARD: Final = "-cl-std=CL1.2"
EXACT_DIVISION: Final = "-cl-fp32-correctly-rounded-divide-sqrt"


@frozen
class Device:
    """A device with a context and a queue of its own.

    ``version``: of the device and its driver.  ``threads``, ``shared``: the most work-items of a work-group, and bytes
    of local memory.
    """

    name: str
    version: str
    context: Any
    queue: Any
    flags: tuple[str, ...]
    threads: int
    shared: int


@functools.cache
def opencl_device() -> Device:
    """The first device of the first platform; DeviceError if there is none, or it lacks what kernels need."""
    cl = _load()
    try:
        devices = [device for platform in cl.get_platforms() for device in platform.get_devices()]
    except cl.Error as error:
        raise DeviceError(f"OpenCL finds no device ({error}); {_INSTALL}") from error
    if not devices:
        raise DeviceError(f"OpenCL finds no device; {_INSTALL}")
    device = devices[0]
    if "cl_khr_fp64" not in device.extensions:
        raise DeviceError(f"the OpenCL device {device.name!r} has no float64, which kernels may need; use another one")
    exact = device.single_fp_config & cl.device_fp_config.CORRECTLY_ROUNDED_DIVIDE_SQRT
    context = cl.Context([device])
    flags = (STANDARD, *((EXACT_DIVISION,) if exact else ()))
    name = device.name.strip()
    version = f"{name}, {device.version.strip()}, driver {device.driver_version.strip()}"
    room = (device.max_work_group_size, device.local_mem_size)
    return Device(name, version, context, cl.CommandQueue(context), flags, *room)


@functools.cache
def require_compiler() -> None:
    """DeviceError where the driver of the device compiles nothing, as those do that are older than the processor."""
    cl, device = _load(), opencl_device()
    try:
        cl.Program(device.context, "__kernel void nothing(void) {}").build(list(device.flags), cache_dir=False)
    except cl.Error as error:
        lines = [line.strip() for line in str(error).splitlines()]
        said = next((line for line in lines if line.startswith("error:")), lines[0])
        raise DeviceError(
            f"the driver of the OpenCL device {device.name!r} compiles nothing ({said}); install one that knows it"
        ) from error


@contextmanager
def compiling_opencl(source: str) -> Iterator[Callable[[], Binary]]:
    """Compiles beside the work in the block: what it gets waits for the binary.

    CompileError with the driver's log, and with the place where the source was kept; DeviceError where the driver
    compiles nothing.
    """
    with ThreadPoolExecutor(1) as executor:
        yield executor.submit(compile_opencl, source).result


def compile_opencl(source: str) -> Binary:
    """OpenCL C compiled for the device; errors are those of ``compiling_opencl``.  Safe from many threads."""
    cl, device = _load(), opencl_device()
    program = cl.Program(device.context, source)
    try:
        program.build(list(device.flags), cache_dir=False)
    except cl.Error as error:
        require_compiler()
        raise CompileError(
            f"the OpenCL compiler of {device.name!r} refused the generated source\n"
            f"{kept_text(keep(source, 'kernel.cl'))}\noptions: {' '.join(device.flags)}\n{str(error).strip()}"
        ) from error
    (binary,) = program.get_info(cl.program_info.BINARIES)
    return Binary(bytes(binary))


@frozen
class Extent:
    """The memory of a buffer: ``first``, where it begins, relative to the element whose subscripts are 0; in bytes."""

    first: int
    bytes: int
    writable: bool


class OpenClKernel:
    """Kernels of a program on the device, ready to run: safe to launch from any number of threads."""

    def __init__(
        self,
        binary: Binary,
        grids: Sequence[GridKernel],
        steps: Sequence[Steps],
        buffers: Sequence[Extent],
        temporaries: Sequence[int],
        scalars: Sequence[ScalarType],
    ) -> None:
        cl = _load()
        self._device = opencl_device()
        program = cl.Program(self._device.context, [self._device.context.devices[0]], [binary.code]).build()
        self._kernels = [(grid, cl.Kernel(program, grid.name)) for grid in grids]
        self._order = tuple(launches(len(grids), steps))
        self._buffers = tuple(buffers)
        self._temporaries = tuple(temporaries)
        self._scalars = tuple(scalars)
        # The arguments of a kernel are part of it.
        self._lock = threading.Lock()

    def launch(self, addresses: Sequence[int], scalars: Sequence[int | float], _threads: int) -> int:
        """Runs the kernels on buffers at ``addresses`` and returns their fault, 0 when there was none.

        Addresses and scalars come in the order of the program's, addresses of the elements whose subscripts are 0.
        """
        import numpy as np

        cl, device = _load(), self._device
        flags = cl.mem_flags
        fault = np.zeros(1, np.int32)
        given: dict[Argument, Any] = {
            Argument(Place.FAULT): cl.Buffer(device.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=fault)
        }
        written: list[tuple[Any, int]] = []
        for number, (address, extent) in enumerate(zip(addresses, self._buffers, strict=True)):
            host = (ctypes.c_char * max(extent.bytes, 1)).from_address(address + extent.first) if extent.bytes else None
            if host is None:
                given[Argument(Place.BUFFER, number)] = cl.Buffer(device.context, flags.READ_WRITE, 1)
                continue
            access = flags.READ_WRITE if extent.writable else flags.READ_ONLY
            buffer = cl.Buffer(device.context, access | flags.USE_HOST_PTR, hostbuf=host)
            given[Argument(Place.BUFFER, number)] = buffer
            if extent.writable:
                written.append((buffer, extent.bytes))
        for number, size in enumerate(self._temporaries):
            given[Argument(Place.TEMPORARY, number)] = cl.Buffer(device.context, flags.READ_WRITE, max(size, 1))
        for number, (value, type) in enumerate(zip(scalars, self._scalars, strict=True)):
            given[Argument(Place.SCALAR, number)] = np.dtype(_argument_type(type)).type(value)
        with self._lock:
            for number, own in self._order:
                grid, kernel = self._kernels[number]
                given |= {Argument(Place.STEP, depth): np.int32(value) for depth, value in enumerate(own)}
                kernel.set_args(*(given[argument] for argument in grid.arguments))
                threads = [blocks * size for blocks, size in zip(grid.grid, grid.block, strict=True)]
                cl.enqueue_nd_range_kernel(device.queue, kernel, threads, list(grid.block))
            cl.enqueue_copy(device.queue, fault, given[Argument(Place.FAULT)])
            for buffer, size in written:
                # Brings what was written to where the caller finds it.
                mapped, _ = cl.enqueue_map_buffer(device.queue, buffer, cl.map_flags.READ, 0, (size,), np.uint8)
                mapped.base.release(device.queue)
            device.queue.finish()
        return int(fault[0])


def _argument_type(type: ScalarType) -> str:
    """The type in which a scalar is passed: truth values are bytes, halves floats."""
    if type.kind is Kind.BOOLEAN:
        return "uint8"
    return "float32" if type.is_half else type.value


def _load() -> Any:
    try:
        import pyopencl
    except ImportError as error:
        raise DeviceError(f"pyopencl is not installed; {_INSTALL}") from error
    return pyopencl
