"""Fourier transforms, windows, and the weights of mel spectrograms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.sizes import elements
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.extents import extents_of
from tc.graph.operators.fourier import real_transformed_back, short_time, transformed
from tc.graph.operators.pointwise import cast
from tc.graph.operators.texts import definition, parameter


def _wide(operation: Operation, operand: Value) -> Value:
    """The operand, in which halves are computed as float32."""
    return cast(operation.builder, operand, ScalarType.FLOAT32) if operand.type.is_half else operand


def _dft(operation: Operation) -> Sequence[Value]:
    builder, operand = operation.builder, operation.operand(0)
    rank = len(operand.shape)
    if rank < 2 or operand.shape[-1] not in (1, 2):
        raise operation.error("the last dimension of the signal has the real part, or the real and the imaginary one")
    given = operation.optional(2)
    axis = (
        operation.integer("axis", 1) if operation.opset < 20 else -2 if given is None else operation.integers(given)[0]
    )
    axis = operation.axis(axis, rank)
    if axis == rank - 1:
        raise operation.error(f"axis {axis} has the parts of complex numbers; give another one")
    inverse, half = bool(operation.integer("inverse", 0)), bool(operation.integer("onesided", 0))
    extent, count = operand.shape[axis], operation.optional(1)
    length = 2 * (extent - 1) if inverse and half else extent
    length = length if count is None else operation.sizes(count)[0]
    before, after = operand.shape[:axis], operand.shape[axis + 1 : -1]
    signal = builder.reshape(_wide(operation, operand), (elements(before), extent, elements(after), operand.shape[-1]))
    if inverse and half:
        found = real_transformed_back(builder, signal, length)
    else:
        found = transformed(builder, signal, length, inverse=inverse)
        if half:
            kept = (found.shape[0], length // 2 + 1, *found.shape[2:])
            found = builder.slice(found, [0] * 4, [1] * 4, kept)
    found = builder.reshape(found, (*before, found.shape[1], *after, found.shape[3]))
    return [cast(builder, found, operand.type)]


def _stft(operation: Operation) -> Sequence[Value]:
    builder, operand, window, count = (
        operation.builder,
        operation.operand(0),
        operation.optional(2),
        operation.optional(3),
    )
    if len(operand.shape) == 2:
        operand = builder.reshape(operand, (*operand.shape, 1))
    (step,) = operation.integers(operation.operand(1))
    length = operand.shape[1] if window is None else window.shape[0]
    if window is None and count is not None:
        length = operation.sizes(count)[0]
    if step < 1:
        raise operation.error(f"`frame_step` is {step}; it must be 1 at least")
    if isinstance(length, int) and isinstance(operand.shape[1], int) and length > operand.shape[1]:
        raise operation.error(f"a frame has {length} elements, and the signal {operand.shape[1]}")
    signal, factors = _wide(operation, operand), None if window is None else _wide(operation, window)
    half = bool(operation.integer("onesided", 1))
    return [cast(builder, short_time(builder, signal, factors, length, step, half=half), operand.type)]


def _window(*factors: float) -> Rule:
    """A sum of cosines of whole turns, with these factors."""

    def rule(operation: Operation) -> Sequence[Value]:
        type = operation.type_of(operation.integer("output_datatype", 1))
        (size,) = operation.sizes(operation.operand(0))
        extents = extents_of(operation.builder, [size])
        count = extents.texts[0]
        # A window that is not periodic ends as it begins.
        turn = count if operation.integer("periodic", 1) else f"max({count} - 1, 1)"
        terms = [f"{factor!r} * cospi(float64({2 * turns} * i) / {turn})" for turns, factor in enumerate(factors)]
        statement = f"Y(i) = {type}({' + '.join(terms)}) where i in 0:{count}"
        text = definition(operation.kind.lower(), list(extents.parameters), ["Y"], [statement])
        return [operation.one(text, *extents.operands)]

    return rule


def _mel_weights(operation: Operation) -> Sequence[Value]:
    """Triangles, whose corners are equally far from each other on the mel scale."""
    builder = operation.builder
    type = operation.type_of(operation.integer("output_datatype", 1))
    bands, length = (operation.integers(operation.operand(place))[0] for place in range(2))
    rate, low, high = (builder.reshape(operation.operand(place), ()) for place in range(2, 5))
    mel = "2595 * log10(1 + float64({}) / 700)"
    statements = [
        f"A = {mel.format('low')}",
        f"B = {mel.format('high')}",
        f"M(i) = (A + i * (B - A) / {bands + 2}) / 2595 where i in 0:{bands + 2}",
        f"F(i) = int64(floor({length + 1} * 700 * (exp10(M(i)) - 1) / rate))",
        "rising(j, i) = j >= F(i) && j <= F(i + 1) ? float64(j - F(i)) / (F(i + 1) - F(i)) : 0",
        "first(j, i) = F(i + 1) == F(i) ? float64(j == F(i + 1)) : rising(j, i)",
        "falls(j, i) = j >= F(i + 1) && j < F(i + 2)",
        f"Y(j, i) = {type}(falls(j, i) ? float64(F(i + 2) - j) / (F(i + 2) - F(i + 1)) : first(j, i))",
    ]
    ranges = f" where j in 0:{length // 2 + 1}, i in 0:{bands}"
    statements[4:] = [statement + ranges for statement in statements[4:]]
    parameters = [parameter(v.type, [], name) for v, name in ((rate, "rate"), (low, "low"), (high, "high"))]
    return [operation.one(definition("mel_weights", parameters, ["Y"], statements), rate, low, high)]


RULES: Final[dict[str, Rule]] = {
    "BlackmanWindow": _window(0.42, -0.5, 0.08),
    "DFT": _dft,
    "HammingWindow": _window(25 / 46, -21 / 46),
    "HannWindow": _window(0.5, -0.5),
    "MelWeightMatrix": _mel_weights,
    "STFT": _stft,
}
