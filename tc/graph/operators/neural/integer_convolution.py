"""Convolutions of bytes, which have zero points, and may be scaled to bytes again.

Processors multiply bytes four at a time where the channels come last, so image and weights are put in that order first;
the padding holds the zero point.  Groups have few channels: there, zero points are taken off each factor.
"""

from __future__ import annotations

from collections.abc import Sequence

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import Channels, channels_of
from tc.graph.operators.neural.quantization import quantized
from tc.graph.operators.neural.windows import Window, Windows, affine, offset, span, where
from tc.graph.operators.texts import access, definition, parameter


@frozen
class Bytes:
    """Bytes that stand for ``value - zero``; there is one zero point, or one for each channel of the result."""

    value: Value
    zero: Value | None


@frozen
class Scaling:
    """How sums become bytes: with ``bias``, times ``image * weights / result``, rounded, and ``zero`` added."""

    image: Value
    weights: Value
    result: Value
    zero: Value
    bias: Value | None


class _Arguments:
    """The arguments of a definition, with their parameters."""

    def __init__(self, builder: Builder, channels: Channels) -> None:
        self.builder = builder
        self.channels = channels
        self.parameters: list[str] = []
        self.operands: list[Value] = []

    def add(self, name: str, value: Value, extents: Sequence[object]) -> None:
        """A tensor with these extents."""
        self.parameters.append(parameter(value.type, extents, name))
        self.operands.append(value)

    def number(self, name: str, value: Value) -> str:
        """One number, or one for each channel of the result; how the text reads it."""
        letters = "" if elements(value.shape) == 1 else self.channels.result
        self.add(name, self.builder.reshape(value, self.channels.extents(letters)), letters.upper())
        return access(name, letters)

    def zero(self, name: str, value: Value | None) -> str | None:
        """A zero point; None where it is known to be 0."""
        known = None if value is None else self.builder.array_of(value)
        if value is None or (known is not None and not known.any()):
            return None
        return self.number(name, value)


def integer_convolution(
    builder: Builder, image: Bytes, weights: Bytes, windows: Windows, groups: int = 1, scaling: Scaling | None = None
) -> Value:
    """The convolution with weights (F, C / groups, ...): sums of type int32, or what they are scaled to."""
    kernel = weights.value
    channels = channels_of(builder.origin, image.value.shape[1], kernel.shape[1], kernel.shape[0], groups)
    arguments = _Arguments(builder, channels)
    arguments.add("X", channels.view(builder, image.value), ["N", *channels.image.upper(), *windows.sizes])
    shape = (*channels.extents(channels.weights), *kernel.shape[2:])
    arguments.add("K", builder.reshape(kernel, shape), [*channels.weights.upper(), *windows.kernel])
    zeros = arguments.zero("XZ", image.zero), arguments.zero("KZ", weights.zero)
    last = groups == 1
    statements, total = _channels_last(windows, *zeros) if last else _direct(channels, windows, *zeros)
    made = total if scaling is None else _scaled(arguments, scaling, total)
    target = access("Y", ["n", *channels.result, *windows.places])
    if last:  # bytes are less to transpose than sums
        held = access("R", ["n", *windows.places, "f"])
        statements += [f"{held} = {made}", f"{target} = {held}"]
    else:
        statements.append(f"{target} = {made}")
    text = definition("conv_integer", arguments.parameters, ["Y"], statements)
    (found,) = builder.call(text, *arguments.operands)
    every = elements(channels.extents(channels.result))
    return builder.reshape(found, (found.shape[0], every, *found.shape[1 + len(channels.result) :]))


def _scaled(arguments: _Arguments, scaling: Scaling, total: str) -> str:
    """The sum as a byte."""
    if scaling.bias is not None:
        total = f"{total} + {arguments.number('B', scaling.bias)}"
    parts = {"XS": scaling.image, "KS": scaling.weights, "YS": scaling.result, "YZ": scaling.zero}
    image, weights, result, zero = (arguments.number(name, value) for name, value in parts.items())
    value, clause = quantized(f"float32({total}) * ({image} * {weights} / {result})", zero, scaling.zero.type)
    return f"{value}{where([clause])}"


def _direct(channels: Channels, windows: Windows, x_zero: str | None, k_zero: str | None) -> tuple[list[str], str]:
    """Statements that sum products, and the sum."""
    image = _less(access("X", ["n", *channels.image, *windows.positions]), x_zero)
    kernel = _less(access("K", [*channels.weights, *windows.elements]), k_zero)
    total = access("S", ["n", *channels.result, *windows.places])
    return [f"{total} +=! {image} * {kernel}{where(windows.clauses())}"], total


def _less(read: str, zero: str | None) -> str:
    return f"int32({read})" if zero is None else f"(int32({read}) - int32({zero}))"


def _channels_last(windows: Windows, x_zero: str | None, k_zero: str | None) -> tuple[list[str], str]:
    """The same with the channels last: sum (x - z) (k - u) = sum x k - u sum x - z sum (k - u)."""
    places, inner = windows.places, windows.elements
    statements = [
        _image_last(windows, x_zero),
        f"{access('M', ['f', *inner, 'c'])} = {access('K', ['f', 'c', *inner])}",
    ]
    moved = [affine((w.stride, p), (w.dilation, k)) for w, p, k in zip(windows.axes, places, inner, strict=True)]
    image = f"int32({access('A', ['n', *moved, 'c'])})"
    total = access("S", ["n", *places, "f"])
    ranges = [f"{place} in 0:{window.count}" for window, place in zip(windows.axes, places, strict=True)]
    statements.append(f"{total} +=! {image} * int32({access('M', ['f', *inner, 'c'])}){where(ranges)}")
    if k_zero is not None:
        kernel = [f"{k} in 0:{extent}" for k, extent in zip(inner, windows.kernel, strict=True)]
        statements.append(f"{access('P', ['n', *places])} +=! {image}{where([*ranges, *kernel])}")
        total = f"{total} - int32({k_zero}) * {access('P', ['n', *places])}"
    if x_zero is not None:
        statements.append(f"Q(f) +=! {_less(access('K', ['f', 'c', *inner]), k_zero)}")
        total = f"{total} - int32({x_zero}) * Q(f)"
    return statements, total


def _image_last(windows: Windows, zero: str | None) -> str:
    """The statement that makes the image with its padding."""
    axes = list(zip(windows.axes, windows.places, windows.sizes, strict=True))
    inside: list[str] = []
    clauses, places = ["n in 0:N", "c in 0:C"], []
    for window, place, size in axes:
        extent, before = _reach(window, size), window.before
        clauses.append(f"{place} in 0:{extent}")
        places.append(place if before == 0 else f"{place} - {before}")
        if before != 0:
            inside.append(f"{place} >= {before}")
        if window.padded:
            inside.append(f"{place} < {size}" + ("" if before == 0 else f" + {before}"))
    read = access("X", ["n", "c", *places])
    if inside:
        read = f"{' && '.join(inside)} ? {read} : {zero or 0}"
    return f"{access('A', ['n', *windows.places, 'c'])} = {read}{where(clauses)}"


def _reach(window: Window, size: str) -> str:
    """How many elements all windows reach over, with the padding."""
    if isinstance(window.before, int):
        return f"{size}{offset(window.before + window.after)}"
    return f"{window.count} * {window.stride}{offset(span(window.kernel, window.dilation) - window.stride)}"
