"""Attributes of ONNX that say how windows move."""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.ir.sizes import Dimension, number
from tc.graph.onnx.operation import Operation
from tc.graph.operators.neural.windows import Window, Windows, explicit_window, same_window, span, spatial_sizes


def kernel_of(operation: Operation, extents: Sequence[Dimension]) -> tuple[int, ...]:
    """The extents of a window, which weights have, if there are any, and the attribute repeats."""
    given = operation.list("kernel_shape")
    found = tuple(number(extent, f"{operation.builder.origin}: an extent of the weights") for extent in extents)
    if given and given != found:
        raise operation.error(f"`kernel_shape` is {given}, and the weights have {found}")
    return found


def windows_of(operation: Operation, extents: Sequence[Dimension], kernel: Sequence[int]) -> Windows:
    """The windows over spatial axes with these extents."""
    rank = len(extents)
    if len(kernel) != rank:
        raise operation.error(f"a window with {len(kernel)} dimensions over {rank}")
    strides, dilations = per_axis(operation, "strides", rank), per_axis(operation, "dilations", rank)
    before, after = pads_of(operation, rank)
    mode = operation.text("auto_pad", "NOTSET")
    up = mode == "NOTSET" and bool(operation.integer("ceil_mode", 0))
    found: list[Window] = []
    for axis, size in enumerate(spatial_sizes(rank)):
        extent, shape = extents[axis], (kernel[axis], strides[axis], dilations[axis])
        if mode in ("SAME_UPPER", "SAME_LOWER"):
            window = same_window(size, extent, *shape, lower=mode == "SAME_LOWER")
            if window is None:
                number(extent, f"{operation.builder.origin}: an extent that a window skips over with `auto_pad`")
            assert window is not None
        elif mode in ("NOTSET", "VALID"):
            padding = (before[axis], after[axis]) if mode == "NOTSET" else (0, 0)
            _require_room(operation, extent, sum(padding), shape)
            window = explicit_window(size, *shape, *padding, up=up)
        else:
            raise operation.error(f"`auto_pad` is {mode!r}, and must be NOTSET, SAME_UPPER, SAME_LOWER or VALID")
        found.append(window)
    return Windows(tuple(found))


def per_axis(operation: Operation, name: str, rank: int) -> tuple[int, ...]:
    """An attribute with a positive number for each spatial axis, 1 by default."""
    found = operation.list(name) or (1,) * rank
    if len(found) != rank or min(found, default=1) < 1:
        raise operation.error(f"`{name}` is {found}, and must have {rank} positive numbers")
    return found


def pads_of(operation: Operation, rank: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """How many elements of padding there are before and after each spatial axis."""
    found = operation.list("pads") or (0,) * (2 * rank)
    if len(found) != 2 * rank:
        raise operation.error(f"`pads` is {found}, and must have {2 * rank} numbers")
    return found[:rank], found[rank:]


def _require_room(operation: Operation, extent: Dimension, padding: int, shape: tuple[int, int, int]) -> None:
    """GraphError where a window reaches further than the axis and its padding, and no window less fits."""
    kernel, stride, dilation = shape
    reach = span(kernel, dilation)
    if isinstance(extent, int) and extent + padding - reach < -stride:
        raise operation.error(f"a window over {reach} elements does not fit {extent} with {padding} of padding")
