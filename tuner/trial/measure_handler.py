"""The process that runs candidates: checks their results in guarded memory, and times them."""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, assert_never

import numpy as np
import numpy.typing as npt

from tc.artifact.packing import unpack
from tc.base.errors import ArgumentError, DeviceError, NoRoomError, TCError
from tc.base.interface import Interface
from tc.dispatch.arguments import bind
from tc.dispatch.kernel import Kernel
from tc.reference.kept import deviation
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tc.targets.target import parse_target
from tc.tuner.trial.checked_calls import Expected
from tc.tuner.trial.guarded import made_like
from tc.tuner.trial.messages import (
    EMPTY,
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
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_arrays import first_elements, kept_arrays
from tc.tuner.trial.trial_memory import Guarded, HostTrialMemory, TrialMemory, trial_memory_of
from tc.tuner.trial.trial_outcome import Failed, FailureKind

Array = npt.NDArray[Any]

_CALIBRATIONS: Final = 5


class MeasureHandler:
    """Runs executables of one task, one at a time."""

    def __init__(self) -> None:
        self._task: Task | None = None
        self._folder = Path()
        self._expected: Expected | None = None
        self._slots: Final[dict[str, Kernel]] = {}
        self._memory: TrialMemory = HostTrialMemory()
        self._arrays: Mapping[str, Array] = {}
        # The arguments as they were placed: by number of the checked call, and of those that are timed.
        self._placed: dict[int, Mapping[str, object]] = {}
        self._timed: Mapping[str, object] = {}
        self._calibration: Callable[[], object] | None = None
        self._quickest_calibration = math.inf

    def answer(self, question: Question, payload: bytes, /) -> tuple[Answer, bytes]:
        """The answer, and its bytes."""
        match question:
            case Prepare(task, folder, device):
                return self._prepare(task, Path(folder), device), b""
            case Calibrate():
                return self._calibrate(Kernel(unpack(payload))), b""
            case Check(slot):
                return self._check(payload, slot), b""
            case Time(slot, seconds, quickest):
                return (self._time(self._slots[slot], seconds, quickest) if slot in self._slots else EMPTY), b""
            case Build():
                raise ValueError(f"a process that measures is asked {question!r}")
            case _:
                assert_never(question)

    def _prepare(self, task: Task, folder: Path, device: int) -> Answer:
        self._task, self._folder, self._arrays = task, folder, {}
        self._expected = Expected(task, folder)
        self._slots.clear()
        self._placed.clear()
        try:
            self._memory = trial_memory_of(parse_target(task.target), device)
        except DeviceError as error:
            return Failed(FailureKind.LOST, str(error))
        return Done()

    def _calibrate(self, kernel: Kernel) -> Answer:
        specs = [spec for _, spec in kernel.signature.arguments]
        try:
            arrays = [self._memory.place(np.ones(spec.shape, numpy_dtype(spec.dtype))) for spec in specs]
            self._calibration = self._memory.call_of(kernel, arrays, {}, {})
        except (DeviceError, MemoryError) as error:
            return Failed(FailureKind.LOST, f"{type(error).__name__}: {error}")
        return Done()

    def _check(self, packed: bytes, slot: str) -> Answer:
        self._slots.pop(slot, None)
        kernel = Kernel(unpack(packed))
        # A failed candidate may have overwritten the arguments.
        kept, self._placed = self._placed, {}
        try:
            answer = self._compare(kernel, kept)
            if isinstance(answer, Checked):
                self._slots[slot] = kernel
                self._placed = kept
            return answer
        except NoRoomError as error:
            return Failed(FailureKind.LOST, str(error))
        except DeviceError as error:
            return Failed(FailureKind.DEVICE, str(error))
        except MemoryError:
            return Failed(FailureKind.MEMORY, "the kernel found no memory")
        except TCError as error:
            return Failed(FailureKind.WRONG, f"{type(error).__name__}: {error}")

    def _compare(self, kernel: Kernel, kept: dict[int, Mapping[str, object]]) -> Answer:
        """Whether all calls are right."""
        assert self._task is not None, "nothing was prepared"
        checked: list[Checked] = []
        for number, sizes in enumerate(self._task.calls):
            answer = self._compare_call(kernel, number, sizes, kept)
            if isinstance(answer, Failed):
                named = zip(self._task.signature.symbolic, sizes, strict=True)
                where = "".join(f" where {size.name} is {extent}" for size, extent in named)
                return Failed(answer.kind, f"{answer.reason}{where}")
            checked.append(answer)
        return Checked(max(one.deviation for one in checked), ", ".join(one.numerics for one in checked))

    def _compare_call(
        self, kernel: Kernel, number: int, sizes: tuple[int, ...], kept: dict[int, Mapping[str, object]]
    ) -> Checked | Failed:
        assert self._task is not None, "nothing was prepared"
        assert self._expected is not None, "nothing was prepared"
        interface = kernel.executable.convention.interface
        given = kept_arrays(interface, self._task.signature.at(sizes), self._folder, on_disk=True)
        # A result in the place of an argument begins with what that holds.
        shared = dict(kernel.signature.aliases)
        guarded: dict[str, Guarded] = {}
        for name in interface.results:
            layout = kernel.layout(name).at(sizes)
            guarded[name] = self._memory.guarded(*made_like(layout))
            first = given.get(shared.get(name, name))
            if first is not None:
                guarded[name].write(first_elements(first, layout.shape))
        placed = kept.get(number)
        if placed is None:
            apart = [name for name in interface.arguments if name not in shared.values()]
            placed = {name: self._memory.place(array) for name, array in given.items() if name in apart}
        if self._memory.keeps:
            kept[number] = placed
        results = {name: guarded[name].given for name in interface.results}
        within = {argument: results[name] for name, argument in shared.items()}
        kernel.run(bind(interface, self._arguments(interface, {**placed, **within}), results))
        self._memory.finish()
        for name, result in guarded.items():
            if not result.is_intact:
                return Failed(FailureKind.OUT_OF_BOUNDS, f"the memory around {name} was written to")
        for name, argument in placed.items():
            if self._memory.is_changed(argument):
                return Failed(FailureKind.OUT_OF_BOUNDS, f"the memory of {name}, which is an argument, was written to")
        out = tuple(guarded[name].read() for name in interface.results)
        found = deviation(out, self._expected.of(number, given, dict(zip(interface.results, out, strict=True))))
        if isinstance(found, str):
            return Failed(FailureKind.WRONG, found)
        return Checked(found, bits_of(out))

    def _arguments(self, interface: Interface, arrays: Mapping[str, object]) -> list[object]:
        assert self._task is not None, "nothing was prepared"
        scalars = {scalar.name: scalar.type for scalar in interface.scalars}
        return [
            self._task.value(name, scalars[name]) if name in scalars else arrays[name] for name in interface.arguments
        ]

    def _time(self, kernel: Kernel, seconds: float, quickest: float) -> Answer:
        task = self._task
        assert task is not None, "nothing was prepared"
        interface = kernel.executable.convention.interface
        try:
            if not self._arrays:
                self._arrays = kept_arrays(interface, task.signature, self._folder, on_disk=False)
                self._timed = {name: self._memory.place(array) for name, array in self._arrays.items()}
            firsts = {tensor.name: self._arrays[tensor.name] for tensor in interface.tensors if tensor.in_out}
            # Calls overwrite them.
            aliases = kernel.signature.aliases
            within = {name: self._memory.place(self._arrays[name].copy()) for _, name in aliases}
            arguments, placed = {**self._timed, **within}, {result: within[name] for result, name in aliases}
            call = self._memory.call_of(kernel, self._arguments(interface, arguments), firsts, placed)
            before = self._calibrated()
            noise = before / self._quickest_calibration if self._calibration is not None else 1.0
            samples = self._memory.times(call, seconds, noise * quickest)
            return Timed(samples, before, self._calibrated())
        except NoRoomError as error:
            return Failed(FailureKind.LOST, str(error))
        except (ArgumentError, DeviceError, MemoryError) as error:
            return Failed(FailureKind.DEVICE, f"{type(error).__name__}: {error}")

    def _calibrated(self) -> float:
        """Seconds of the calibrating kernel; 0 without one."""
        call = self._calibration
        if call is None:
            return 0.0
        call()
        seconds = statistics.median(self._memory.seconds(call) for _ in range(_CALIBRATIONS))
        self._quickest_calibration = min(self._quickest_calibration, seconds)
        return seconds


def bits_of(results: tuple[Array, ...]) -> str:
    """A hash of all bits of all results: candidates with the same one add in the same order, as far as these show."""
    digest = hashlib.sha256()
    for array in results:
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"bits {digest.hexdigest()[:16]}"
