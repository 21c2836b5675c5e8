"""Conversions between all types, and the rounding of halves."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np
import pytest

from tc.base.rounding import round_to
from tc.base.types import ScalarType
from tc.language.program.program import Cast
from tests.codegen.build import read
from tests.codegen.harness import Array, dtype_of, evaluate
from tests.codegen.integers import INTEGERS, edges, wrapped
from tests.turns import every, one_in

HALVES = (ScalarType.FLOAT16, ScalarType.BFLOAT16)
FLOATS = (*HALVES, ScalarType.FLOAT32, ScalarType.FLOAT64)


def convert(values: Array, targets: list[ScalarType]) -> dict[ScalarType, Array]:
    source = ScalarType(values.dtype.name)
    casts = {f"to_{target}": Cast(read("x", source, "i"), target) for target in targets}
    results = evaluate(casts, {"x": values})
    return {target: results[f"to_{target}"] for target in targets}


@one_in(3)
@pytest.mark.parametrize("source", INTEGERS, ids=str)
def test_integers_convert_by_wrapping_and_to_the_nearest_float(source: ScalarType) -> None:
    values = edges(source)
    results = convert(np.array(values, dtype_of(source)), list(ScalarType))
    for target, result in results.items():
        if target is ScalarType.BOOL:
            assert result.tolist() == [value != 0 for value in values]
        elif target.is_integer:
            assert result.tolist() == [wrapped(value, target) for value in values], target
        else:
            with np.errstate(over="ignore"):
                exact = result.astype(np.float64)
                np.testing.assert_array_equal(exact, np.array([nearest(value, target) for value in values]))


def nearest(value: float, target: ScalarType) -> float:
    """The number of a floating type that is nearest to a float64 or an integer."""
    if target.itemsize == 1:
        return round_to(float(value), target)
    if target is not ScalarType.BFLOAT16:
        return float(dtype_of(target).type(value))
    # Through float32 the value would be rounded twice, unless the first rounding goes to odd.
    with np.errstate(over="ignore"):
        first = np.float32(value)
    if math.isfinite(first) and float(first) != value and not int(first.view(np.uint32)) & 1:
        first = np.nextafter(first, np.float32(math.copysign(math.inf, value - float(first))))
    return float(ml_dtypes.bfloat16(first))


def saturated(value: float, target: ScalarType) -> int:
    if math.isnan(value):
        return 0
    return target.maximum if value >= target.maximum else target.minimum if value <= target.minimum else int(value)


@pytest.mark.parametrize("source", FLOATS, ids=str)
def test_floats_truncate_and_saturate(source: ScalarType) -> None:
    exact = [0.0, -0.0, 0.5, -0.5, 0.99, -0.99, 1.5, -1.5, math.nan, math.inf, -math.inf, 1e-45, 3e38, -3e38, 1e300]
    exact += [
        sign * (2.0**bits + offset)
        for bits in (7, 8, 15, 16, 31, 32, 63, 64)
        for sign in (1, -1)
        for offset in (-1, -0.5, 0, 0.5, 1)
    ]
    random = np.random.default_rng(0)
    exact += (random.standard_normal(400) * 10.0 ** random.integers(0, 21, 400)).tolist()
    with np.errstate(over="ignore"):
        values = np.array(exact, dtype_of(source))
    for target, result in convert(values, [ScalarType.BOOL, *INTEGERS]).items():
        if target is ScalarType.BOOL:
            assert result.tolist() == [float(value) != 0 for value in values]
        else:
            assert result.tolist() == [saturated(float(value), target) for value in values], target


@one_in(2)
@pytest.mark.parametrize("source", every(2, FLOATS), ids=str)
def test_the_zero_of_an_integer_is_positive(source: ScalarType) -> None:
    """Compilers make ``trunc`` of the way there and back, whose zero has the sign of its argument."""
    values = np.array([-0.0, 0.0, -0.5, 0.5, -1e-3, math.nan, -0.99] * 7, dtype_of(source))
    x = read("x", source, "i")
    integers = [type for type in INTEGERS if type is not ScalarType.BOOL]
    there_and_back = {f"{type}_{target}": Cast(Cast(x, type), target) for type in integers for target in FLOATS}
    for name, result in evaluate(there_and_back, {"x": values}).items():
        assert not result.view(f"u{result.itemsize}").any(), name


def bit_patterns() -> Array:
    """Float32 values at, beside and between the halves of both kinds, and everything special."""
    random = np.random.default_rng(0)
    halves = np.arange(0, 1 << 16, 7, dtype=np.uint16)
    exact = np.concatenate(
        [halves.view(np.float16).astype(np.float32), halves.view(ml_dtypes.bfloat16).astype(np.float32)]
    )
    bits = exact.view(np.uint32)
    between = [bits + np.uint32(offset) for offset in (0, 1, 0xFFF, 0x1000, 0x1001, 0x7FFF, 0x8000, 0x8001)]
    return np.concatenate([*between, random.integers(0, 1 << 32, 5000, dtype=np.uint32)]).view(np.float32)


def test_floats_round_to_the_nearest_half() -> None:
    values = bit_patterns()
    with np.errstate(over="ignore", invalid="ignore"):
        for target, result in convert(values, list(HALVES)).items():
            expected = values.astype(dtype_of(target)).astype(np.float64)
            np.testing.assert_array_equal(result.astype(np.float64), expected, str(target))


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_every_half_widens_exactly(half: ScalarType) -> None:
    values = np.arange(1 << 16, dtype=np.uint16).view(dtype_of(half))
    widened = convert(values, [ScalarType.FLOAT64])[ScalarType.FLOAT64]
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(widened, values.astype(np.float64))


def test_float64_rounds_to_a_half_once() -> None:
    """Beside the middle between two halves by less than float32 can tell."""
    random = np.random.default_rng(0)
    for half, bits, least in ((ScalarType.FLOAT16, 10, -20), (ScalarType.BFLOAT16, 7, -140)):
        middle = (random.integers(0, 1 << bits, 500) + 0.5) * 2.0**-bits + 1
        values = middle * np.exp2(random.integers(least, 14, 500)) * (1 + random.choice((-1, 0, 1), 500) * 2.0**-40)
        rounded = convert(np.concatenate([values, -values]), [half])[half]
        expected = [nearest(value, half) for value in (*values, *-values)]
        np.testing.assert_array_equal(rounded.astype(np.float64), expected)
