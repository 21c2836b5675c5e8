"""``CudaProgram``: what a plan runs on GPUs, started as a kernel is."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, assert_never

from tc.base.environment import environment
from tc.base.errors import GraphError
from tc.base.once import Once
from tc.base.types import ScalarType
from tc.graph.memory.places import placement
from tc.graph.run.cuda_frame import Frame, copy_now
from tc.graph.run.cuda_steps import CopyStep, FunctionStep, KernelStep, steps_of
from tc.graph.run.origins import at_origin
from tc.runtime.cuda.chosen_driver import cuda_driver
from tc.runtime.cuda.cuda import in_order
from tc.runtime.frameworks.device_array import DeviceArray, to_device
from tc.runtime.views.view import CudaMemory, Stream

if TYPE_CHECKING:
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.run.parts import Kernels

# Temporaries begin where any vector may.
_ALIGNMENT: Final = 256


class CudaProgram:
    """The nodes of a plan, on any device: safe to start from many threads.

    Kernels that follow each other are a CUDA graph.  Calls whose stream captures a graph, and those with ``TC_SYNC``,
    start one kernel after the other, in memory of their own.
    """

    def __init__(self, plan: MemoryPlan, kernels: Kernels) -> None:
        graph = plan.graph
        self.workspace: Final = 0  # it has an arena of its own
        self._name: Final = graph.name
        self._constants: Final = tuple((array, graph.values[name].type) for name, array in graph.constants.items())
        self._steps: Final = steps_of(graph, placement(plan), kernels)
        self._varying: Final = len(graph.inputs) + len(graph.outputs)
        self._temporaries: Final = -(-plan.arena // _ALIGNMENT) * _ALIGNMENT
        own = [step for step in self._steps if isinstance(step, KernelStep)]
        self._bytes: Final = self._temporaries + max((step.kernel.workspace for step in own), default=0)
        # Equal nodes share a kernel, and what it finds does not say which of them it is.
        checking = {step.kernel: [other.origin for other in own if other.kernel is step.kernel] for step in own}
        self._checking: Final = tuple(
            (kernel, " or ".join(dict.fromkeys(origins))) for kernel, origins in checking.items() if kernel.checks
        )
        self._uploaded: Final[Once[int, tuple[DeviceArray, ...]]] = Once()
        # By device, the frames that no thread is about to start.
        self._frames: Final[Once[int, deque[Frame]]] = Once()

    def launch(
        self,
        addresses: Sequence[int],
        _workspace: int,
        _scalars: Sequence[int | float],
        memory: CudaMemory,
        after: Sequence[Stream],
        leases: Sequence[object],
    ) -> None:
        """Starts the nodes on inputs and outputs at ``addresses``; see ``CudaKernel.launch``."""
        driver = cuda_driver()

        def start(*, captured: bool) -> None:
            if captured or environment().sync or not driver.graphs:
                self._one_by_one(addresses, memory, captured=captured)
                return
            frames = self._frames.get(memory.device, deque)
            frame = self._taken(frames, memory)
            try:
                frame.run(addresses, memory.stream)
            finally:
                frames.append(frame)

        with driver.on(memory.device):
            self.raise_faults()
            in_order(driver, self._name, memory.stream, after, leases, start)

    def raise_faults(self) -> None:
        """Raises what calls that have ended found in their arguments."""
        for kernel, origin in self._checking:
            at_origin(origin, kernel.raise_fault)

    def _taken(self, frames: deque[Frame], memory: CudaMemory) -> Frame:
        try:
            return frames.pop()
        except IndexError:
            fixed = (self._arena(memory), *self._constants_on(memory.device))
            return Frame(self._steps, fixed, self._temporaries, self._varying, memory.device)

    def _arena(self, memory: CudaMemory) -> DeviceArray:
        return DeviceArray((self._bytes,), ScalarType.UINT8, memory)

    def _constants_on(self, device: int) -> tuple[DeviceArray, ...]:
        def upload() -> tuple[DeviceArray, ...]:
            return tuple(to_device(array, type, device) for array, type in self._constants)

        return self._uploaded.get(device, upload)

    def _one_by_one(self, addresses: Sequence[int], memory: CudaMemory, *, captured: bool) -> None:
        if captured:
            self._require_capturable(memory.device)
        arena = self._arena(memory)
        constants = self._constants_on(memory.device)
        every = [*addresses, arena.address, *(array.address for array in constants)]
        for step in self._steps:
            match step:
                case KernelStep():
                    operands = [word.at(every) for word in step.operands]
                    step.kernel.launch(operands, arena.address + self._temporaries, (), memory, (), ())
                case FunctionStep():
                    step.run(every, memory)
                case CopyStep():
                    copy_now(step, every, memory.stream)
                case _:
                    assert_never(step)
        for array in constants:
            array.used_on(memory.stream)

    def _require_capturable(self, device: int) -> None:
        """GraphError, before anything is captured, for what a graph cannot hold."""
        functions = [step.node.operator for step in self._steps if isinstance(step, FunctionStep)]
        if functions:
            raise GraphError(
                f"`{self._name}`: the stream of this call captures a graph, in which the host cannot compute "
                f"{functions[0]}; call the model outside of the capture"
            )
        if self._constants and device not in self._uploaded:
            raise GraphError(
                f"`{self._name}`: the stream of this call captures a graph, and the constants of the model are not on "
                f"cuda:{device} yet; call the model once before"
            )
