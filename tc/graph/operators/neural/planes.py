"""The greatest elements of windows with their places in the plane of their channel, and the gradients of pools.

Places are those in the flattened spatial axes.  Of equal elements the first one counts, and of several that are NaN the
last one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.neural.phases import Phase, phased_sums, phases_of
from tc.graph.operators.neural.pooling import window_counts
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.neural.windows import Window, Windows, affine, divided, offset, span, summed, where
from tc.graph.operators.texts import access, definition, literal, parameter


def max_pool_in_planes(builder: Builder, x: Value, windows: Windows, counts: Sequence[int]) -> tuple[Value, ...]:
    """The greatest element of each window, and its place; ``counts``: how many windows there are along each axis.

    What is outside becomes least elements first: reductions whose terms are all there are quicker.
    """
    at, kernel = ["n", "c", *windows.places], windows.kernel
    statements, read = [], access("X", ["n", "c", *windows.positions])
    ranges = [f"{place} in 0:{count}" for place, count in zip(windows.places, counts, strict=True)]
    ranges += [f"{k} in 0:{extent}" for k, extent in zip(windows.elements, kernel, strict=True)]
    if any(window.padded for window in windows.axes):
        statements.append(_framed(x.type, windows, counts))
        read = access("T", ["n", "c", *_unpadded(windows)])
    statements += [
        f"{access('Y', at)} max=! {read}{where(ranges)}",
        *_first_place(read, at, _flattened(windows.elements, kernel), math.prod(kernel), ranges),
        f"{access('I', at)} = {_in_plane(windows)} where {_place(at)}",
    ]
    text = definition("max_pool", [parameter(x.type, ["N", "C", *windows.sizes], "X")], ["Y", "I"], statements)
    return builder.call(text, x)


def _first_place(read: str, at: list[str], place: str, most: int, ranges: Sequence[str]) -> list[str]:
    """The statement that finds the first place of the element that is ``Y``, or the last of one that is NaN.

    The former are below 0, the greatest of them for the first.
    """
    first = f"{read} == {access('Y', at)} ? -1 - ({place}) : {literal(-1 - most, ScalarType.INT32)}"
    return [f"{access('K', at)} max=! {read} != {read} ? {place} : {first}{where(ranges)}"]


def _place(at: list[str]) -> str:
    found = access("K", at)
    return f"j = {found} >= 0 ? {found} : -1 - {found}"


def _flattened(names: Sequence[str], shape: Sequence[object], type: ScalarType = ScalarType.INT32) -> str:
    """The place of an element in a flattened tensor."""
    place = ""
    for name, extent in zip(names, shape, strict=True):
        place = f"({place}) * {extent} + {type}({name})" if place else f"{type}({name})"
    return place


def _unpadded(windows: Windows) -> list[str]:
    """Subscripts of the elements of windows in the padded tensor."""
    return [
        window.position(place, element).removesuffix(offset(-int(window.before)))
        for window, place, element in zip(windows.axes, windows.places, windows.elements, strict=True)
    ]


def _framed(type: ScalarType, windows: Windows, counts: Sequence[int]) -> str:
    """The statement that puts least elements around the tensor, as far as windows reach."""
    inside, places, ranges = [], [], []
    for window, size, place, count in zip(windows.axes, windows.sizes, windows.places, counts, strict=True):
        reach = window.stride * (count - 1) + window.dilation * (window.kernel - 1) + 1
        before = int(window.before)
        inside += [f"{place} >= {before}", f"{place} < {size}{offset(before)}"]
        places.append(f"{place}{offset(-before)}")
        ranges.append(f"{place} in 0:{max(reach, 0)}")
    least = literal(-math.inf if type.is_floating else type.minimum, type)
    value = f"{' && '.join(inside)} ? {access('X', ['n', 'c', *places])} : {least}"
    return f"{access('T', ['n', 'c', *windows.places])} = {value}{where(ranges)}"


def _in_plane(windows: Windows) -> str:
    """The place in the plane of element ``j`` of a window.

    Where all elements are the least, padding may come first: the first element that is none counts.
    """
    found = ""
    for axis, window in enumerate(windows.axes):
        inner = math.prod(windows.kernel[axis + 1 :])
        index = f"(j / {inner}) % {window.kernel}" if inner > 1 else f"j % {window.kernel}"
        moved = window.position(f"int64({windows.places[axis]})", f"({index})")
        if window.before:
            over = f"({divided(f'{window.dilation - 1} - ({moved})', window.dilation)}) * {window.dilation}"
            moved = f"(({moved}) < 0 ? {moved} + {over} : {moved})"
        found = f"({found}) * {windows.sizes[axis]} + {moved}" if found else moved
    return f"int64({found})"


def max_pool_gradient(
    builder: Builder, gradient: Value, places: Value, spatial: Sequence[int], windows: Windows | None = None
) -> Value:
    """What comes to each element of planes of this shape: the sum of the gradients that have its place.

    ``windows``: of which each place is one; None where that is not known.
    """
    if windows is not None and all(_is_apart(window) for window in windows.axes):
        return _gradient_of_windows_apart(builder, gradient, places, spatial, windows)
    lead = gradient.shape[: len(gradient.shape) - len(spatial)]
    flat = (elements(lead), elements(gradient.shape[len(lead) :]))
    parameters = [parameter(gradient.type, ["N", "P"], "G"), parameter(places.type, ["N", "P"], "I")]
    statement = f"Y(n, I(n, p)) +=! G(n, p) where I(n, p) in 0:{elements(spatial)}"
    text = definition("max_pool_gradient", parameters, ["Y"], [statement])
    (found,) = builder.call(text, *(builder.reshape(operand, flat) for operand in (gradient, places)))
    return builder.reshape(found, (*lead, *spatial))


def _is_apart(window: Window) -> bool:
    """Whether no element is in two windows."""
    return window.stride >= span(window.kernel, window.dilation)


def _gradient_of_windows_apart(
    builder: Builder, gradient: Value, places: Value, spatial: Sequence[int], windows: Windows
) -> Value:
    """Each element looks whether it has the place of its only window: that is no scatter, and an order of magnitude
    quicker.  Elements are those of strides, some of which may be in no window.
    """
    lead = gradient.shape[: len(gradient.shape) - len(spatial)]
    counts = gradient.shape[len(lead) :]
    at = ["n", *windows.places]
    moved = [
        f"{affine((window.stride, place), (1, element))}{offset(-int(window.before))}"
        for window, place, element in zip(windows.axes, windows.places, windows.elements, strict=True)
    ]
    ranges, inside = [], []
    axes = zip(windows.axes, windows.places, windows.elements, moved, spatial, counts, strict=True)
    for window, place, element, target, extent, count in axes:
        strides = -(-(extent + int(window.before)) // window.stride)
        ranges += [f"{place} in 0:{strides}", f"{element} in 0:{window.stride}", f"{target} in 0:{extent}"]
        inside += [f"{place} < {count}"] if strides > int(count) else []
    own = f"{access('I', at)} == {_flattened([f'({target})' for target in moved], spatial, ScalarType.INT64)}"
    found = f"{' && '.join([*inside, own])} ? {access('G', at)} : {gradient.type}(0)"
    sizes = ["N", *(f"O{size}" for size in windows.sizes)]
    parameters = [parameter(gradient.type, sizes, "G"), parameter(places.type, sizes, "I")]
    statement = f"{access('Y', ['n', *moved])} = {found}{where(ranges)}"
    text = definition("max_pool_gradient", parameters, ["Y"], [statement])
    flat = (elements(lead), *counts)
    (made,) = builder.call(text, *(builder.reshape(operand, flat) for operand in (gradient, places)))
    return builder.reshape(made, (*lead, *spatial))


def average_pool_gradient(
    builder: Builder,
    gradient: Value,
    windows: Windows,
    spatial: Sequence[int],
    *,
    with_padding: bool,
    divisor: int | None = None,
) -> Value:
    """The gradient of ``average_pool`` of tensors (N, C, ...) with these spatial extents."""
    at = ["n", "c", *windows.places]
    statements, number = window_counts(windows, list(map(str, spatial)), with_padding=with_padding)
    if divisor is not None:
        statements, number = [], str(divisor)
    statements.append(f"{access('M', at)} = {access('G', at)} / {real_type(gradient.type)}({number})")
    phases = phases_of(windows, list(map(str, spatial)))
    if phases is None:
        sources, clauses = windows.sources()
        ranges = [f"{place} in 0:{extent}" for place, extent in zip(windows.places, spatial, strict=True)]
        ranges += [f"{k} in 0:{extent}" for k, extent in zip(windows.elements, windows.kernel, strict=True)]
        statements += summed(gradient.type, at, access("M", ["n", "c", *sources]), [*ranges, *clauses])
    else:
        statements += _sums_in_phases(gradient.type, windows, phases)
    image = parameter(gradient.type, ["N", "C", *windows.sizes], "G")
    return builder.call(definition("average_pool_gradient", [image], ["Y"], statements), gradient)[0]


def _sums_in_phases(type: ScalarType, windows: Windows, phases: Sequence[Sequence[Phase]]) -> list[str]:
    """The statements that add up ``M`` over the windows of each element: elements of one phase are in as many."""
    sums, results = list[str](), list[str]()
    for number, own in enumerate(phased_sums(windows, phases)):
        total, ranges = "0", ["n in 0:N", "c in 0:C", *own.ranges]
        if not own.empty:
            total = access(f"T{number}", ["n", "c", *windows.places])
            sums.append(f"{total} +=! {access('M', ['n', 'c', *own.positions])}{where(own.clauses)}")
        results.append(f"{access('Y', ['n', 'c', *own.places])} = {type}({total}){where(ranges)}")
    return [*sums, *results]
