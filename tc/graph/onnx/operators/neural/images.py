"""Operators that move elements between channels and places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.onnx.operators.neural.windows import pads_of, per_axis
from tc.graph.operators.neural.images import columns_to_image, depth_to_space, space_to_depth
from tc.graph.operators.neural.windows import Windows, explicit_window, span, spatial_sizes


def _depth_to_space(operation: Operation) -> Sequence[Value]:
    block, first = _block(operation)
    x = operation.operand(0)
    if isinstance(x.shape[1], int) and x.shape[1] % (block * block):
        raise operation.error(f"{x.shape[1]} channels do not divide into blocks of {block} times {block}")
    return [depth_to_space(operation.builder, x, block, channels_first=first)]


def _space_to_depth(operation: Operation) -> Sequence[Value]:
    block, first = _block(operation)
    x = operation.operand(0)
    for extent in x.shape[2:]:
        if isinstance(extent, int) and extent % block:
            raise operation.error(f"an extent of {extent} does not divide into blocks of {block}")
    return [space_to_depth(operation.builder, x, block, channels_first=first)]


def _block(operation: Operation) -> tuple[int, bool]:
    """The extent of a block, and whether a channel of its own is the outermost of what is moved."""
    mode, block = operation.text("mode", "DCR"), operation.integer("blocksize")
    if mode not in ("DCR", "CRD"):
        raise operation.error(f"`mode` is {mode!r}, and must be DCR or CRD")
    if block < 1:
        raise operation.error(f"`blocksize` is {block}, and must be positive")
    return block, mode == "CRD"


def _col2im(operation: Operation) -> Sequence[Value]:
    x, shape, kernel = (
        operation.operand(0),
        operation.sizes(operation.operand(1)),
        operation.integers(operation.operand(2)),
    )
    rank = len(shape)
    strides, dilations = per_axis(operation, "strides", rank), per_axis(operation, "dilations", rank)
    before, after = pads_of(operation, rank)
    windows, counts = [], []
    for axis, size in enumerate(spatial_sizes(rank)):
        windows.append(explicit_window(size, kernel[axis], strides[axis], dilations[axis], before[axis], after[axis]))
        reach = span(kernel[axis], dilations[axis])
        counts.append((shape[axis] + before[axis] + after[axis] - reach) // strides[axis] + 1)
    return [columns_to_image(operation.builder, x, Windows(tuple(windows)), counts, shape)]


RULES: Final[dict[str, Rule]] = {"Col2Im": _col2im, "DepthToSpace": _depth_to_space, "SpaceToDepth": _space_to_depth}
