"""Roofs of the machine (peak bandwidth and arithmetic), measured with all threads by a few loops in C."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from tc.base.environment import environment
from tc.runtime.host.c_compiler import compile_shared, find_compiler, kernel_flags
from tc.runtime.host.library import load_library
from tc.targets.target import CpuTarget
from tc.tuner.roofline.roofline import Bandwidth, Roofs
from tc.tuner.roofline.stable import least

Array: TypeAlias = npt.NDArray[Any]

_CHAINS: Final = 12  # as in roofs.c
_SMALLEST, _LARGEST = 1 << 14, 1 << 26  # bytes per thread
_FRESH: Final = 1 << 25  # likewise, of memory that is new
_SECONDS: Final = 0.004  # of a measurement, at least
# So many measurements in a row that find nothing better end it, or so many in all.
_CALM, _MOST = 12, 200


def measure_roofs(target: CpuTarget, threads: int) -> Roofs:
    """Takes a few seconds.  DeviceError without a C compiler."""
    library = compiled_roofs(target)
    lanes = target.vector_bytes // 4
    with ThreadPoolExecutor(threads) as pool:
        team = _Team(pool, threads)
        multiply_add = function(library, "tc_multiply_add", ctypes.c_long, ctypes.c_float, ctypes.c_float)
        rate = team.rate(lambda _, rounds: multiply_add(rounds, 0.5, 1.0))
        operations = rate * 2 * _CHAINS * lanes * threads
        sizes = [_SMALLEST << step for step in range(0, (_LARGEST // _SMALLEST).bit_length(), 2)]
        sources = [_aligned(_LARGEST, 1.0) for _ in range(threads)]
        targets = [_aligned(_LARGEST, 0.0) for _ in range(threads)]
        bandwidths = [_bandwidth(library, team, size, sources, targets, target) for size in sizes]
        take = function(library, "tc_fresh", ctypes.c_long, ctypes.c_long)
        fresh = team.rate(lambda _, rounds: take(_FRESH, rounds)) * _FRESH * threads
    return Roofs(operations, tuple(bandwidths), fresh)


def compiled_roofs(target: CpuTarget) -> ctypes.CDLL:
    """The loops, compiled as kernels are."""
    source = (Path(__file__).parent / "roofs.c").read_text(encoding="utf-8")
    compiler = find_compiler(environment())
    flags = (*kernel_flags(target, compiler), f"-DVECTOR_BYTES={target.vector_bytes}")
    return load_library(compile_shared(source, flags, compiler))


def _bandwidth(
    library: ctypes.CDLL, team: _Team, size: int, sources: list[Array], targets: list[Array], target: CpuTarget
) -> Bandwidth:
    read = function(library, "tc_read", ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    copy = function(library, "tc_copy", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_long, ctypes.c_long)
    begin, to = [array.ctypes.data for array in sources], [array.ctypes.data for array in targets]
    vectors = size // target.vector_bytes
    reading = team.rate(lambda thread, rounds: read(begin[thread], vectors, rounds))
    # Half of the working set is copied onto the other half.
    copying = team.rate(lambda thread, rounds: copy(to[thread], begin[thread], size // 2, rounds))
    total = size * len(sources)
    return Bandwidth(total, reading * total, copying * total)


def _aligned(size: int, value: float) -> Array:
    """``size`` bytes of floats at the beginning of a page."""
    memory = np.full(size // 4 + 1024, value, np.float32)
    skipped = -memory.ctypes.data % 4096 // 4
    return memory[skipped : skipped + size // 4]


def function(library: ctypes.CDLL, name: str, *arguments: type) -> Callable[..., object]:
    """One of the loops; what it returns, if anything, is a float."""
    function = library[name]
    function.argtypes, function.restype = arguments, ctypes.c_float
    return function


class _Team:
    """Threads that run a loop at the same time."""

    def __init__(self, pool: ThreadPoolExecutor, threads: int) -> None:
        self._pool = pool
        self._threads = threads

    def rate(self, loop: Callable[[int, int], object]) -> float:
        """Rounds per second of ``loop(thread, rounds)`` in every thread: the best measurement, once it is stable."""
        rounds, seconds = 1, self._seconds(loop, 1)
        while seconds < _SECONDS:
            rounds *= 2
            seconds = self._seconds(loop, rounds)
        return rounds / min(seconds, least(lambda: self._seconds(loop, rounds), _CALM, _MOST))

    def _seconds(self, loop: Callable[[int, int], object], rounds: int) -> float:
        """From the first thread's start to the last one's end."""
        barrier = Barrier(self._threads)

        def run(thread: int) -> tuple[float, float]:
            barrier.wait()
            begun = time.perf_counter()
            loop(thread, rounds)
            return begun, time.perf_counter()

        spans = list(self._pool.map(run, range(self._threads)))
        return max(end for _, end in spans) - min(begun for begun, _ in spans)
