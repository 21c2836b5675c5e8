"""The CUDA driver as kernels need it, whichever package speaks to it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Final, NamedTuple, Protocol

from tc.base.counted import counted
from tc.base.errors import DeviceError, StickyDeviceError
from tc.base.frozen import frozen
from tc.base.grid import GridKernel
from tc.runtime.views.view import Stream

INSTALL: Final = "install one, for example by: pip install 'tensor-comprehensions[cuda]'"
# After these the context takes no more work (CUDA Driver API, the descriptions of ``CUresult``).
_STICKY: Final = frozenset(
    f"CUDA_ERROR_{name}"
    for name in (
        "ECC_UNCORRECTABLE",
        "NVLINK_UNCORRECTABLE",
        "CONTAINED",
        "ILLEGAL_ADDRESS",
        "LAUNCH_TIMEOUT",
        "ASSERT",
        "HARDWARE_STACK_ERROR",
        "ILLEGAL_INSTRUCTION",
        "MISALIGNED_ADDRESS",
        "INVALID_ADDRESS_SPACE",
        "INVALID_PC",
        "LAUNCH_FAILED",
        "TENSOR_MEMORY_LEAK",
        "MPS_CLIENT_TERMINATED",
        "EXTERNAL_DEVICE",
    )
)
# CU_LAUNCH_PARAM_END, _BUFFER_POINTER and _BUFFER_SIZE of cuda.h.
_END, _BUFFER, _SIZE = 0, 1, 2
_LIST: Final = struct.Struct("PPPPPN")
_WORD: Final = struct.calcsize("N")
_SPACE: Final = bytes(_LIST.size)
# Bytes of a device that stay with this process when arrays of ours go.
KEPT: Final = 256 << 20


@frozen
class CudaDevice:
    """One GPU: its name, and the major and minor number of its compute capability.

    ``clock``: the highest of its multiprocessors, in Hz.  ``memory`` and ``cache``, which all multiprocessors share, in
    bytes.
    """

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    clock: float
    memory: int
    cache: int


class Event(Protocol):
    """A point in the work of a stream."""

    def done(self) -> bool:
        """Whether the work before it has ended."""

    def seconds_since(self, earlier: Event) -> float:
        """Between two events that were recorded with their times and have happened; of the same driver."""


class SharedWord(Protocol):
    """A 32-bit integer in the memory of this machine that kernels of all devices can write; 0 at first."""

    @property
    def address(self) -> int:
        """Where kernels find it."""

    def take(self) -> int:
        """Its value; it is 0 from then on."""


class LoadedModule(Protocol):
    """The kernels of a binary, ready for every context."""

    def launch(self, number: int, arguments: bytes, stream: Stream, places: Sequence[int] = ()) -> None:
        """Starts kernel ``number`` in the current context.  ``arguments`` and ``places``: see ``Launch``.

        DeviceError with the launch configuration if the driver refuses.
        """


class Launch(NamedTuple):
    """Kernel ``number`` of a module, with its arguments as the kernel declares them, in C's layout.

    ``places``: where each argument begins, if the driver is to be given one at a time: it puts what is aligned to more
    than 16 bytes elsewhere than C does.
    """

    module: LoadedModule
    number: int
    arguments: bytes
    places: tuple[int, ...] = ()


class LaunchGraph(Protocol):
    """Launches that run one after the other, and that the driver is given all at once."""

    def change(self, place: int, arguments: bytes) -> None:
        """The arguments of the launch at a place among all, from the next run on."""

    def run(self, stream: Stream) -> None:
        """Starts all of them in the order of a stream of the context that it was made in, after earlier runs."""


class CudaDriver(Protocol):
    """What kernels, memory and clocks need.  Errors are DeviceError; safe from many threads."""

    @property
    def name(self) -> str:
        """Of the package."""

    def version(self) -> str:
        """Of CUDA, as the driver supports it: ``13.0``."""

    def devices(self) -> tuple[CudaDevice, ...]:
        """All that the process may use, by number."""

    def current_device(self) -> int:
        """That of the current context of this thread; 0 where it has none."""

    def on(self, device: int) -> AbstractContextManager[None]:
        """In the block, a context of the device is current: the one that is, else the primary one."""

    def device_of(self, address: int, /) -> int:
        """The device that holds the memory at an address."""

    def load(self, code: bytes, kernels: Sequence[GridKernel]) -> LoadedModule:
        """A binary whose kernels are to be launched like this."""

    @property
    def graphs(self) -> bool:
        """Whether it makes graphs."""

    def graph(self, launches: Sequence[Launch]) -> LaunchGraph:
        """The launches as a graph of the current context, which must not end before it."""

    def allocate(self, size: int, stream: Stream, /) -> int:
        """The address of memory for work on a stream of the current context; MemoryError if there is not enough."""

    def free(self, address: int, stream: Stream, /) -> None:
        """Gives memory back once the work that the stream was given so far has ended."""

    def copy_to_host(self, host: int, address: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""

    def copy_to_device(self, address: int, host: int, size: int) -> None:
        """Copies bytes, after all work of the current context, and waits."""

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Copies bytes of the device in the order of a stream of the current context."""

    def clear(self, address: int, size: int, stream: Stream) -> None:
        """Zeros in so many bytes, in the order of a stream of the current context."""

    def shared_word(self) -> SharedWord:
        """A new one; the current context may be any."""

    def record(self, stream: Stream, *, timed: bool = False) -> Event:
        """The end of what a stream of the current context was given so far."""

    def wait(self, stream: Stream, event: Event) -> None:
        """Further work of the stream begins after the event."""

    def captures(self, stream: Stream) -> bool:
        """Whether what a stream is given becomes part of a graph, and runs when that does.

        Also for the default stream while it can be given nothing, because such a stream would wait for it.
        """

    def synchronize(self, stream: Stream | None = None) -> None:
        """Waits for a stream of the current context, or for all of its work."""


def configuration(kernel: GridKernel) -> str:
    """How a kernel is launched, for errors."""
    grid, block = ("x".join(map(str, sizes)) for sizes in (kernel.grid, kernel.block))
    return (
        f"{kernel.name} (grid {grid}, block {block}, {counted(kernel.shared_bytes, 'byte')} of shared memory per block)"
    )


class PackedLaunch(NamedTuple):
    """Arguments as ``cuLaunchKernel`` takes them, for as long as ``memory`` is there.

    ``parameters``: the address of a list of addresses, one for each argument; or 0, and ``extra`` is the address of a
    list that says where they are, and how many bytes.
    """

    memory: ctypes.Array[ctypes.c_char]
    parameters: int
    extra: int


def packed_launch(arguments: bytes, places: Sequence[int] = ()) -> PackedLaunch:
    """The arguments of a launch; see ``Launch``.

    Kernels have their parameters in constant memory behind 528 bytes of ``sm_90``, which is no multiple of 64: the
    assembler leaves 48 bytes out before a parameter with that alignment, of which only the driver knows.
    """
    if places:
        room = _WORD * len(places)
        found = ctypes.create_string_buffer(bytes(room) + arguments, room + len(arguments))
        begin = ctypes.addressof(found)
        struct.pack_into(f"{len(places)}P", found, 0, *[begin + room + place for place in places])
        return PackedLaunch(found, begin, 0)
    found = ctypes.create_string_buffer(_SPACE + arguments, _LIST.size + len(arguments))
    begin = ctypes.addressof(found)
    behind = begin + _LIST.size
    _LIST.pack_into(found, 0, _BUFFER, behind, _SIZE, behind - _WORD, _END, len(arguments))
    return PackedLaunch(found, 0, begin)


def launch_failed(kernel: GridKernel, reason: str) -> str:
    """The message of an error at a launch."""
    return f"CUDA refused to run {configuration(kernel)}: {reason}"


def failure(name: str, said: str) -> DeviceError:
    """The error for a status of the driver, by its name in NVIDIA's manual."""
    if name in _STICKY:
        return StickyDeviceError(f"{said}; the device takes no more work from this process, start another one")
    return DeviceError(said)


def unreadable(version: str, reason: str) -> DeviceError:
    """The error for a binary of a later major version of CUDA than the driver's."""
    return DeviceError(
        f"the CUDA driver, which is for CUDA {version}, cannot read what the compiler made ({reason}); update the "
        "driver, or compile by NVRTC of its major version, for example: "
        "pip install 'cuda-bindings==12.9.*' nvidia-cuda-nvrtc-cu12"
    )
