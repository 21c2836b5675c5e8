"""What is pooled in windows over a tensor (N, C, ...), and the adjoint of the greatest elements."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Shape, elements
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.neural.rounding import real_type
from tc.graph.operators.neural.windows import Window, Windows, offset, spatial_sizes, where
from tc.graph.operators.texts import access, definition, parameter


def max_pool(builder: Builder, x: Value, windows: Windows) -> Value:
    """The greatest element of each window."""
    target, read = access("Y", ["n", "c", *windows.places]), access("X", ["n", "c", *windows.positions])
    statement = f"{target} max=! {read}{where(windows.clauses(kernel=True))}"
    return builder.call(definition("max_pool", [_image(x, windows)], ["Y"], [statement]), x)[0]


def max_pool_with_places(builder: Builder, x: Value, windows: Windows, *, column_major: bool) -> tuple[Value, ...]:
    """The greatest element of each window, and the place of the first that is it in the flattened tensor.

    ``column_major``: the spatial axes are flattened so that the first of them is the fastest.
    """
    at = ["n", "c", *windows.places]
    k = access("K", at)  # the place in the window
    flat, found = "", []
    for axis, (extent, element) in enumerate(zip(windows.kernel, windows.elements, strict=True)):
        flat = f"({flat}) * {extent} + {element}" if flat else element
        inner = math.prod(windows.kernel[axis + 1 :])
        name, window = f"i{windows.places[axis]}", windows.axes[axis]
        found.append(f"{name} = {window.position(windows.places[axis], f'({k} / {inner} % {extent})')}")
    place = "int64(n) * C + c"
    axes = list(zip(windows.sizes, windows.places, strict=True))
    for size, own in reversed(axes) if column_major else axes:
        place = f"({place}) * {size} + i{own}"
    read = access("X", ["n", "c", *windows.positions])
    statements = [
        f"({access('Y', at)}, {k}) max=! ({read}, {flat}){where(windows.clauses(kernel=True))}",
        f"{access('I', at)} = {place}{where(found)}",
    ]
    return builder.call(definition("max_pool", [_image(x, windows)], ["Y", "I"], statements), x)


def average_pool(
    builder: Builder, x: Value, windows: Windows, *, with_padding: bool, divisor: int | None = None
) -> Value:
    """The mean of each window; ``with_padding``: elements of the padding count, and are 0.

    ``divisor``: what sums are divided by; None for how many elements a window has.
    """
    at = ["n", "c", *windows.places]
    read = access("X", ["n", "c", *windows.positions])
    statements, number = window_counts(windows, windows.sizes, with_padding=with_padding)
    number = str(divisor) if divisor is not None else number
    total = f"{access('S', at)} +=! {read}{where(windows.clauses(kernel=True))}"
    mean = f"{access('Y', at)} = {x.type}({access('S', at)} / {real_type(x.type)}({number}))"
    text = definition(
        "average_pool", [_image(x, windows)], ["Y"], [total, *(statements if divisor is None else ()), mean]
    )
    return builder.call(text, x)[0]


def window_counts(windows: Windows, extents: Sequence[str], *, with_padding: bool) -> tuple[list[str], str]:
    """Statements that count the elements of windows along axes of these extents, and how many one has, as a text."""
    statements, counts = [], []
    for window, size, extent, place, element in zip(
        windows.axes, windows.sizes, extents, windows.places, windows.elements, strict=True
    ):
        if window.beyond or (window.padded and not with_padding):
            statements.append(_counted(window, size, extent, place, element, with_padding=with_padding))
            counts.append(f"N{size}({place})")
        else:
            counts.append(str(window.kernel))
    return statements, " * ".join(counts)


def _counted(window: Window, size: str, extent: str, place: str, element: str, *, with_padding: bool) -> str:
    """The statement that counts the elements that windows have along one axis."""
    position = window.position(place, element)
    if with_padding:
        position, extent = f"{position} + {window.before}", f"{extent} + {window.before} + {window.after}"
    clauses = [f"{place} in 0:{window.count}", f"{element} in 0:{window.kernel}", f"{position} in 0:{extent}"]
    return f"N{size}({place}) +=! 1{where(clauses)}"


def norm_pool(builder: Builder, x: Value, windows: Windows, order: int) -> Value:
    """The norm of this order of each window."""
    at = ["n", "c", *windows.places]
    term, root = norm(order)
    read = term.format(x=access("X", ["n", "c", *windows.positions]))
    statements = [
        f"{access('S', at)} +=! {read}{where(windows.clauses(kernel=True))}",
        f"{access('Y', at)} = {x.type}({root.format(s=access('S', at))})",
    ]
    return builder.call(definition("lp_pool", [_image(x, windows)], ["Y"], statements), x)[0]


def norm(order: int) -> tuple[str, str]:
    """The terms of a norm of this order, and what becomes of their sum."""
    if order == 1:
        return "abs({x})", "{s}"
    if order == 2:
        return "{x} * {x}", "sqrt({s})"
    return f"pow(abs({{x}}), {order})", f"pow({{s}}, {1 / order!r})"


def unpooled(builder: Builder, x: Value, places: Value, shape: Shape) -> Value:
    """Zeros, and the elements of ``x`` at places in the flattened result; of several at one place, the last counts."""
    extents = extents_of(builder, [elements(shape)])
    (size,) = extents.texts
    parameters = [parameter(x.type, ["P"], "X"), parameter(places.type, ["P"], "I"), *extents.parameters]
    statements = [
        f"L(I(p)) max=! p where I(p) in 0:{size}",
        f"Y(q) = {x.type}(L(q) >= 0 ? X(L(q)) : 0)",
    ]
    flat = [builder.reshape(operand, (elements(operand.shape),)) for operand in (x, places)]
    (found,) = builder.call(definition("max_unpool", parameters, ["Y"], statements), *flat, *extents.operands)
    return builder.reshape(found, shape)


def local_response(builder: Builder, x: Value, size: int, alpha: str, beta: str, bias: str) -> Value:
    """Elements over a power of the sum of the squares of ``size`` channels around them."""
    own = spatial_sizes(len(x.shape) - 2)
    places = [name.lower() for name in own]
    channel = f"c + k{offset(-((size - 1) // 2))}"
    read = access("X", ["n", channel, *places])
    s, at = access("S", ["n", "c", *places]), ["n", "c", *places]
    statements = [
        f"{s} +=! {read} * {read} where c in 0:C, k in 0:{size}, {channel} in 0:C",
        f"{access('Y', at)} = {x.type}({access('X', at)} / pow({bias} + {alpha} / {size} * {s}, {beta}))",
    ]
    text = definition("lrn", [parameter(x.type, ["N", "C", *own], "X")], ["Y"], statements)
    return builder.call(text, x)[0]


def _image(x: Value, windows: Windows) -> str:
    return parameter(x.type, ["N", "C", *windows.sizes], "X")
