"""The memory in which candidates run: how arrays are placed and guarded, and how calls are timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from tc.dispatch.kernel import Kernel
from tc.targets.target import CudaTarget, Target
from tc.tuner.trial.guarded import GuardedArray, Made, made_like

Array = npt.NDArray[Any]


class Guarded(Protocol):
    """An array whose surroundings are checked for out-of-bounds writes; it begins as poison."""

    @property
    def given(self) -> object:
        """The array, as kernels take it."""

    @property
    def is_intact(self) -> bool:
        """Whether nothing around it was written to, once the work is done."""

    def write(self, values: Array) -> None:
        """Gives it these values."""

    def read(self) -> Array:
        """Its values."""


class TrialMemory(Protocol):
    """The memory of this machine, or that of a GPU."""

    @property
    def keeps(self) -> bool:
        """Whether placing arrays takes long, so that they stay for the next candidate."""

    def place(self, array: Array, /) -> object:
        """An array like this one there, with the same strides, as kernels take it."""

    def is_changed(self, placed: object, /) -> bool:
        """Whether an array that was placed, or the memory around it, was overwritten unhindered."""

    def guarded(self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None) -> Guarded:
        """A new array; ``strides``: in bytes, those of a C-contiguous one for None."""

    def finish(self) -> None:
        """Waits for all work, and raises what kernels found in their arguments."""

    def call_of(
        self, kernel: Kernel, arguments: Sequence[object], firsts: Mapping[str, Array], placed: Mapping[str, object]
    ) -> Callable[[], object]:
        """What is timed; ``firsts``: values that results have before it, of those that the kernel changes.  ``placed``:
        results in the place of arguments, with these.
        """

    def times(self, call: Callable[[], object], seconds: float, quickest: float) -> tuple[float, ...]:
        """Seconds of calls, in samples that take about so many seconds; ``quickest``: see ``messages.Time``."""

    def seconds(self, call: Callable[[], object]) -> float:
        """Of one call now."""


def strided_results(kernel: Kernel) -> dict[str, Made]:
    """The results that calls pass, by name, since they are not contiguous; without those in place of arguments."""
    shared = dict(kernel.signature.aliases)
    return {name: made_like(kernel.layout(name)) for name, _ in kernel.signature.results if name not in shared}


class HostTrialMemory:
    """Host memory; arrays that stay on disk are read-only, so that a write to them traps."""

    keeps: Final = False

    def place(self, array: Array) -> object:
        """An array like this one there, with the same strides, as kernels take it."""
        return array

    def is_changed(self, _placed: object) -> bool:
        """Whether an array that was placed, or the memory around it, was overwritten unhindered."""
        return False

    def guarded(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
    ) -> GuardedArray:
        """A new array; ``strides``: in bytes, those of a C-contiguous one for None."""
        return GuardedArray(shape, dtype, strides)

    def finish(self) -> None:
        """Calls have ended when they return."""

    def call_of(
        self, kernel: Kernel, arguments: Sequence[object], firsts: Mapping[str, Array], placed: Mapping[str, object]
    ) -> Callable[[], object]:
        """Other results are allocated by every call, as users do, unless they have strides."""
        apart = {name: self.guarded(*layout).given for name, layout in strided_results(kernel).items()}
        given = {**apart, **{name: array.copy() for name, array in firsts.items()}, **placed}
        # Calls with a mapping are not repeated as quickly.
        several = tuple(given.get(name) for name in kernel.executable.convention.interface.results)
        out = several if len(several) > 1 else several[0]
        return lambda: kernel(*arguments, out=out)

    def times(self, call: Callable[[], object], seconds: float, quickest: float) -> tuple[float, ...]:
        """Seconds of calls, in samples that take about so many seconds; ``quickest``: see ``messages.Time``."""
        from tc.tuner.trial.host_clock import time_calls

        return time_calls(call, seconds, quickest)

    def seconds(self, call: Callable[[], object]) -> float:
        """Of one call now."""
        from tc.tuner.trial.host_clock import time_once

        return time_once(call)


def trial_memory_of(target: Target, device: int = 0) -> TrialMemory:
    """The memory for kernels of a target; ``device``: the number of the GPU; DeviceError without it."""
    if isinstance(target, CudaTarget):
        from tc.tuner.trial.cuda_trial_memory import CudaTrialMemory

        return CudaTrialMemory(device)
    return HostTrialMemory()
