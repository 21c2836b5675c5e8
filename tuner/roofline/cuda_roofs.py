"""Roofs of a GPU (peak bandwidth and arithmetic), measured by a few kernels in CUDA C++."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tc.base.frozen import frozen
from tc.base.grid import GridKernel
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import cuda_architecture, device_number
from tc.runtime.cuda.cuda_driver import CudaDriver, LoadedModule
from tc.runtime.cuda.nvrtc import compile_cuda
from tc.runtime.views.view import DEFAULT_STREAM
from tc.tuner.roofline.roofline import Bandwidth, Roofs
from tc.tuner.trial.cuda_clock import event_times

_CHAINS: Final = 12  # as in cuda_roofs.cu
_THREADS: Final = 256
# As many blocks as multiprocessors run at a time: 2,048 threads each.
_RESIDENT: Final = 8
_MULTIPLY_ADD, _READ, _COPY, _NOTHING = range(4)
# Rounds of a call of the first: a few milliseconds.
ROUNDS: Final = 1 << 16
# Bytes that are read, or of which the first half is copied onto the second: more than any cache has.
_BYTES: Final = 1 << 30
# They are at most this part of the device's memory.
_PART: Final = 8
_REPETITIONS: Final = 10
# For launches, which are many.
_LAUNCHING_SECONDS: Final = 0.05


@frozen
class RoofKernels:
    """The kernels, on the default stream of a device, with memory to work on."""

    driver: CudaDriver
    module: LoadedModule
    blocks: int
    memory: int
    size: int

    def multiply_add(self) -> None:
        """Chains in every thread."""
        arguments = struct.pack("@Pqff", self.memory, ROUNDS, 0.5, 1.0)
        self.module.launch(_MULTIPLY_ADD, arguments, DEFAULT_STREAM)

    @property
    def operations(self) -> float:
        """Of ``multiply_add``."""
        return 2.0 * ROUNDS * _CHAINS * self.blocks * _THREADS

    def read(self) -> None:
        """All of the memory."""
        self.module.launch(_READ, struct.pack("@PPq", self.memory, self.memory, self.size // 16), DEFAULT_STREAM)

    def copy(self) -> None:
        """Half of the memory, onto the other half."""
        half = self.size // 2
        self.module.launch(_COPY, struct.pack("@PPq", self.memory + half, self.memory, half // 16), DEFAULT_STREAM)

    def nothing(self) -> None:
        """A launch of as many threads."""
        self.module.launch(_NOTHING, struct.pack("@P", self.memory), DEFAULT_STREAM)

    def seconds(self, work: Callable[[], None]) -> float:
        """Of the quickest of several calls."""
        times: list[float] = []
        for _ in range(_REPETITIONS):
            begin = self.driver.record(DEFAULT_STREAM, timed=True)
            work()
            end = self.driver.record(DEFAULT_STREAM, timed=True)
            self.driver.synchronize(DEFAULT_STREAM)
            times.append(end.seconds_since(begin))
        return min(times)


@contextmanager
def roof_kernels(device: int = 0) -> Iterator[RoofKernels]:
    """The kernels for a device whose context is current in the block; DeviceError without one, or without NVRTC."""
    driver = cuda_driver()
    described = driver.devices()[device_number(device)]
    blocks, size = _RESIDENT * described.multiprocessors, min(_BYTES, described.memory // _PART)
    source = (Path(__file__).parent / "cuda_roofs.cu").read_text(encoding="utf-8")
    binary = compile_cuda(source, cuda_architecture(device))
    names = ("tc_multiply_add", "tc_read", "tc_copy", "tc_nothing")
    grids = [GridKernel(name, (blocks, 1, 1), (_THREADS, 1, 1), 0, ()) for name in names]
    with driver.on(device):
        module = driver.load(binary.code, grids)
        memory = driver.allocate(size, DEFAULT_STREAM)
        try:
            driver.clear(memory, size, DEFAULT_STREAM)
            yield RoofKernels(driver, module, blocks, memory, size)
        finally:
            driver.free(memory, DEFAULT_STREAM)


def measure_cuda_roofs(device: int = 0) -> Roofs:
    """Takes a fraction of a second.  Memory has one bandwidth: the caches are taken to be cold.

    DeviceError without a device, or without NVRTC.
    """
    with roof_kernels(device) as kernels:
        operations = kernels.operations / kernels.seconds(kernels.multiply_add)
        read, copied = (kernels.size / kernels.seconds(work) for work in (kernels.read, kernels.copy))
        bandwidth = Bandwidth(kernels.size, read, copied)
        launch = min(event_times(kernels.nothing, _LAUNCHING_SECONDS, device=device))
    # New memory comes from the framework's allocator, which does not clear it.
    return Roofs(operations, (bandwidth,), fresh=copied, launch=launch)
