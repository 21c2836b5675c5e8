"""Kernels on NVIDIA GPUs: loaded, and launched asynchronously on the caller's stream."""

from __future__ import annotations

import itertools
import struct
import threading
import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final, Protocol, assert_never

from tc.base.environment import environment
from tc.base.errors import ArgumentError, DeviceError, StickyDeviceError
from tc.base.frozen import frozen
from tc.base.grid import Argument, GridKernel, Place, Steps, TensorMap, launches
from tc.base.types import Kind, ScalarType
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda_driver import CudaDriver, Event, Launch
from tc.runtime.cuda.deferred_free import DEFERRED_FREE
from tc.runtime.cuda.recent_launches import RECENT_LAUNCHES
from tc.runtime.cuda.started import STARTED, StartedKernel
from tc.runtime.cuda.tensor_maps import MAP_BYTES, described
from tc.runtime.host.binary import Binary
from tc.runtime.views.view import CudaMemory, Stream
from tc.targets.machine import GPUS, GpuMachine
from tc.targets.multiprocessor import MULTIPROCESSORS

# Temporaries begin where any vector may.
_ALIGNMENT: Final = 256
_EMBEDDED: Final = ((8, 7), (11, 0))
# What the names of architectures end with whose binaries run on one capability only, and have instructions of its own.
_OWN: Final = "a"


def cuda_architecture(device: int | None = None) -> str:
    """The architecture that kernels for a device are compiled for, None for the current one: ``sm_90a``.

    Binaries run on every device of the same major number that is not older, but for those of embedded devices, which
    run nowhere else (CUDA C++ Programming Guide, "Binary Compatibility"), and those of ``sm_90a`` and ``sm_100a``.
    Of these, the first is taken, whose instructions of four warps kernels use; the other where it is asked for.
    DeviceError if there is no such device, or none of its kind is known.
    """
    number = device_number(device)
    found = cuda_driver().devices()[number]
    fitting = [name for name, machine in GPUS.items() if _runs(found.capability, name) and _used(name, machine)]
    if not fitting:
        major, minor = found.capability
        raise DeviceError(
            f"tc knows no architecture of device cuda:{number}, {found.name}, compute capability {major}.{minor}; "
            f"known: {', '.join(MULTIPROCESSORS)}"
        )
    return max(fitting, key=lambda name: (_capability(name), name))


def _used(architecture: str, machine: GpuMachine) -> bool:
    """Whether kernels use instructions that it has and the one without the ending has not, or it is that one."""
    return machine.warpgroups or not architecture.endswith(_OWN)


def device_number(device: int | None) -> int:
    """The number of a device, None for the current one; DeviceError if there is no such device."""
    driver = cuda_driver()
    count = len(driver.devices())
    number = driver.current_device() if device is None else device
    if not 0 <= number < count:
        raise DeviceError(f"there is no device cuda:{number}; this process has {count}, numbered from 0")
    return number


def check_cuda_device(architecture: str, device: int) -> None:
    """DeviceError unless the device runs binaries for an architecture."""
    found = cuda_driver().devices()[device]
    if not _runs(found.capability, architecture):
        major, minor = found.capability
        raise DeviceError(
            f"a kernel for {architecture} does not run on cuda:{device}, {found.name}, compute capability "
            f"{major}.{minor}; compile it for 'cuda:{cuda_architecture(device)}'"
        )


def _capability(architecture: str) -> tuple[int, int]:
    number = int(architecture.removeprefix("sm_").removesuffix(_OWN))
    return number // 10, number % 10


def _runs(device: tuple[int, int], architecture: str) -> bool:
    major, minor = _capability(architecture)
    if device in _EMBEDDED or (major, minor) in _EMBEDDED or architecture.endswith(_OWN):
        return device == (major, minor)
    return major == device[0] and minor <= device[1]


@frozen
class _Launch:
    """How the arguments of one kernel are packed: which of all values, and in which layout; behind the ``maps``.

    ``places``: see ``Launch``.
    """

    pack: Callable[..., bytes]
    numbers: tuple[int, ...]
    maps: tuple[TensorMap, ...]
    places: tuple[int, ...]


class CudaKernel:
    """Kernels of a program, ready for every device that runs them: safe to launch from any number of threads.

    ``name``: of the definition, for errors.  ``architecture``: what the binary is for.  ``temporaries``: bytes of each.
    ``checks``: whether it may find faults in its arguments.
    ``report``: raises the error for a fault.
    """

    def __init__(
        self,
        name: str,
        architecture: str,
        binary: Binary,
        grids: Sequence[GridKernel],
        steps: Sequence[Steps],
        operands: int,
        temporaries: Sequence[int],
        scalars: Sequence[ScalarType],
        report: Callable[[int], None],
    ) -> None:
        self._driver: Final = cuda_driver()
        self._name = name
        self._architecture = architecture
        self._devices: set[int] = set()
        self._binary = binary
        self._grids = tuple(grids)
        self._order = tuple(launches(len(grids), steps))
        self._offsets, self.workspace = _side_by_side(temporaries)
        self._launches = tuple(_launch(grid, operands, len(temporaries), scalars) for grid in grids)
        self.checks: Final = any(argument.place is Place.FAULT for grid in grids for argument in grid.arguments)
        self._report = report
        self._lock = threading.Lock()
        self._loaded: StartedKernel | None = None

    def launch(
        self,
        addresses: Sequence[int],
        workspace: int,
        scalars: Sequence[int | float],
        memory: CudaMemory,
        after: Sequence[Stream],
        leases: Sequence[object],
    ) -> None:
        """Starts the kernels on buffers at ``addresses`` and temporaries at ``workspace``, and does not wait.

        Streams in ``after``, ``leases`` and graphs are treated as by ``in_order``.  Raises what earlier calls found in
        their arguments; with ``TC_SYNC``, it waits and raises what this one finds, unless it is for a graph.
        """
        with self._driver.on(memory.device):
            started = self._started(memory.device)
            started.raise_fault()

            def start(*, captured: bool) -> None:
                started.captured |= captured
                self._start(self._given(started, addresses, workspace, scalars), memory)

            captured = in_order(self._driver, self._name, memory.stream, after, leases, start)
            if environment().sync and not captured:
                with RECENT_LAUNCHES.waited(memory.device):
                    self._driver.synchronize(memory.stream)
                self.raise_fault()

    def launches(self, addresses: Sequence[int], workspace: int, device: int) -> tuple[Launch, ...]:
        """What ``launch`` starts on a device, whose context is current, as data.  It takes no scalars."""
        return tuple(self._given(self._started(device), addresses, workspace, ()))

    @property
    def recent(self) -> tuple[tuple[str, GridKernel], ...]:
        """What ``launch`` starts, as errors that come later name it."""
        return tuple((self._name, self._grids[number]) for number, _ in self._order)

    def _given(
        self, started: StartedKernel, addresses: Sequence[int], workspace: int, scalars: Sequence[int | float]
    ) -> Iterator[Launch]:
        word = 0 if started.fault is None else started.fault.address
        values = (*addresses, *[workspace + offset for offset in self._offsets], *scalars, word)
        for number, step in self._order:
            launch, given = self._launches[number], (*values, *step)
            maps = [described(own, addresses[own.operand]) for own in launch.maps]
            arguments = launch.pack(*maps, *[given[n] for n in launch.numbers])
            yield Launch(started.module, number, arguments, launch.places)

    def _start(self, launches: Iterator[Launch], memory: CudaMemory) -> None:
        try:
            for launch in launches:
                launch.module.launch(launch.number, launch.arguments, memory.stream, launch.places)
                RECENT_LAUNCHES.add(memory.device, self._name, self._grids[launch.number])
        except StickyDeviceError as error:  # which is that of earlier ones
            raise RECENT_LAUNCHES.naming(error, memory.device) from error

    def raise_fault(self) -> None:
        """Raises what calls that have ended found in their arguments."""
        if self._loaded is not None:
            self._loaded.raise_fault()

    def _started(self, device: int) -> StartedKernel:
        if device not in self._devices:
            check_cuda_device(self._architecture, device)
            self._devices.add(device)
        return self._ready()

    def _ready(self) -> StartedKernel:
        found = self._loaded
        if found is None:
            with self._lock:
                found = self._loaded
                if found is None:
                    module = self._driver.load(self._binary.code, self._grids)
                    word = self._driver.shared_word() if self.checks else None
                    found = StartedKernel(weakref.ref(self), module, word, self._report, self._devices)
                    STARTED.add(found)
                    self._loaded = found
        return found


def _side_by_side(sizes: Sequence[int]) -> tuple[tuple[int, ...], int]:
    """Where each block of memory begins in one that holds them all, and how large that is."""
    offsets, size = [], 0
    for own in sizes:
        offsets.append(size)
        size += -(-own // _ALIGNMENT) * _ALIGNMENT
    return tuple(offsets), size


def _launch(grid: GridKernel, operands: int, temporaries: int, scalars: Sequence[ScalarType]) -> _Launch:
    """All values are operands, temporaries, scalars, the place for faults and the steps, in this order."""
    first = {Place.BUFFER: 0, Place.TEMPORARY: operands, Place.SCALAR: operands + temporaries}
    first[Place.FAULT] = operands + temporaries + len(scalars)
    first[Place.STEP] = first[Place.FAULT] + 1
    # Descriptions of tensors come first, where they begin at multiples of their size.
    others = grid.arguments[len(grid.maps) :]
    numbers = tuple(first[argument.place] + argument.number for argument in others)
    formats = [f"{MAP_BYTES}s"] * len(grid.maps) + [_format(argument, scalars) for argument in others]
    # Maps alone are aligned to more than 16 bytes.
    ends = itertools.accumulate(formats)
    places = tuple(struct.calcsize(end) - struct.calcsize(own) for end, own in zip(ends, formats, strict=True))
    return _Launch(struct.Struct("".join(formats)).pack, numbers, grid.maps, places if grid.maps else ())


def _format(argument: Argument, scalars: Sequence[ScalarType]) -> str:
    """The format of an argument, as the struct module calls it; kernels compute with halves as with float32."""
    if argument.place is Place.STEP:
        return "i"
    if argument.place is not Place.SCALAR:
        return "P"
    type = scalars[argument.number]
    match type.kind:
        case Kind.BOOLEAN:
            return "?"
        case Kind.SIGNED:
            return {1: "b", 2: "h", 4: "i", 8: "q"}[type.itemsize]
        case Kind.UNSIGNED:
            return {1: "B", 2: "H", 4: "I", 8: "Q"}[type.itemsize]
        case Kind.FLOATING:
            return "d" if type is ScalarType.FLOAT64 else "f"
        case _:
            assert_never(type.kind)


class InFlight:
    """What kernels that may still run read and write."""

    def __init__(self) -> None:
        # Finalizers come here too, at any time.
        self._lock = threading.RLock()
        self._kept: deque[tuple[Event, tuple[object, ...]]] = deque()

    def keep(self, event: Event, leases: Sequence[object]) -> None:
        """Keeps objects until the event has happened, and lets go of those whose time has come."""
        with self._lock:
            self._kept.append((event, tuple(leases)))
        self.purge()

    def purge(self) -> None:
        """Lets go of objects whose time has come."""
        with self._lock:
            gone = []
            while self._kept and self._kept[0][0].done():
                gone.append(self._kept.popleft())
        # Outside of the lock: what goes may run code of its own.
        del gone


# Of this process.
IN_FLIGHT: Final = InFlight()


class Start(Protocol):
    """What gives a stream work."""

    def __call__(self, *, captured: bool) -> None:
        """``captured``: the stream captures it for a graph, which may run it at any time."""


def in_order(
    driver: CudaDriver, name: str, stream: Stream, after: Sequence[Stream], leases: Sequence[object], start: Start
) -> bool:
    """Starts work after what the streams in ``after`` were given so far, and before what these are given next.

    ``leases`` are kept until it has run.  For a graph nothing waits and nothing is kept: its owner says when and how
    often it runs.  Returns whether it is for one.  ArgumentError, naming whose work it is, if a stream in ``after``
    captures, and the own one does not.
    """
    # The default stream cannot capture.
    if stream.handle and driver.captures(stream):
        start(captured=True)
        return True
    if any(other.handle and driver.captures(other) for other in after):
        raise ArgumentError(
            f"{name}: some arrays are ready on a stream that captures a graph, and others on another one, which would "
            "end the capture; call it in `with tc.on_stream(...)` of the stream that captures"
        )
    for other in after:
        driver.wait(stream, driver.record(other))
    try:
        start(captured=False)
    finally:  # some of it may have started
        if after or leases:
            event = driver.record(stream)
            for other in after:
                driver.wait(other, event)
            if leases:
                IN_FLIGHT.keep(event, leases)
    return False


def synchronize_cuda(device: int | None) -> None:
    """Waits for the work of a device, None for the current one; raises what kernels found in their arguments."""
    wait_for_device(device_number(device))
    STARTED.raise_faults()


def wait_for_device(device: int) -> None:
    """Waits for the work of a device, and lets go of what was kept for it."""
    with waiting(device) as driver:
        driver.synchronize()


@contextmanager
def waiting(device: int) -> Iterator[CudaDriver]:
    """The block, in a context of a device, waits for all of its work; what was kept for that is let go of then.

    Errors name the kernels that may have caused them.
    """
    driver = cuda_driver()
    with driver.on(device), DEFERRED_FREE.settled(device), STARTED.waited(device), RECENT_LAUNCHES.waited(device):
        yield driver
        IN_FLIGHT.purge()
