"""``Rates``: what a machine does in a second, about; for deciding before anything is measured."""

from __future__ import annotations

from typing import Final, assert_never

from tc.base.frozen import frozen
from tc.targets.machine import GENERIC_GPU, GpuMachine
from tc.targets.target import CpuTarget, CudaTarget, EmulatorTarget, OpenClTarget, Target

# Of a core: two vector multiply-adds in each of so many cycles a second, of which kernels reach this part.  A core of
# two with vectors of 64 bytes was measured to do 110e9 operations a second.
_CYCLES: Final = 2.5e9
_MULTIPLY_ADDS: Final = 2
_REACHED: Final = 0.7
_FLOAT: Final = 4
# Bytes per second between a core and values that were just written, which its caches have in part.
_CORE_BYTES: Final = 20e9
# Seconds of a call from Python: arrays are looked at, and threads are woken.
_CALL: Final = 3e-6
# The same of a multiprocessor of a GPU (*CUDA Programming Guide*: 128 multiply-adds a cycle; whitepapers of A100 and
# H100: 1.6e12 and 3.3e12 bytes a second for 108 and 132 multiprocessors), and of a launch.
_LANES: Final = 128
_GPU_CYCLES: Final = 1.5e9
_MULTIPROCESSOR_BYTES: Final = 15e9
_LAUNCH: Final = 4e-6


@frozen
class Rates:
    """``operations`` and ``bytes`` per second, and seconds of a ``call`` that does nothing."""

    operations: float
    bytes: float
    call: float

    def seconds(self, operations: int, moved: int) -> float:
        """What a kernel takes: arithmetic goes on while memory is read and written."""
        return max(operations / self.operations, moved / self.bytes) + self.call


def rates_of(target: Target, cores: int) -> Rates:
    """The rates of a target; ``cores``: of this machine, for targets that run on its processor."""
    match target:
        case CpuTarget():
            lanes = target.vector_bytes // _FLOAT
            each = 2 * _MULTIPLY_ADDS * lanes * _CYCLES * _REACHED
            return Rates(cores * each, cores * _CORE_BYTES, _CALL)
        case EmulatorTarget():  # one thread after the other, an instruction at a time
            return Rates(_CYCLES, _CORE_BYTES, _CALL)
        case CudaTarget():
            return _of_gpu(target.gpu)
        case OpenClTarget():
            return _of_gpu(GENERIC_GPU)
        case _:
            assert_never(target)


def _of_gpu(gpu: GpuMachine) -> Rates:
    count = gpu.multiprocessors
    return Rates(count * 2 * _LANES * _GPU_CYCLES * _REACHED, count * _MULTIPROCESSOR_BYTES, _LAUNCH)
