"""Discrete Fourier transforms.  Complex numbers are pairs in a last dimension of two elements.

A length that has divisors is taken apart: as many transforms of one divisor as the other says, a rotation, and as many
of the other.  What is left is a matrix product, as the transform is defined; its matrix depends on the length alone.
"""

from __future__ import annotations

import math
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.sizes import Dimension, least
from tc.graph.ir.values import Value
from tc.graph.operators.extents import extents_of
from tc.graph.operators.texts import definition, parameter

# Longer transforms are taken apart.
_MOST_DIRECT: Final = 64


def transformed(builder: Builder, signal: Value, length: Dimension, *, inverse: bool) -> Value:
    """The transform along dimension 1 of four, of which the last has the parts of complex numbers, or the real one.

    A signal that is shorter than the length goes on with zeros.
    """
    return _transformed(builder, fitted(builder, signal, length), inverse)


def real_transformed_back(builder: Builder, spectrum: Value, length: Dimension) -> Value:
    """The real signal of this length whose transform begins with the spectrum, which ends at half of the length."""
    half = fitted(builder, spectrum, length // 2 + 1)
    extents = extents_of(builder, [length])
    turn = extents.texts[0]
    statements = [
        f"Z(p, k, q, c) = k < K ? X(p, k, q, c) : (c == 0 ? 1 : -1) * X(p, {turn} - k, q, c) where k in 0:{turn}",
        # The sums of a real signal by itself, and with alternating signs, are real.
        f"Y(p, k, q, c) = c == 1 && (k == 0 || 2 * k == {turn}) ? 0 : Z(p, k, q, c)",
    ]
    parameters = [parameter(half.type, ["P", "K", "Q", 2], "X"), *extents.parameters]
    (whole,) = builder.call(definition("hermitian", parameters, ["Y"], statements), half, *extents.operands)
    found = _transformed(builder, whole, inverse=True)
    return builder.slice(found, [0] * 4, [1] * 4, (*found.shape[:3], 1))


def short_time(
    builder: Builder, signal: Value, window: Value | None, length: Dimension, step: int, *, half: bool
) -> Value:
    """Transforms of frames of this length, which begin ``step`` elements after each other.

    ``window``: a factor for each element of a frame.  ``half``: the first half of each transform, and the middle.
    """
    matrix = _matrix(builder, signal.type, length, length // 2 + 1 if half else length, signal.shape[2])
    if window is not None:
        factors = [parameter(matrix.type, ["N", "D", "K", 2], "M"), parameter(window.type, ["N"], "w")]
        weighted = "W(n, d, k, c) = w(n) * M(n, d, k, c)"
        (matrix,) = builder.call(definition("windowed", factors, ["W"], [weighted]), matrix, window)
    parameters = [parameter(signal.type, ["B", "L", "D"], "X"), parameter(matrix.type, ["N", "D", "K", 2], "W")]
    statement = f"Y(b, f, k, c) +=! X(b, {step} * f + n, d) * W(n, d, k, c)"
    (found,) = builder.call(definition("stft", parameters, ["Y"], [statement]), signal, matrix)
    return found


def fitted(builder: Builder, signal: Value, length: Dimension) -> Value:
    """The first elements along dimension 1, as many as the length says; zeros after the last."""
    kept = least(signal.shape[1], length)
    shape = (signal.shape[0], kept, *signal.shape[2:])
    part = builder.slice(signal, [0] * 4, [1] * 4, shape)
    if kept == length:
        return part
    extents = extents_of(builder, [length])
    statement = f"Y(p, n, q, c) = n < N ? X(p, n, q, c) : 0 where n in 0:{extents.texts[0]}"
    parameters = [parameter(part.type, ["P", "N", "Q", "C"], "X"), *extents.parameters]
    (found,) = builder.call(definition("zero_padded", parameters, ["Y"], [statement]), part, *extents.operands)
    return found


def _transformed(builder: Builder, signal: Value, inverse: bool) -> Value:
    batches, length, inner, width = signal.shape
    divisor = _divisor(length)
    if not isinstance(length, int) or divisor == 1:
        return _direct(builder, signal, inverse)
    rest = length // divisor
    outer = builder.reshape(signal, (batches, divisor, rest * inner, width))
    first = builder.reshape(_transformed(builder, outer, inverse), (batches, divisor, rest, inner, 2))
    turned = builder.reshape(_rotated(builder, first, divisor, rest, inverse), (batches * divisor, rest, inner, 2))
    second = builder.reshape(_transformed(builder, turned, inverse), (batches, divisor, rest, inner, 2))
    return builder.reshape(builder.permute(second, (0, 2, 1, 3, 4)), (batches, length, inner, 2))


def _divisor(length: Dimension) -> int:
    """The greatest divisor that is not above the square root; 1 where the length is not taken apart."""
    if not isinstance(length, int) or length <= _MOST_DIRECT:
        return 1
    return next(divisor for divisor in range(math.isqrt(length), 0, -1) if length % divisor == 0)


def _direct(builder: Builder, signal: Value, inverse: bool) -> Value:
    """The sums as they are defined."""
    length, width = signal.shape[1], signal.shape[3]
    matrix = _matrix(builder, signal.type, length, length, width, inverse=inverse)
    parameters = [parameter(signal.type, ["P", "N", "Q", "D"], "X"), parameter(signal.type, ["N", "D", "K", 2], "M")]
    statement = "Y(p, k, q, c) +=! X(p, n, q, d) * M(n, d, k, c)"
    (found,) = builder.call(definition("dft", parameters, ["Y"], [statement]), signal, matrix)
    return found


def _matrix(
    builder: Builder, type: ScalarType, length: Dimension, bins: Dimension, width: Dimension, *, inverse: bool = False
) -> Value:
    """What part ``d`` of element ``n`` adds to part ``c`` of bin ``k``.  An inverse is divided by the length."""
    extents = extents_of(builder, [length, bins])
    turn, count = extents.texts
    scale = f" / {turn}" if inverse else ""
    statements = [
        f"C(m) = {type}(cospi(float64(2 * m) / {turn}){scale}) where m in 0:{turn}",
        f"S(m) = {type}({'-' if inverse else ''}sinpi(float64(2 * m) / {turn}){scale}) where m in 0:{turn}",
        f"J(n, k) = int64(n) * k % {turn} where n in 0:{turn}, k in 0:{count}",
        "M(n, d, k, c) = c == d ? C(J(n, k)) : c == 0 ? S(J(n, k)) : -S(J(n, k)) " + f"where d in 0:{width}, c in 0:2",
    ]
    text = definition("dft_matrix", list(extents.parameters), ["M"], statements)
    (found,) = builder.call(text, *extents.operands)
    return found


def _rotated(builder: Builder, spectra: Value, rows: int, columns: int, inverse: bool) -> Value:
    """Element ``k, n`` of dimensions 1 and 2, turned by ``k * n`` parts of a turn."""
    angle = f"float64(2 * k * n) / {rows * columns}"
    ranges = f"where k in 0:{rows}, n in 0:{columns}"
    turns = [
        f"C(k, n) = {spectra.type}(cospi({angle})) {ranges}",
        f"S(k, n) = {spectra.type}({'' if inverse else '-'}sinpi({angle})) {ranges}",
    ]
    cosines, sines = builder.call(definition("turns", [], ["C", "S"], turns))
    other = "(c == 0 ? -X(p, k, n, q, 1) : X(p, k, n, q, 0))"
    statement = f"Y(p, k, n, q, c) = X(p, k, n, q, c) * C(k, n) + {other} * S(k, n)"
    parameters = [parameter(spectra.type, ["P", "K", "N", "Q", 2], "X")]
    parameters += [parameter(spectra.type, ["K", "N"], name) for name in "CS"]
    (found,) = builder.call(definition("rotate", parameters, ["Y"], [statement]), spectra, cosines, sines)
    return found
