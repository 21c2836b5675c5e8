"""Results of calls: arrays that are made for the caller, or that he brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.ir.sizes import shape_text
from tc.graph.run.arrays import numbers
from tc.runtime.frameworks.arrays import address_of, allocator, announcer, deliver
from tc.runtime.frameworks.borrow import borrow_to_write
from tc.runtime.frameworks.numpy_arrays import numpy_address, numpy_dtype
from tc.runtime.views.view import ArrayView, Framework, row_major

if TYPE_CHECKING:
    from tc.dispatch.arguments import Arguments
    from tc.graph.ir.graph import Graph
    from tc.graph.ir.values import Value


@frozen
class Result:
    """Where an output is computed, and what makes of it, then, what the caller gets."""

    address: int
    finish: Callable[[], object]


def results_of(graph: Graph, names: Sequence[str], bound: Arguments) -> tuple[Result, ...]:
    """The results of a call, in the memory of this machine; ``names``: how the caller calls the outputs, in order.

    GraphError for arrays of the caller that do not fit, ArgumentError for those that overlap others.
    """
    shared = {output for output, _ in bound.aliases(graph.name)} if bound.outputs else set()
    found = []
    for name, own in zip(names, graph.outputs, strict=True):
        value, view = graph.values[own], bound.outputs.get(name)
        if view is None:
            found.append(_made(value, bound.framework))
            continue
        require_fit(name, view, value)
        found.append(_copied(value, view) if name in shared or not is_in_order(view) else _brought(view))
    return tuple(found)


def require_fit(name: str, view: ArrayView, value: Value) -> None:
    """GraphError unless the array of the caller is what the output is."""
    if view.type is not value.type or view.shape != value.shape:
        raise GraphError(
            f"output `{name}` is {value.type}({shape_text(value.shape)}), the array in out= is "
            f"{view.type}({shape_text(view.shape)})"
        )


def is_in_order(view: ArrayView) -> bool:
    """Whether the elements lie one after the other."""
    return view.strides == row_major(view.shape)


def announced(views: Mapping[str, ArrayView]) -> None:
    """Tells the frameworks of arrays that they will change."""
    for view in views.values():
        tell = announcer(view.framework)
        if tell is not None:
            tell(view.owner)


def _made(value: Value, framework: Framework) -> Result:
    memory = allocator(framework, numbers(value.shape, value.name), value.type)()
    return Result(address_of(memory), lambda: deliver(memory, framework, value.type))


def _brought(view: ArrayView) -> Result:
    return Result(view.address, lambda: view.owner)


def _copied(value: Value, view: ArrayView) -> Result:
    """Of an array with other strides, or that is an input, which later kernels may read."""
    memory = np.empty(numbers(value.shape, value.name), numpy_dtype(value.type))

    def finish() -> object:
        borrow_to_write(view)[...] = memory
        return view.owner

    return Result(numpy_address(memory), finish)
