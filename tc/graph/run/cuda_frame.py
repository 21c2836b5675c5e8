"""``Frame``: the memory of a plan on a GPU, and CUDA graphs of the kernels that work on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from tc.base.errors import StickyDeviceError
from tc.graph.run.cuda_steps import CopyStep, CudaStep, FunctionStep, KernelStep
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.recent_launches import RECENT_LAUNCHES
from tc.runtime.views.view import CudaMemory, Stream

if TYPE_CHECKING:
    from tc.base.grid import GridKernel
    from tc.runtime.cuda.cuda_driver import Event, Launch, LaunchGraph
    from tc.runtime.frameworks.device_array import DeviceArray


class Frame:
    """Runs steps, again and again, for arrays of callers that are somewhere else each time.

    ``fixed``: the arena and the constants.  ``temporaries``: where those of kernels begin in the arena, in bytes.
    ``varying``: how many memories, which come first, are the caller's.  The driver runs one call after the other.
    """

    def __init__(
        self, steps: Sequence[CudaStep], fixed: Sequence[DeviceArray], temporaries: int, varying: int, device: int
    ) -> None:
        self._fixed: Final = tuple(fixed)
        self._addresses: Final = [array.address for array in fixed]
        self._temporaries: Final = fixed[0].address + temporaries
        self._device: Final = device
        self._streams: Final[set[Stream]] = set()
        self._end: tuple[Stream, Event] | None = None
        self._sections: Final[list[_Section]] = []
        for step in steps:
            if not isinstance(step, KernelStep):
                self._sections.append(step)
            elif self._sections and isinstance(self._sections[-1], _Chain):
                self._sections[-1].add(step)
            else:
                self._sections.append(_Chain(step, varying))

    def run(self, addresses: Sequence[int], stream: Stream) -> None:
        """Starts the steps on a stream; the context of the device is current."""
        if stream not in self._streams:
            self._streams.add(stream)
            for array in self._fixed:
                array.used_on(stream)
        if self._end is not None and self._end[0] != stream:
            cuda_driver().wait(stream, self._end[1])
        every = [*addresses, *self._addresses]
        for section in self._sections:
            match section:
                case _Chain():
                    section.run(every, self._temporaries, self._device, stream)
                case FunctionStep():
                    section.run(every, CudaMemory(self._device, stream))
                case CopyStep():
                    copy_now(section, every, stream)
                case _:
                    assert_never(section)
        if len(self._sections) > 1:  # the runs of a single graph wait for each other
            self._end = stream, cuda_driver().record(stream)


def copy_now(step: CopyStep, addresses: Sequence[int], stream: Stream) -> None:
    """Starts to copy an output."""
    cuda_driver().copy(step.target.at(addresses), step.source.at(addresses), step.bytes, stream)


class _Chain:
    """Kernels one after the other, as a graph."""

    def __init__(self, first: KernelStep, varying: int) -> None:
        self._steps: Final = [first]
        self._varying: Final = varying
        self._graph: LaunchGraph | None = None
        # By step with arrays of the caller: its launches so far, by their places in the graph.
        self._launches: Final[dict[int, dict[int, Launch]]] = {}
        self._recent: tuple[tuple[str, GridKernel], ...] = ()

    def add(self, step: KernelStep) -> None:
        self._steps.append(step)

    def run(self, addresses: Sequence[int], temporaries: int, device: int, stream: Stream) -> None:
        if self._graph is None:
            self._graph = self._made(addresses, temporaries, device)
        else:
            self._change(self._graph, addresses, temporaries, device)
        try:
            self._graph.run(stream)
        except StickyDeviceError as error:  # which is that of earlier ones
            raise RECENT_LAUNCHES.naming(error, device) from error
        RECENT_LAUNCHES.extend(device, self._recent)

    def _made(self, addresses: Sequence[int], temporaries: int, device: int) -> LaunchGraph:
        launches: list[Launch] = []
        for number, step in enumerate(self._steps):
            own = _launches(step, addresses, temporaries, device)
            if any(word.memory < self._varying for word in step.operands):
                self._launches[number] = dict(enumerate(own, len(launches)))
            launches += own
        self._recent = tuple(launch for step in self._steps for launch in step.kernel.recent)
        return cuda_driver().graph(launches)

    def _change(self, graph: LaunchGraph, addresses: Sequence[int], temporaries: int, device: int) -> None:
        """Gives kernels the arrays of this call, where those of the one before were elsewhere."""
        for number, before in self._launches.items():
            own = _launches(self._steps[number], addresses, temporaries, device)
            for (place, old), new in zip(before.items(), own, strict=True):
                if new.arguments != old.arguments:
                    graph.change(place, new.arguments)
                    before[place] = new


def _launches(step: KernelStep, addresses: Sequence[int], temporaries: int, device: int) -> tuple[Launch, ...]:
    return step.kernel.launches([word.at(addresses) for word in step.operands], temporaries, device)


_Section: TypeAlias = _Chain | FunctionStep | CopyStep
