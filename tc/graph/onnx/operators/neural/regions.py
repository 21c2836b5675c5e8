"""Pooling of regions of images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.neural.regions import Alignment, aligned_regions, pooled_regions


def _max_roi_pool(operation: Operation) -> Sequence[Value]:
    shape = operation.list("pooled_shape") or ()
    if len(shape) != 2 or min(shape) < 1:
        raise operation.error(f"`pooled_shape` is {shape}, and must have two positive numbers")
    x, regions = operation.operand(0), operation.operand(1)
    return [pooled_regions(operation.builder, x, regions, shape, operation.number("spatial_scale", 1.0))]


def _roi_align(operation: Operation) -> Sequence[Value]:
    # Before version 16, corners were not moved to the middle of elements.
    default = "half_pixel" if operation.opset >= 16 else "output_half_pixel"
    given = {"coordinate_transformation_mode": default, "mode": "avg"}
    known = {"coordinate_transformation_mode": ("half_pixel", "output_half_pixel"), "mode": ("avg", "max")}
    positions, mode = (operation.text(name, value).lower() for name, value in given.items())
    for name, value in zip(given, (positions, mode), strict=True):
        if value not in known[name]:
            raise operation.error(f"`{name}` is {value!r}, and must be {' or '.join(known[name])}")
    how = Alignment(
        (operation.integer("output_height", 1), operation.integer("output_width", 1)),
        operation.integer("sampling_ratio", 0),
        operation.number("spatial_scale", 1.0),
        positions == "half_pixel",
        mode == "max",
    )
    x, regions, images = (operation.operand(index) for index in range(3))
    return [aligned_regions(operation.builder, x, regions, images, how)]


RULES: Final[dict[str, Rule]] = {"MaxRoiPool": _max_roi_pool, "RoiAlign": _roi_align}
