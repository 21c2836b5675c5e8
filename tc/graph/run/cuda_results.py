"""Arrays of calls on GPUs: copied there, and results copied back, where callers have others."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tc.dispatch.array_placement import device_of
from tc.graph.ir.builder import copy_program
from tc.graph.run.arrays import numbers
from tc.graph.run.comprehensions import comprehension_of
from tc.graph.run.results import Result, is_in_order, require_fit
from tc.runtime.cuda.cuda import device_number, waiting
from tc.runtime.frameworks.arrays import address_of, allocator, deliver, describe
from tc.runtime.frameworks.borrow import borrow, borrow_to_write
from tc.runtime.frameworks.device_array import DeviceArray, to_device

if TYPE_CHECKING:
    from tc.dispatch.arguments import Arguments
    from tc.dispatch.sites import CudaSite
    from tc.graph.ir.values import Value
    from tc.runtime.views.view import ArrayView, Framework


def to_gpu(bound: Arguments) -> Arguments:
    """The call with inputs in the memory of one device, one element after the other, and outputs only if they are."""
    device = device_of(bound)
    number = device_number(None) if device is None else device
    return replace(
        bound,
        inputs={name: _on_gpu(view, number) for name, view in bound.inputs.items()},
        outputs={name: view for name, view in bound.outputs.items() if view.memory is not None},
    )


def made_result(value: Value, site: CudaSite) -> Result:
    """A new array on the GPU, of the caller's framework."""
    memory = site.allocator(numbers(value.shape, value.name), value.type)()
    return Result(address_of(memory), lambda: site.deliver(memory, value.type))


def fetched_result(value: Value, site: CudaSite, framework: Framework) -> Result:
    """A new array of this machine."""
    memory = _temporary(value, site)

    def finish() -> object:
        made = allocator(framework, memory.shape, value.type)()
        if memory.nbytes:
            with waiting(memory.memory.device) as driver:
                driver.copy_to_host(address_of(made), memory.address, memory.nbytes)
        return deliver(made, framework, value.type)

    return Result(memory.address, finish)


def result_in(name: str, view: ArrayView, value: Value, site: CudaSite, *, apart: bool) -> Result:
    """An array of the caller; ``apart``: what is in it may be read until all is done.

    GraphError where it does not fit.
    """
    require_fit(name, view, value)
    if view.memory is not None and is_in_order(view) and not apart:
        return Result(view.address, lambda: view.owner)
    memory = _temporary(value, site)

    def finish() -> object:
        if view.memory is None:
            borrow_to_write(view)[...] = memory.numpy()
        else:
            comprehension_of(copy_program(value.type, len(view.shape)))(memory, out=view.owner)
        return view.owner

    return Result(memory.address, finish)


def _on_gpu(view: ArrayView, device: int) -> ArrayView:
    if view.memory is None:
        return to_device(borrow(view), view.type, device).view()
    if is_in_order(view):
        return view
    return describe(comprehension_of(copy_program(view.type, len(view.shape)))(view.owner), "a copy")


def _temporary(value: Value, site: CudaSite) -> DeviceArray:
    return DeviceArray(numbers(value.shape, value.name), value.type, site.place.memory)
