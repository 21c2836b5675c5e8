"""The bounds are sound: kernels simulated with other orders and roundings lie inside; and they are not silly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt
import pytest

from tc.base.types import ScalarType
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import Role
from tc.reference.compare import compare
from tc.reference.evaluate import evaluate
from tests.reference.build import (
    binary,
    call,
    cast,
    literal,
    pointwise,
    read,
    reduced,
    specialize,
    statement,
    tensor,
    unary,
)

Array = npt.NDArray[Any]
FLOATS = [np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)]
SIZES = (1, 7, 129, 1025)


def normal(seed: int, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float32) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def accumulated(terms: Array, dtype: npt.DTypeLike) -> Array:
    """One term after the other, each sum rounded to the type."""
    total = np.zeros(terms.shape[:-1], dtype)
    for k in range(terms.shape[-1]):
        total = (total + terms[..., k]).astype(dtype)
    return total


def in_lanes(terms: Array, dtype: npt.DTypeLike) -> Array:
    """Eight partial sums, then their sum."""
    return accumulated(np.stack([accumulated(terms[..., lane::8], dtype) for lane in range(8)], axis=-1), dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("size", SIZES)
def test_dot_products_in_any_order_with_and_without_contraction(dtype: np.dtype[Any], size: int) -> None:
    left, right = normal(size, (9, size), dtype), normal(size + 1, (9, size), dtype)
    result = reduced("+", left, right, formula=lambda a, b: binary(a, "*", b))
    wide = np.float32 if dtype.itemsize == 2 else dtype
    exact_terms = left.astype(np.float64) * right.astype(np.float64)
    for terms in (exact_terms.astype(wide), (left * right).astype(wide), exact_terms):
        for order in (accumulated, in_lanes):
            for sequence in (terms, terms[:, ::-1]):
                found = compare(result, order(sequence, wide).astype(dtype))
                assert found.ok, str(found)
                assert found.ambiguous == 0


@pytest.mark.parametrize("size", [129, 1025])
def test_the_bound_of_a_dot_product_is_near_its_actual_error(size: int) -> None:
    left, right = np.abs(normal(size, (200, size))), np.abs(normal(size + 1, (200, size)))
    result = reduced("+", left, right, formula=lambda a, b: binary(a, "*", b))
    found = compare(result, accumulated(left * right, np.float32))
    assert found.ok
    assert found.worst > 0.01
    wrong = (result.values + 10 * result.error).astype(np.float32)
    assert not compare(result, wrong).ok


def test_a_dropped_term_is_noticed() -> None:
    left, right = normal(1, (9, 1025)), normal(2, (9, 1025))
    result = reduced("+", left, right, formula=lambda a, b: binary(a, "*", b))
    assert not compare(result, (left[:, 1:] * right[:, 1:]).sum(axis=1)).ok


def test_values_are_those_of_rational_arithmetic() -> None:
    left, right = normal(3, (5, 37)), normal(4, (5, 37))
    result = reduced("+", left, right, formula=lambda a, b: binary(a, "*", b))
    for row in range(5):
        terms = zip(left[row].tolist(), right[row].tolist(), strict=True)
        exact = sum((Fraction(a) * Fraction(b) for a, b in terms), Fraction(0))
        assert abs(Fraction(float(result.values[row])) - exact) <= Fraction(1, 2**40)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_products_in_any_order(dtype: np.dtype[Any]) -> None:
    factors = (1 + normal(5, (40, 31), np.float64) / 4).astype(dtype)
    result = reduced("*", factors)
    wide = np.float32 if dtype.itemsize == 2 else dtype
    for sequence in (factors, factors[:, ::-1], np.sort(factors.astype(np.float64), axis=1)):
        product = np.ones(40, wide)
        for k in range(31):
            product = (product * sequence[:, k].astype(wide)).astype(wide)
        assert compare(result, product.astype(dtype)).ok
    assert not compare(result, (result.values + 2 * result.error + 0.01).astype(dtype)).ok


def test_half_sums_accumulate_in_single_precision() -> None:
    ones = np.ones((1, 4097), np.float16)
    result = reduced("+", ones)
    assert compare(result, np.array([4096], np.float16)).ok
    assert not compare(result, np.array([2048], np.float16)).ok  # where a sum kept in half stops growing


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_half_expressions_may_round_always_or_only_at_the_end(dtype: np.dtype[Any]) -> None:
    a, b, c = (normal(seed, 1000, dtype) for seed in (6, 7, 8))
    result = pointwise(
        lambda x, y, z: binary(binary(x, "*", y), "-", binary(z, "/", binary(unary("-", y), "+", 2.5))), a, b, c
    )
    wide = np.float32 if dtype.itemsize == 2 else np.longdouble
    for compute in (dtype, wide):
        x, y, z = (value.astype(compute) for value in (a, b, c))
        once = x * y - z / (-y + np.asarray(2.5).astype(compute))
        assert compare(result, once.astype(dtype)).ok


@pytest.mark.parametrize("size", [7, 129])
def test_errors_carry_over_to_later_statements(size: int) -> None:
    """A normalization: each row minus its mean, over its deviation; stored values are rounded, the oracle's are not."""
    array = normal(9, (size, size)) + np.float32(3)
    source = tensor("A", "float32", (size, size))
    mean, spread = tensor("M", "float32", (size,), Role.TEMPORARY), tensor("V", "float32", (size,), Role.TEMPORARY)
    output = tensor("O", "float32", (size, size), Role.OUTPUT)
    rows = {"i": (0, size), "k": (0, size)}
    count = literal(float(size), "float32")
    centered = binary(read(source, "i", "k"), "-", read(mean, "i"))
    statements = [
        statement(mean, ["i"], rows, binary(read(source, "i", "k"), "/", count), "+", initialize=True),
        statement(spread, ["i"], rows, binary(binary(centered, "*", centered), "/", count), "+", initialize=True),
        statement(output, ["i", "k"], rows, binary(centered, "*", call("rsqrt", binary(read(spread, "i"), "+", 1e-5)))),
    ]
    result = evaluate(specialize([source, mean, spread, output], statements), {"A": array})["O"]
    average = accumulated(array / np.float32(size), np.float32)[:, None]
    variance = accumulated((array - average) ** 2 / np.float32(size), np.float32)[:, None]
    kernel = (array - average) * (np.float32(1) / np.sqrt(variance + np.float32(1e-5)))
    found = compare(result, kernel)
    assert found.ok, str(found)
    assert found.worst > 1e-3
    assert not compare(result, kernel * np.float32(1.01)).ok


# --- functions -----------------------------------------------------------------------------------------------

POSITIVE, UNIT, OPEN, WIDE = (0.05, 20.0), (-0.95, 0.95), (0.02, 0.98), (-20.0, 20.0)
ONE_OPERAND = {
    "acos": UNIT, "acosh": (1.1, 20.0), "asin": UNIT, "asinh": WIDE, "atan": WIDE, "atanh": UNIT, "cbrt": WIDE,
    "ceil": WIDE, "cos": WIDE, "cosh": WIDE, "cospi": WIDE, "cyl_bessel_i0": WIDE, "cyl_bessel_i1": WIDE,
    "erf": WIDE, "erfc": (-5.0, 8.0), "erfcinv": (0.05, 1.9), "erfcx": (-3.0, 20.0), "erfinv": UNIT, "exp": WIDE,
    "exp10": WIDE, "exp2": WIDE, "expm1": WIDE, "fabs": WIDE, "floor": WIDE, "j0": WIDE, "j1": WIDE,
    "lgamma": (-5.0, 20.0), "log": POSITIVE, "log10": POSITIVE, "log1p": (-0.9, 20.0), "log2": POSITIVE,
    "logb": WIDE, "normcdf": (-5.0, 5.0), "normcdfinv": OPEN, "rcbrt": WIDE, "round": WIDE, "rsqrt": POSITIVE,
    "sin": WIDE, "sinh": WIDE, "sinpi": WIDE, "sqrt": POSITIVE, "tan": WIDE, "tanh": WIDE,
    "tgamma": (-5.0, 12.0), "trunc": WIDE, "y0": POSITIVE, "y1": POSITIVE, "abs": WIDE,
}  # fmt: skip
MORE_OPERANDS = {
    "atan2": (WIDE, WIDE), "fdim": (WIDE, WIDE), "fdivide": (WIDE, POSITIVE), "hypot": (WIDE, WIDE),
    "pow": (POSITIVE, (-3.0, 3.0)), "rhypot": (POSITIVE, WIDE), "copysign": (WIDE, WIDE), "fmod": (WIDE, POSITIVE),
    "fmax": (WIDE, WIDE), "fmin": (WIDE, WIDE), "nextafter": (WIDE, WIDE), "remainder": (WIDE, POSITIVE),
    "min": (WIDE, WIDE), "max": (WIDE, WIDE), "fma": (WIDE, WIDE, WIDE), "norm3d": (WIDE, WIDE, WIDE),
    "rnorm3d": (POSITIVE, WIDE, WIDE), "norm4d": (WIDE, WIDE, WIDE, WIDE), "rnorm4d": (POSITIVE, WIDE, WIDE, WIDE),
}  # fmt: skip


def perturbed(name: str, domains: Sequence[tuple[float, float]], dtype: npt.DTypeLike) -> None:
    """Operands that are products carry an error: wherever in it they lie, the function's value is in the bound."""
    rng = np.random.default_rng(11)
    count = len(domains)
    factors = [rng.uniform(low, high, 500).astype(dtype) for low, high in domains]
    scale = np.asarray(rng.uniform(0.98, 1.0, 500)).astype(dtype)
    result = pointwise(lambda *x: call(name, *(binary(x[p], "*", x[count]) for p in range(count))), *factors, scale)
    roundoff = 2.0**-24 if np.dtype(dtype) == np.float32 else 2.0**-11
    for shift in (-0.99, -0.4, 0.0, 0.6, 0.99):
        exact = [f.astype(np.float64) * scale.astype(np.float64) * (1 + shift * roundoff) for f in factors]
        values = pointwise(lambda *x: call(name, *x), *exact).values
        found = compare(replace(result, type=ScalarType.FLOAT64), values)
        assert found.ok, f"{name}: {found}"
    assert np.mean(np.isinf(result.error)) <= 0.01
    assert np.mean(result.ambiguous) <= 0.05


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=str)
@pytest.mark.parametrize("name", sorted(ONE_OPERAND))
def test_functions_of_one_inexact_operand(name: str, dtype: type[np.floating[Any]]) -> None:
    low, high = ONE_OPERAND[name]
    if dtype is np.float16:
        low, high = max(low, -4.0), min(high, 4.0)  # so that exp and its like stay in range
    perturbed(name, [(low, high)], dtype)


@pytest.mark.parametrize("name", sorted(MORE_OPERANDS))
def test_functions_of_more_inexact_operands(name: str) -> None:
    perturbed(name, MORE_OPERANDS[name], np.float32)


def test_every_function_is_tested() -> None:
    assert set(ONE_OPERAND) | set(MORE_OPERANDS) == set(FUNCTIONS)


def test_a_function_of_an_exact_operand_is_within_its_ulps() -> None:
    array = np.linspace(-3, 3, 101, dtype=np.float32)
    result = pointwise(lambda a: call("exp", a), array)
    good = np.exp(array.astype(np.float64)).astype(np.float32)
    assert compare(result, good).ok
    assert not compare(result, good * np.float32(1 + 20 * 2.0**-23)).ok
    assert not result.ambiguous.any()


# Arguments where SciPy or a plain formula is wrong in float64, with values from arithmetic of 40 digits.
DEMANDING = [
    ("erfc", 24.25, 9.4198953781325638588e-258),
    ("normcdf", -35.7, 1.9765810879591522991e-279),
    ("erfcx", -17.3, 1.9099653324308123127e130),
    ("j0", 1e10, 2.1755917502468917269e-6),
    ("j1", -1e8, -7.3063911815518548593e-5),
    ("y0", 1e10, -7.6765081757929366905e-6),
    ("y1", 1e6, -3.3104337672417628886e-4),
    ("sinpi", 1e6 + 0.1, 0.3090169943053815355),
    ("cospi", -0.4999999, 3.1415926536800801457e-7),
    ("lgamma", 1e-310, 713.8013788281541651),
    ("cyl_bessel_i1", 250.0, 9.4386044915155705615e106),
    ("exp10", -200.3, 5.0118723362725916524e-201),
    ("erfinv", 0.999999999, 4.3200053881053620459),
]


@pytest.mark.parametrize(("name", "argument", "value"), DEMANDING)
def test_the_values_of_functions_are_accurate_themselves(name: str, argument: float, value: float) -> None:
    result = pointwise(lambda a: call(name, a), np.array([argument]))
    scale = 1e-3 if name in ("j0", "j1", "y0", "y1") else abs(value)
    assert abs(result.values[0] - value) <= FUNCTIONS[name].ulps * 2.0**-52 * scale
    assert abs(result.values[0] - value) <= result.error[0]


@pytest.mark.parametrize("name", ["sqrt", "log", "acosh", "asin", "atanh"])
def test_an_interval_that_leaves_the_domain_accepts_anything(name: str) -> None:
    edge = {"sqrt": 0.0, "log": 0.0, "acosh": 1.0, "asin": 1.0, "atanh": 1.0}[name]
    third = np.array([1 / 3], np.float32)
    result = pointwise(lambda a: call(name, binary(binary(binary(a, "*", 3.0), "-", 1.0), "+", edge)), third)
    assert np.isinf(result.error).all()
    assert result.ambiguous.all()


def test_conversions_between_floating_types_round() -> None:
    array = normal(12, 300, np.float64)
    for target in (np.float32, np.float16, ml_dtypes.bfloat16):
        dtype = np.dtype(target)
        result = pointwise(lambda a, name=dtype.name: cast(cast(a, name), "float64"), array)
        assert compare(result, array.astype(target).astype(np.float64)).ok
        assert not compare(result, (result.values + 2.5 * result.error)).ok
    exact = pointwise(lambda a: cast(a, "float16"), np.array([0.5, 1024.0], np.float64))
    assert not exact.error.any()
