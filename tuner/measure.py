"""The process that runs candidates: checks their results in guarded memory, and times them."""

from __future__ import annotations

import gc
import hashlib
import math
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt

from tc.arguments import bind
from tc.errors import ArgumentError, DeviceError, TCError
from tc.interface import Interface
from tc.kernel import Kernel
from tc.packing import unpack
from tc.reference.kept import deviation, kept_results
from tc.runtime.numpy_arrays import numpy_dtype
from tc.tuner.arrays import first_rows, kept_arrays
from tc.tuner.guarded import GuardedArray
from tc.tuner.messages import (
    EMPTY,
    GIVE_UP,
    HOPELESS,
    Answer,
    Build,
    Calibrate,
    Check,
    Checked,
    Done,
    Prepare,
    Question,
    Time,
    Timed,
)
from tc.tuner.outcome import Failed, FailureKind
from tc.tuner.task import Task

Array = npt.NDArray[Any]

# A sample is long enough for the clock, and there are enough of them to tell how far they spread.
_LEAST_SAMPLE: Final = 1e-4
_SAMPLES: Final = 24
_LEAST_SAMPLES: Final = 3
_WARM_UP: Final = 0.2
# The first call of a kernel finds its code and its threads asleep, which takes longer than many kernels; so a few more
# calls have a say where they cost nothing.
_SHORT: Final = 5e-3
_MORE_CALLS: Final = 4
_CALIBRATIONS: Final = 5


class MeasureBench:
    """Runs executables of one task, one at a time."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._folder = Path()
        self._slots: Final[dict[str, Kernel]] = {}
        self._arrays: Mapping[str, Array] = {}
        self._calibration: Callable[[], object] | None = None
        self._quickest_calibration = math.inf

    def answer(self, question: Question, payload: bytes, /) -> tuple[Answer, bytes]:
        match question:
            case Prepare(task, folder):
                self._task, self._folder, self._arrays = task, Path(folder), {}
                self._slots.clear()
                return Done(), b""
            case Calibrate():
                kernel = Kernel(unpack(payload))
                arrays = [np.ones(spec.shape, numpy_dtype(spec.dtype)) for _, spec in kernel.signature.arguments]
                self._calibration = lambda: kernel(*arrays)
                return Done(), b""
            case Check(slot):
                return self._check(payload, slot), b""
            case Time(slot, seconds, quickest):
                return (self._time(self._slots[slot], seconds, quickest) if slot in self._slots else EMPTY), b""
            case Build():
                raise ValueError(f"a process that measures is asked {question!r}")
            case _:
                assert_never(question)

    def _check(self, packed: bytes, slot: str) -> Answer:
        self._slots.pop(slot, None)
        kernel = Kernel(unpack(packed))
        try:
            answer = self._compare(kernel)
            if isinstance(answer, Checked):
                self._slots[slot] = kernel
            return answer
        except DeviceError as error:
            return Failed(FailureKind.DEVICE, str(error))
        except MemoryError:
            return Failed(FailureKind.MEMORY, "the kernel found no memory")
        except TCError as error:
            return Failed(FailureKind.WRONG, f"{type(error).__name__}: {error}")

    def _compare(self, kernel: Kernel) -> Answer:
        """Whether all calls are right."""
        assert self._task is not None, "nothing was prepared"
        checked: list[Checked] = []
        for number, sizes in enumerate(self._task.calls):
            answer = self._compare_call(kernel, number, sizes)
            if isinstance(answer, Failed):
                named = zip(self._task.signature.symbolic, sizes, strict=True)
                where = "".join(f" where {size.name} is {extent}" for size, extent in named)
                return Failed(answer.kind, f"{answer.reason}{where}")
            checked.append(answer)
        return Checked(max(one.deviation for one in checked), ", ".join(one.numerics for one in checked))

    def _compare_call(self, kernel: Kernel, number: int, sizes: tuple[int, ...]) -> Checked | Failed:
        assert self._task is not None, "nothing was prepared"
        interface = kernel.executable.convention.interface
        given = kept_arrays(interface, self._task.signature.at(sizes), self._folder, on_disk=True)
        guarded = {}
        for name in interface.results:
            layout = kernel.layout(name).at(sizes)
            guarded[name] = GuardedArray(layout.shape, numpy_dtype(layout.type))
            if name in given:
                guarded[name].array[...] = first_rows(given[name], layout.shape)
        out = tuple(guarded[name].array for name in interface.results)
        kernel.run(bind(interface, self._arguments(interface, given), out))
        for name, result in guarded.items():
            if not result.is_intact:
                return Failed(FailureKind.OUT_OF_BOUNDS, f"the memory behind {name} was written to")
        found = deviation(out, kept_results(self._folder, number))
        if isinstance(found, str):
            return Failed(FailureKind.WRONG, found)
        return Checked(found, bits_of(out))

    def _arguments(self, interface: Interface, arrays: Mapping[str, Array]) -> list[object]:
        assert self._task is not None, "nothing was prepared"
        scalars = {scalar.name: scalar.type for scalar in interface.scalars}
        return [
            self._task.value(name, scalars[name]) if name in scalars else arrays[name] for name in interface.arguments
        ]

    def _time(self, kernel: Kernel, seconds: float, quickest: float) -> Answer:
        task = self._task
        assert task is not None, "nothing was prepared"
        interface = kernel.executable.convention.interface
        if not self._arrays:
            self._arrays = kept_arrays(interface, task.signature, self._folder, on_disk=False)
        arguments = self._arguments(interface, self._arrays)
        out = {t.name: self._arrays[t.name].copy() for t in interface.tensors if t.in_out} or None
        before = self._calibrated()
        noise = before / self._quickest_calibration if self._calibration is not None else 1.0
        try:
            samples = time_calls(lambda: kernel(*arguments, out=out), seconds, noise * quickest)
        except (ArgumentError, MemoryError) as error:
            return Failed(FailureKind.DEVICE, f"{type(error).__name__}: {error}")
        return Timed(samples, before, self._calibrated())

    def _calibrated(self) -> float:
        """Seconds of the calibrating kernel; 0 without one."""
        call = self._calibration
        if call is None:
            return 0.0
        call()
        seconds = statistics.median(_timed(call, 1) for _ in range(_CALIBRATIONS))
        self._quickest_calibration = min(self._quickest_calibration, seconds)
        return seconds


def bits_of(results: tuple[Array, ...]) -> str:
    """A hash of all bits of all results: candidates with the same one add in the same order, as far as these show."""
    digest = hashlib.sha256()
    for array in results:
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"bits {digest.hexdigest()[:16]}"


def time_calls(call: Callable[[], object], seconds: float, quickest: float) -> tuple[float, ...]:
    """Seconds of a call in samples that take about so many ``seconds`` in all, after warming up.

    A sample is the mean of as many calls as the clock needs.  ``quickest``: see ``Time``.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        once = _timed(call, 1)
        if once < _SHORT:
            once = min(once, *(_timed(call, 1) for _ in range(_MORE_CALLS)))
        if once >= GIVE_UP * quickest:
            return (once,)
        warm = time.perf_counter() + _WARM_UP * seconds
        while time.perf_counter() < warm:
            once = min(once, _timed(call, 1))
        rest = (1 - _WARM_UP) * seconds
        calls = max(1, math.ceil(max(_LEAST_SAMPLE, rest / _SAMPLES) / max(once, 1e-9)))
        samples: list[float] = []
        end = time.perf_counter() + rest
        while len(samples) < _LEAST_SAMPLES or (
            time.perf_counter() < end and len(samples) < 2 * _SAMPLES and min(samples) <= HOPELESS * quickest
        ):
            samples.append(_timed(call, calls))
        return tuple(samples)
    finally:
        if enabled:
            gc.enable()


def _timed(call: Callable[[], object], calls: int) -> float:
    begun = time.perf_counter()
    for _ in range(calls):
        call()
    return (time.perf_counter() - begun) / calls
