"""The memory in which the arrays of a call are, and whether its target can access it."""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.errors import DeviceError
from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.dispatch.arguments import Arguments
from tc.language.program.specialization import ArraySpec
from tc.runtime.cuda.chosen_stream import chosen_stream
from tc.runtime.frameworks.arrays import describe
from tc.runtime.views.view import DEFAULT_STREAM, ArrayView, CudaMemory, Framework, Stream
from tc.targets.target import CudaTarget, Target


@frozen
class CudaPlace:
    """The device and the stream of a call.

    ``others``: streams on which some arrays are ready, and others work on.  ``ordered``: they wait for each other.
    """

    memory: CudaMemory
    others: tuple[Stream, ...] = ()
    ordered: bool = True


def device_of(bound: Arguments) -> int | None:
    """The first CUDA device that an array of the call lies on; None where there is none."""
    found = (view.memory for view in bound.views)
    return next((memory.device for memory in found if memory is not None), None)


def device_of_arrays(interface: Interface, arguments: Sequence[object]) -> int | None:
    """``device_of`` for what ``compile`` takes: arrays, specs, shapes and scalars; errors are those of ``describe``."""
    tensors = {tensor.name for tensor in interface.tensors}
    for name, value in zip(interface.arguments, arguments, strict=False):
        if name in tensors and not isinstance(value, (ArraySpec, tuple, list)):
            memory = describe(value, f"argument {name} of {interface.name}").memory
            if memory is not None:
                return memory.device
    return None


def check_on_host(bound: Arguments, definition: str, target: Target) -> None:
    """DeviceError, naming the array, unless all of them lie in the memory of this machine."""
    for place, view in _places(bound, definition):
        if view.memory is not None:
            remedy = "pass .cpu()" if view.framework is Framework.TORCH else "copy it there"
            kind = str(target).partition(":")[0]
            raise DeviceError(
                f"{place}: the array is on {view.memory}, target {kind!r} reads only this machine's memory; {remedy}, "
                "or use target 'cuda'"
            )


def cuda_place(bound: Arguments, definition: str, target: CudaTarget) -> CudaPlace:
    """Where a call on CUDA runs; DeviceError, naming arrays, unless all of them lie on one device."""
    places = _places(bound, definition)
    for place, view in places:
        if view.memory is None:
            remedy = "pass .cuda()" if view.framework is Framework.TORCH else "copy it there"
            raise DeviceError(
                f"{place}: the array is in this machine's memory, target '{target}' reads only that of a GPU; "
                f"{remedy}, or use target 'cpu'"
            )
    memories = [(place, view.memory) for place, view in places if view.memory is not None]
    if not memories:
        from tc.runtime.cuda.chosen_driver import cuda_driver

        return CudaPlace(CudaMemory(cuda_driver().current_device(), chosen_stream() or DEFAULT_STREAM))
    first_place, first = memories[0]
    for place, memory in memories:
        if memory.device != first.device:
            raise DeviceError(f"{place}: the array is on {memory}, {first_place} on {first}; copy them to one device")
    chosen = chosen_stream()
    if chosen is not None:
        return CudaPlace(CudaMemory(first.device, chosen), ordered=all(m.stream == chosen for _, m in memories))
    others = {memory.stream: None for _, memory in memories if memory.stream != first.stream}
    return CudaPlace(first, tuple(others))


def _places(bound: Arguments, definition: str) -> Sequence[tuple[str, ArrayView]]:
    """All arrays of the call, as errors name them."""
    return (
        *((f"argument {name} of {definition}", view) for name, view in bound.inputs.items()),
        *((f"output {name} of {definition}", view) for name, view in bound.outputs.items()),
    )
