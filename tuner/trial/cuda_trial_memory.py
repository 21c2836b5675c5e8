"""The memory of trials on a GPU: arrays between guard regions, calls timed by events."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tc.dispatch.arguments import bind
from tc.dispatch.kernel import Kernel
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import synchronize_cuda
from tc.runtime.cuda.cuda_driver import CudaDriver
from tc.runtime.cuda.deferred_free import DEFERRED_FREE
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory
from tc.tuner.trial.cuda_clock import event_times
from tc.tuner.trial.guarded import made_like

Array = npt.NDArray[Any]

# Bytes of the guard region on either side, filled with poison.
_GUARD: Final = 1 << 16
_POISON: Final = 0xFB


class CudaTrialMemory:
    """Arrays in the memory of a GPU."""

    keeps: Final = True

    def __init__(self, device: int = 0) -> None:
        self._driver = cuda_driver()
        self._device = device

    def place(self, array: Array) -> DeviceGuarded:
        """An array like this one there, with the same strides, as kernels take it."""
        placed = DeviceGuarded(self._driver, array.shape, array.dtype, array.strides, self._device)
        placed.write(array)
        return placed

    def is_changed(self, placed: object) -> bool:
        """Whether an array that was placed, or the memory around it, was overwritten unhindered."""
        assert isinstance(placed, DeviceGuarded)
        return placed.is_changed

    def guarded(
        self, shape: tuple[int, ...], dtype: np.dtype[Any], strides: tuple[int, ...] | None = None
    ) -> DeviceGuarded:
        """A new array; ``strides``: in bytes, those of a C-contiguous one for None."""
        return DeviceGuarded(self._driver, shape, dtype, strides, self._device)

    def finish(self) -> None:
        """Waits for all work, and raises what kernels found in their arguments."""
        synchronize_cuda(self._device)

    def call_of(
        self, kernel: Kernel, arguments: Sequence[object], firsts: Mapping[str, Array], placed: Mapping[str, object]
    ) -> Callable[[], object]:
        """All results are allocated already, and no array is copied back: what is left is the kernel."""
        interface = kernel.executable.convention.interface
        results = dict(placed)
        for name in interface.results:
            if name in results:
                continue
            made = results[name] = self.guarded(*made_like(kernel.layout(name)))
            if name in firsts:
                made.write(firsts[name])
        bound = bind(interface, arguments, results)
        inputs, outputs = (
            {name: replace(view, lease=None) for name, view in views.items()} for views in (bound.inputs, bound.outputs)
        )
        ready = replace(bound, inputs=inputs, outputs=outputs)
        return lambda: kernel.run(ready)

    def times(self, call: Callable[[], object], seconds: float, quickest: float) -> tuple[float, ...]:
        """Seconds of calls, in samples that take about so many seconds; ``quickest``: see ``messages.Time``."""
        found = event_times(call, seconds, quickest, self._device)
        self.finish()
        return found

    def seconds(self, call: Callable[[], object]) -> float:
        """Of one call now."""
        return statistics.median(event_times(call, 0.0, device=self._device))


class DeviceGuarded:
    """An array on a GPU with guards around it; strides are in bytes, None for those of a C-contiguous array.

    Kernels take it through ``__cuda_array_interface__``.
    """

    def __init__(
        self,
        driver: CudaDriver,
        shape: tuple[int, ...],
        dtype: np.dtype[Any],
        strides: tuple[int, ...] | None,
        device: int = 0,
    ) -> None:
        self._driver = driver
        self._device = device
        self._memory = CudaMemory(device, DEFAULT_STREAM)
        self.dtype = dtype
        self._shape = shape
        self._strides = strides if strides is not None else _contiguous(shape, dtype.itemsize)
        steps = [(extent - 1) * step for extent, step in zip(shape, self._strides, strict=True)]
        self._before = -sum(step for step in steps if step < 0) if 0 not in shape else 0
        behind = sum(step for step in steps if step > 0) + dtype.itemsize if 0 not in shape else 0
        self._image = np.full(self._before + behind + 2 * _GUARD, _POISON, np.uint8)
        with driver.on(device):
            self._address = driver.allocate(self._image.size, DEFAULT_STREAM)
        self._send()

    def __del__(self) -> None:
        # An array whose memory could not be had has no address.
        if hasattr(self, "_address"):
            DEFERRED_FREE.add(self._driver, self._memory, self._address, frozenset())

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        return {
            "version": 3,
            "shape": self._shape,
            "strides": self._strides,
            "typestr": self.dtype.str,
            "data": (self._address + _GUARD + self._before if 0 not in self._shape else 0, False),
            "stream": 1,
        }

    @property
    def given(self) -> DeviceGuarded:
        """The array, as kernels take it."""
        return self

    @property
    def is_intact(self) -> bool:
        """Also what lies between the elements is poison still."""
        now = self._received()
        inside = np.ones(now.shape, np.bool_)
        self._elements(inside)[...] = False
        return bool((now[inside] == _POISON).all())

    @property
    def is_changed(self) -> bool:
        """Whether any byte is another one than was sent."""
        return not np.array_equal(self._received(), self._image)

    def write(self, values: Array) -> None:
        """Gives it these values."""
        content = np.frombuffer(values.tobytes(), np.uint8)
        self._elements(self._image)[...] = content.reshape(*self._shape, self.dtype.itemsize)
        self._send()

    def read(self) -> Array:
        """Its values."""
        elements = self._elements(self._received())
        return np.frombuffer(elements.tobytes(), self.dtype).reshape(self._shape)

    def _elements(self, image: Array) -> Array:
        """The bytes of every element, in one dimension more."""
        size = self.dtype.itemsize
        return np.lib.stride_tricks.as_strided(
            image[_GUARD + self._before :], (*self._shape, size), (*self._strides, 1)
        )

    def _send(self) -> None:
        with self._driver.on(self._device):
            self._driver.copy_to_device(self._address, self._image.ctypes.data, self._image.size)

    def _received(self) -> Array:
        found = np.empty_like(self._image)
        with self._driver.on(self._device):
            self._driver.copy_to_host(found.ctypes.data, self._address, found.size)
        return found


def _contiguous(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    steps = [itemsize]
    for extent in reversed(shape[1:]):
        steps.insert(0, steps[0] * max(extent, 1))
    return tuple(steps) if shape else ()
