"""Binds the arrays of a call to the inputs that a model declares."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from tc.base.errors import GraphError, nearest
from tc.dispatch.arguments import Arguments, framework_of
from tc.graph.ir.sizes import Dimension, Shape, Size, shape_text
from tc.graph.ir.source import Declared
from tc.graph.run.results import is_in_order
from tc.runtime.frameworks.arrays import describe, describe_output, followed
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.frameworks.numpy_arrays import numpy_address
from tc.runtime.views.view import ArrayView, row_major


def bound(
    model: str, declared: Sequence[Declared], inputs: Mapping[str, object], results: Mapping[str, object]
) -> Arguments:
    """The inputs and the arrays for results, as they lie.

    GraphError where inputs are missing, unknown, or not what is declared; ArgumentError for what is no such array.
    """
    require_known(model, declared, inputs)
    views: dict[str, ArrayView] = {}
    sizes: dict[str, Dimension] = {}
    for own in declared:
        if own.name not in inputs:
            if own.optional:
                continue
            raise GraphError(f"`{model}`: the input `{own.name}` is missing")
        view = describe(inputs[own.name], f"input `{own.name}`")
        _require_fit(view, own, sizes)
        views[own.name] = view
    for name, view in views.items():
        if view.followed:
            raise followed(f"input `{name}`")
    outputs = {name: describe_output(array, f"output `{name}`") for name, array in results.items()}
    return Arguments(views, {}, outputs, framework_of(views, outputs))


def require_known(model: str, declared: Sequence[Declared], given: Mapping[str, object]) -> None:
    """GraphError for names that no input has."""
    names = [own.name for own in declared]
    for name in given:
        if name not in names:
            guess = nearest(name, names)
            hint = f"did you mean `{guess}`?" if guess else f"inputs: {', '.join(names)}"
            raise GraphError(f"`{model}` has no input `{name}`; {hint}")


def require_shape(shape: Shape, declared: Declared, sizes: dict[str, Dimension]) -> None:
    """GraphError where a shape is not as declared; ``sizes``: those of other inputs, by name."""
    if declared.shape is None:
        return
    fits = len(shape) == len(declared.shape)
    for extent, wanted in zip(shape, declared.shape, strict=False):
        known = sizes.setdefault(str(wanted), extent) if isinstance(wanted, Size) else wanted
        fits = fits and (extent == known or isinstance(extent, Size))
    if not fits:
        raise GraphError(
            f"input `{declared.name}` is declared ({shape_text(declared.shape)}), got ({shape_text(shape)})"
        )


def in_order(call: Arguments) -> Arguments:
    """The call with inputs in the memory of this machine copied where their elements do not lie one after the other."""
    copied = {name: _in_order(view) for name, view in call.inputs.items() if view.memory is None}
    return replace(call, inputs={**call.inputs, **copied})


def _in_order(view: ArrayView) -> ArrayView:
    if is_in_order(view):
        return view
    array = np.ascontiguousarray(borrow(view)).reshape(view.shape)
    return replace(view, address=numpy_address(array), strides=row_major(view.shape), lease=array)


def _require_fit(view: ArrayView, declared: Declared, sizes: dict[str, Dimension]) -> None:
    if view.type is not declared.type:
        raise GraphError(f"input `{declared.name}` is declared {declared.type}, got {view.type}")
    require_shape(view.shape, declared, sizes)
