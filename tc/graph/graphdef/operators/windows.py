"""Convolutions, pooling and normalization over windows, with channels last or first.

Tensors with channels last are looked at with channels first, which moves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.sizes import Dimension, number
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import convolution
from tc.graph.operators.neural.pooling import average_pool, local_response, max_pool
from tc.graph.operators.neural.windows import Window, Windows, explicit_window, same_window, span, spatial_sizes
from tc.graph.operators.texts import literal

# Where batches, channels, height and width are.
_LAYOUTS: Final = {"NCHW": (0, 1, 2, 3), "NHWC": (0, 3, 1, 2)}


def _order(operation: Operation) -> tuple[int, ...]:
    layout = operation.text("data_format", "NHWC")
    if layout not in _LAYOUTS:
        raise operation.error(f"the layout `{layout}` is not supported; supported: {', '.join(_LAYOUTS)}")
    return _LAYOUTS[layout]


def _image(operation: Operation) -> Value:
    """The first operand with channels before height and width."""
    return operation.builder.permute(operation.operand(0, rank=4), _order(operation))


def _as_given(operation: Operation, value: Value) -> Value:
    """The result in the layout of the operand."""
    order = _order(operation)
    return operation.builder.permute(value, [order.index(axis) for axis in range(4)])


def _spatial(operation: Operation, name: str, *, ones: bool = False) -> tuple[int, ...]:
    """Numbers for height and width, of an attribute that has one for each dimension.  ``ones``: it may be missing."""
    found = operation.list(name) or ((1, 1, 1, 1) if ones else ())
    if len(found) != 4 or min(found) < 1:
        raise operation.error(f"the attribute `{name}` must be 4 positive integers, and is {list(found)}")
    batch, channel, *spatial = (found[axis] for axis in _order(operation))
    if (batch, channel) != (1, 1):
        raise operation.error(f"`{name}` must be 1 for batches and channels, and is {list(found)}")
    return tuple(spatial)


def _windows(operation: Operation, image: Value, kernel: Sequence[int]) -> Windows:
    """Windows over height and width."""
    strides, dilations = _spatial(operation, "strides"), _spatial(operation, "dilations", ones=True)
    padding, borders = operation.text("padding"), [(0, 0), (0, 0)]
    if padding not in ("SAME", "VALID", "EXPLICIT"):
        raise operation.error(f"the padding `{padding}` is not supported; supported: EXPLICIT, SAME, VALID")
    if padding == "EXPLICIT":
        given = operation.list("explicit_paddings")
        if len(given) != 8 or min(given) < 0:
            raise operation.error(f"explicit_paddings must be 8 numbers that are not negative, and is {list(given)}")
        borders = [(given[2 * axis], given[2 * axis + 1]) for axis in _order(operation)[2:]]
    pairs = zip(spatial_sizes(2), image.shape[2:], kernel, strides, dilations, borders, strict=True)
    return Windows(tuple(_window(operation, padding, size, extent, *rest) for size, extent, *rest in pairs))


def _window(
    operation: Operation,
    padding: str,
    size: str,
    extent: Dimension,
    kernel: int,
    stride: int,
    dilation: int,
    border: tuple[int, int],
) -> Window:
    if padding == "SAME":
        found = same_window(size, extent, kernel, stride, dilation, lower=False)
        if found is None:
            raise operation.error(
                f"windows that skip elements need the extent {size}: call the graph, or give its sizes"
            )
        return found
    reach = span(kernel, dilation)
    if isinstance(extent, int) and extent + sum(border) < reach:
        raise operation.error(f"a window reaches over {reach} elements of {size}, and there are {extent + sum(border)}")
    return explicit_window(size, kernel, stride, dilation, *border)


def _kernel(filters: Value) -> tuple[int, ...]:
    return tuple(number(extent, f"the size of the filters `{filters.name}`") for extent in filters.shape[:2])


def _convolution(operation: Operation) -> Sequence[Value]:
    """With filters of height, width, channels of a group, and those of the result."""
    image, filters = _image(operation), operation.operand(1, rank=4)
    channels, own = image.shape[1], filters.shape[2]
    groups = 1
    if isinstance(channels, int) and isinstance(own, int):
        groups = channels // own if own else 0
        if groups == 0 or channels % own:
            raise operation.error(f"filters of {own} channels do not fit an operand with {channels}")
    return [_convolved(operation, image, operation.builder.permute(filters, (3, 2, 0, 1)), _kernel(filters), groups)]


def _depthwise(operation: Operation) -> Sequence[Value]:
    """With filters of height, width, channels, and how many results each of them has."""
    image, filters = _image(operation), operation.operand(1, rank=4)
    height, width, channels, factor = filters.shape
    weights = operation.builder.permute(filters, (2, 3, 0, 1))
    weights = operation.builder.reshape(weights, (channels * factor, 1, height, width))
    groups = number(channels, f"the channels of `{filters.name}`")
    return [_convolved(operation, image, weights, _kernel(filters), groups)]


def _convolved(operation: Operation, image: Value, weights: Value, kernel: Sequence[int], groups: int) -> Value:
    windows = _windows(operation, image, kernel)
    return _as_given(operation, convolution(operation.builder, image, weights, None, windows, groups))


def _max_pool(operation: Operation) -> Sequence[Value]:
    image = _image(operation)
    windows = _windows(operation, image, _spatial(operation, "ksize"))
    return [_as_given(operation, max_pool(operation.builder, image, windows))]


def _average_pool(operation: Operation) -> Sequence[Value]:
    """The mean of the elements that are inside of the tensor."""
    image = _image(operation)
    windows = _windows(operation, image, _spatial(operation, "ksize"))
    return [_as_given(operation, average_pool(operation.builder, image, windows, with_padding=False))]


def _response(operation: Operation) -> Sequence[Value]:
    """Divided by a power of the sum of squares of neighbouring channels."""
    image, radius = _image(operation), operation.integer("depth_radius", 5)
    if radius < 0:
        raise operation.error(f"depth_radius must not be negative, and is {radius}")
    channels = image.shape[1]
    size = 2 * (min(radius, channels) if isinstance(channels, int) else radius) + 1
    alpha, beta, bias = (
        literal(factor * operation.number(name, default), ScalarType.FLOAT32)
        for name, default, factor in (("alpha", 1, size), ("beta", 0.5, 1), ("bias", 1, 1))
    )
    return [_as_given(operation, local_response(operation.builder, image, size, alpha, beta, bias))]


OPERATORS: Final = {
    "AvgPool": Operator(_average_pool, 1),
    "Conv2D": Operator(_convolution, 2),
    "DepthwiseConv2dNative": Operator(_depthwise, 2),
    "LRN": Operator(_response, 1),
    "MaxPool": Operator(_max_pool, 1),
}
