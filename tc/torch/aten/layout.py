"""Operators that move elements by affine rules: reversed, repeated, padded, diagonals, windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
import torch

from tc.graph.ir.values import Value
from tc.graph.operators.indexed import written
from tc.graph.operators.joining import concatenated
from tc.graph.operators.matrices import tiled, triangle
from tc.graph.operators.neural.images import columns_to_image, image_to_columns
from tc.graph.operators.neural.padding import padded, padded_gradient
from tc.graph.operators.neural.windows import Windows, explicit_window, spatial_sizes
from tc.graph.operators.patches import (
    diagonal,
    flagged_first,
    strided,
    tensor_of_one,
    windows_along,
    windows_summed,
    with_diagonal,
    with_flagged,
    with_slice,
)
from tc.graph.operators.pointwise import broadcast_shape, cast
from tc.graph.operators.reductions import reduced
from tc.torch.aten.views import bounds, converted, sliced
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError, extents
from tc.torch.fx.types import array_as

aten: Final = torch.ops.aten
# So many places are kept as constants.
_MOST_PLACES: Final = 1 << 20


def _flipped(operation: Operation) -> Value:
    own = operation.value("self")
    rank = len(own.shape)
    axes = {axis % rank for axis in operation.integers("dims")} if rank else set()
    turned = [axis in axes and extent > 0 for axis, extent in enumerate(extents(own))]
    starts = [extent - 1 if turn else 0 for extent, turn in zip(extents(own), turned, strict=True)]
    return operation.builder.slice(own, starts, [-1 if turn else 1 for turn in turned], own.shape)


def _rolled(operation: Operation) -> Value:
    builder, own = operation.builder, operation.value("self")
    shifts, axes = operation.integers("shifts"), operation.integers("dims")
    found = own if axes else tensor_of_one(builder, own)
    for shift, axis in zip(shifts, axes or [0], strict=True):
        place = axis % max(len(found.shape), 1)
        extent = extents(found)[place] if found.shape else 0
        first = -shift % extent if extent else 0
        if first:
            parts = ((first, extent - first), (0, first))
            pieces = [sliced(operation, found, place, start, 1, count) for start, count in parts]
            found = concatenated(builder, pieces, place)
    return builder.reshape(found, own.shape)


def _repeated(operation: Operation) -> Value:
    own, repeats = operation.value("self"), operation.integers("repeats")
    raised = operation.builder.reshape(own, (*[1] * (len(repeats) - len(own.shape)), *own.shape))
    return tiled(operation.builder, raised, repeats)


def _triangle(*, upper: bool) -> Rule:
    def rule(operation: Operation) -> Value:
        return triangle(operation.builder, operation.value("self"), operation.integer("diagonal"), upper=upper)

    return rule


def _diagonal_last(operation: Operation) -> tuple[Value, list[int]]:
    """``self`` with the two dimensions of its diagonal behind the others, and the order of dimensions."""
    own = operation.value("self")
    rank = len(own.shape)
    pair = [operation.integer(name) % rank for name in ("dim1", "dim2")]
    order = [*(axis for axis in range(rank) if axis not in pair), *pair]
    return operation.builder.permute(own, order), order


def _diagonal(operation: Operation) -> Value:
    own, _ = _diagonal_last(operation)
    return diagonal(operation.builder, own, operation.integer("offset"))


def _diagonal_scattered(operation: Operation) -> Value:
    own, order = _diagonal_last(operation)
    found = with_diagonal(operation.builder, own, operation.value("src"), operation.integer("offset"))
    return operation.builder.permute(found, [order.index(axis) for axis in range(len(order))])


def _slice_scattered(operation: Operation) -> Value:
    own, updates, axis = operation.value("self"), operation.value("src"), operation.axis("dim")
    start, _ = bounds(operation, extents(own)[axis])
    updates = cast(operation.builder, updates, own.type)
    return with_slice(operation.builder, own, updates, axis, start, operation.integer("step"))


def _copied(operation: Operation) -> Value:
    """The elements of another tensor, broadcast and cast to the shape and the type of ``self``."""
    own, source = operation.value("self"), operation.value("src")
    return operation.builder.expand(converted(operation, source, own.type), own.shape)


def _unfolded(operation: Operation) -> Value:
    own, axis = operation.value("self"), operation.axis("dimension")
    size, step = operation.integer("size"), operation.integer("step")
    if not own.shape:
        return sliced(operation, operation.builder.reshape(own, (1,)), 0, 0, 1, size)
    return windows_along(operation.builder, own, axis, size, step, (extents(own)[axis] - size) // step + 1)


def _unfold_gradient(operation: Operation) -> Value:
    gradient, shape = operation.value("grad_in"), operation.integers("input_sizes")
    if not shape:
        return reduced(operation.builder, "unfold_gradient", gradient, [0], keep=False)  # of one element, or of none
    axis = operation.integer("dim") % len(shape)
    return windows_summed(operation.builder, gradient, axis, operation.integer("step"), shape[axis])


def _pads(operation: Operation, rank: int) -> tuple[list[int], list[int]]:
    """How many elements come before and after each axis; the argument begins with those of the last."""
    given = operation.integers("pad" if operation.has("pad") else "padding")
    before, after = [0] * rank, [0] * rank
    for at, (first, last) in enumerate(zip(given[::2], given[1::2], strict=True)):
        before[rank - 1 - at], after[rank - 1 - at] = first, last
    return before, after


def _padded(operation: Operation) -> Value:
    own = operation.value("self")
    value = operation.builder.constant(array_as(operation.number("value"), own.type), "value")
    return padded(operation.builder, own, *_pads(operation, len(own.shape)), value=value)


def _padding(mode: str) -> Rule:
    def rule(operation: Operation) -> Value:
        own = operation.value("self")
        only, first, last = _edges(operation, extents(own))
        for axis, place in only.items():
            own = sliced(operation, own, axis, place, 1, 1)
        return padded(operation.builder, own, first, last, mode)

    return rule


def _padding_gradient(mode: str) -> Rule:
    def rule(operation: Operation) -> Value:
        shape, builder = extents(operation.value("self")), operation.builder
        only, first, last = _edges(operation, shape)
        found = padded_gradient(builder, operation.value("grad_output"), first, last, mode)
        before = [only.get(axis, 0) for axis in range(len(shape))]
        after = [shape[axis] - 1 - place if axis in only else 0 for axis, place in enumerate(before)]
        return padded(builder, found, before, after)

    return rule


def _edges(operation: Operation, shape: Sequence[int]) -> tuple[dict[int, int], list[int], list[int]]:
    """The only element, by axis, of those that are cropped to nothing; and the padding before and after each axis."""
    before, after = _pads(operation, len(shape))
    only: dict[int, int] = {}
    for axis, extent in enumerate(shape):
        left = extent + min(before[axis], 0) + min(after[axis], 0)
        if left <= 0 < extent:
            only[axis] = extent - 1 if before[axis] < 0 else 0
            before[axis], after[axis] = 0, extent + before[axis] + after[axis] - 1
    return only, before, after


def _image_windows(operation: Operation, spatial: Sequence[int]) -> tuple[Windows, list[int]]:
    """The windows of an image, and how many there are along each axis."""
    names = ("kernel_size", "stride", "dilation", "padding")
    given = [operation.integers(name) for name in names]
    axes, counts = [], []
    for axis, size in enumerate(spatial_sizes(2)):
        kernel, stride, dilation, padding = (one[axis] if len(one) > 1 else one[0] for one in given)
        axes.append(explicit_window(size, kernel, stride, dilation, padding, padding))
        counts.append((spatial[axis] + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1)
    return Windows(tuple(axes)), counts


def _columns(operation: Operation) -> Value:
    builder, own = operation.builder, operation.value("self")
    image = builder.reshape(own, (*[1] * (4 - len(own.shape)), *own.shape))
    windows, counts = _image_windows(operation, extents(own)[-2:])
    found = image_to_columns(builder, image, windows, counts)
    return builder.reshape(found, found.shape[4 - len(own.shape) :])


def _image(operation: Operation) -> Value:
    builder, own = operation.builder, operation.value("self")
    columns = builder.reshape(own, (*[1] * (3 - len(own.shape)), *own.shape))
    shape = operation.integers("output_size")
    windows, counts = _image_windows(operation, shape)
    found = columns_to_image(builder, columns, windows, counts, shape)
    return builder.reshape(found, found.shape[3 - len(own.shape) :])


def _strides(operation: Operation) -> tuple[list[int], list[int], int]:
    """Which elements of memory are looked at; UnclaimedError where these are not those of ``self``."""
    size, strides = operation.integers("size"), operation.integers("stride")
    first = operation.integer("storage_offset") if operation.has("storage_offset") else 0
    given = operation.node.args[0]
    assert isinstance(given, torch.fx.Node)
    traced = given.meta["val"]
    reach = first + sum(stride * (extent - 1) for stride, extent in zip(strides, size, strict=True))
    total = math.prod(extents(operation.value("self")))
    if not traced.is_contiguous() or traced.storage_offset() != 0 or (0 not in size and reach >= total):
        raise UnclaimedError("looks at memory that is not all its operand's")
    return size, strides, first


def _strided(operation: Operation) -> Value:
    return strided(operation.builder, tensor_of_one(operation.builder, operation.value("self")), *_strides(operation))


def _strided_scattered(operation: Operation) -> Value:
    builder, own, updates = operation.builder, operation.value("self"), operation.value("src")
    size, strides, first = _strides(operation)
    if math.prod(size) > _MOST_PLACES:
        raise UnclaimedError("writes to many elements by strides")
    places = np.full(size, first, np.int64)
    for axis, (extent, stride) in enumerate(zip(size, strides, strict=True)):
        places += (np.arange(extent) * stride).reshape(-1, *[1] * (len(size) - 1 - axis))
    flat = [tensor_of_one(builder, one) for one in (own, builder.constant(places, "places"), updates)]
    return builder.reshape(written(builder, flat[0], [flat[1]], flat[2]), own.shape)


def _masked_scatter(operation: Operation) -> Value:
    return flagged_replaced(operation, operation.value("mask"), operation.value("source"))


def flagged_replaced(operation: Operation, mask: Value, updates: Value) -> Value:
    """``self`` with updates, in order, in the place of flagged elements."""
    builder = operation.builder
    if math.prod(extents(updates)) == 0:
        raise UnclaimedError("takes no elements to put in")
    given = (operation.value("self"), mask)
    shape = broadcast_shape([one.shape for one in given], operation.name)
    own, flags = (tensor_of_one(builder, builder.expand(one, shape)) for one in given)
    return builder.reshape(with_flagged(builder, own, flags, tensor_of_one(builder, updates)), shape)


def _masked_scatter_gradient(operation: Operation) -> Value:
    builder, gradient, shape = operation.builder, operation.value("grad_output"), operation.integers("sizes")
    flags = builder.expand(operation.value("mask"), gradient.shape)
    flat, flagged = (tensor_of_one(builder, one) for one in (gradient, flags))
    return builder.reshape(flagged_first(builder, flat, flagged, math.prod(shape)), tuple(shape))


RULES: Final[Rules] = {
    aten.flip.default: _flipped,
    aten.roll.default: _rolled,
    aten.repeat.default: _repeated,
    aten.tril.default: _triangle(upper=False),
    aten.triu.default: _triangle(upper=True),
    aten.diagonal.default: _diagonal,
    aten.diagonal_copy.default: _diagonal,
    aten.diagonal_scatter.default: _diagonal_scattered,
    aten.slice_scatter.default: _slice_scattered,
    aten.copy.default: _copied,
    aten.unfold.default: _unfolded,
    aten.unfold_copy.default: _unfolded,
    aten.unfold_backward.default: _unfold_gradient,
    aten.constant_pad_nd.default: _padded,
    **{getattr(aten, f"reflection_pad{rank}d").default: _padding("reflect") for rank in (1, 2, 3)},
    **{getattr(aten, f"replication_pad{rank}d").default: _padding("edge") for rank in (1, 2, 3)},
    **{getattr(aten, f"reflection_pad{rank}d_backward").default: _padding_gradient("reflect") for rank in (1, 2, 3)},
    **{getattr(aten, f"replication_pad{rank}d_backward").default: _padding_gradient("edge") for rank in (1, 2, 3)},
    aten.im2col.default: _columns,
    aten.col2im.default: _image,
    aten.as_strided.default: _strided,
    aten.as_strided_copy.default: _strided,
    aten.as_strided_scatter.default: _strided_scattered,
    aten.masked_scatter.default: _masked_scatter,
    aten.masked_scatter_backward.default: _masked_scatter_gradient,
}
