"""Resizing, and its older form, upsampling."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import Final

import numpy as np

from tc.graph.ir.sizes import Dimension, Size, number
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.neural.resizing import resized
from tc.graph.operators.neural.stretches import POSITIONS, ROUNDED, Interpolation, Stretch

_MODES: Final = ("nearest", "linear", "cubic")
_POLICIES: Final = ("stretch", "not_larger", "not_smaller")


def _resize(operation: Operation) -> Sequence[Value]:
    if operation.opset < 11:
        return _upsample(operation)
    x, region = operation.operand(0), operation.optional(1)
    rank = len(x.shape)
    given = operation.list("axes")
    axes = tuple(range(rank)) if given is None else tuple(operation.axis(axis, rank) for axis in given)
    mode, positions = operation.text("mode", "nearest"), operation.text("coordinate_transformation_mode", "half_pixel")
    rounding = operation.text("nearest_mode", "round_prefer_floor")
    for name, value, known in (
        ("mode", mode, _MODES),
        ("coordinate_transformation_mode", positions, POSITIONS),
        ("nearest_mode", rounding, ROUNDED),
    ):
        _require_one_of(operation, name, value, known)
    how = Interpolation(
        mode,
        positions,
        rounding,
        operation.number("cubic_coeff_a", -0.75),
        bool(operation.integer("exclude_outside", 0)),
        bool(operation.integer("antialias", 0)),
        operation.number("extrapolation_value", 0.0),
    )
    cropped = positions == "tf_crop_and_resize"
    if cropped and region is None:
        raise operation.error("`tf_crop_and_resize` takes a region, the operand 1, which is missing")
    stretches = []
    for place, (axis, (count, scale)) in enumerate(zip(axes, _counts(operation, axes, how), strict=True)):
        part = (place, len(axes) + place) if cropped else None
        same = count == x.shape[axis] and scale in (None, 1.0)
        if not same or (part is not None and not _is_whole(operation, region, part)):
            stretches.append(Stretch(axis, count, scale, part))
    return [resized(operation.builder, x, stretches, how, region if cropped else None) if stretches else x]


def _upsample(operation: Operation) -> Sequence[Value]:
    """Positions are those of the first element of each; numbers are rounded down."""
    x, mode = operation.operand(0), operation.text("mode", "nearest")
    _require_one_of(operation, "mode", mode, (*_MODES, "bilinear"))
    scales: Sequence[float]
    if operation.opset < 7:
        scales = (1.0, 1.0, operation.number("height_scale"), operation.number("width_scale"))
    elif operation.opset < 9:
        scales = operation.numbers("scales") or ()
    else:
        scales = tuple(map(float, operation.contents(operation.operand(1)).reshape(-1)))
    if len(scales) != len(x.shape):
        raise operation.error(f"there are {len(scales)} scales for {len(x.shape)} axes")
    stretches = [
        Stretch(axis, _scaled(extent, scale), scale)
        for axis, (extent, scale) in enumerate(zip(x.shape, scales, strict=True))
        if scale != 1
    ]
    how = Interpolation("linear" if mode == "bilinear" else mode, "asymmetric", "floor")
    return [resized(operation.builder, x, stretches, how) if stretches else x]


def _require_one_of(operation: Operation, name: str, value: str, known: Collection[str]) -> None:
    if value not in known:
        raise operation.error(f"`{name}` is {value!r}, and must be one of {', '.join(known)}")


def _is_whole(operation: Operation, region: Value | None, part: tuple[int, int]) -> bool:
    """Whether a region is known to be all of an axis."""
    held = None if region is None else operation.builder.array_of(region)
    return held is not None and (held[part[0]], held[part[1]]) == (0, 1)


def _counts(operation: Operation, axes: Sequence[int], how: Interpolation) -> list[tuple[Dimension, float | None]]:
    """How many elements there are along each axis, and the scale, where that is not their quotient."""
    shape = [operation.operand(0).shape[axis] for axis in axes]
    scales, wanted = operation.optional(2), operation.optional(3)
    if scales is not None and scales.shape == (0,):
        scales = None
    if (scales is None) == (wanted is None):
        raise operation.error("either scales or sizes must be given, and not both")
    if scales is not None:
        factors = [float(scale) for scale in operation.contents(scales).reshape(-1)]
        _require_each(operation, factors, axes, "scales")
        return [(_scaled(extent, factor), factor) for extent, factor in zip(shape, factors, strict=True)]
    assert wanted is not None
    sizes = operation.sizes(wanted)
    _require_each(operation, sizes, axes, "sizes")
    policy = operation.text("keep_aspect_ratio_policy", "stretch")
    _require_one_of(operation, "keep_aspect_ratio_policy", policy, _POLICIES)
    if policy == "stretch" and not how.smooth:
        return [(size, None) for size in sizes]
    what = f"{operation.builder.origin}: an extent that is resized with `antialias`, or keeps the aspect ratio,"
    extents = [number(extent, what) for extent in shape]
    quotients = [number(size, what) / extent for size, extent in zip(sizes, extents, strict=True)]
    if policy == "stretch":
        return list(zip(sizes, quotients, strict=True))
    scale = min(quotients) if policy == "not_larger" else max(quotients)
    return [(int(scale * extent + 0.5), scale) for extent in extents]


def _require_each(operation: Operation, found: Sequence[object], axes: Sequence[int], what: str) -> None:
    if len(found) != len(axes):
        raise operation.error(f"there are {len(found)} {what} for {len(axes)} axes")


def _scaled(extent: Dimension, scale: float) -> Dimension:
    """The extent times the scale, rounded down; the product is of type float32, as scales are."""
    if isinstance(extent, Size):
        exact = Fraction(scale)
        near = exact.limit_denominator(1 << 10)  # what was rounded to a float32
        exact = near if np.float32(float(near)) == np.float32(scale) else exact
        return extent * exact.numerator // exact.denominator
    return math.floor(np.float32(extent) * np.float32(scale))


RULES: Final[dict[str, Rule]] = {"Resize": _resize, "Upsample": _upsample}
