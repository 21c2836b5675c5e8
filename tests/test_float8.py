"""Floats of eight bits: storage types, computed with in float32, as ml_dtypes rounds them."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.base.rounding import round_to
from tc.reference.compare import compare
from tests.turns import one_in

Array = np.ndarray[Any, Any]
TYPES = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "float8_e5m2": ml_dtypes.float8_e5m2}
TARGETS = ("cpu", "emulator")


def every(type: str) -> Array:
    return np.arange(256, dtype=np.uint8).view(TYPES[type])


def edges() -> Array:
    """Numbers around every rounding decision of both types, and beyond."""
    numbers = np.concatenate([every(type).astype(np.float32) for type in TYPES])
    numbers = np.unique(numbers[np.isfinite(numbers)])
    middles = (numbers[1:] + numbers[:-1]) / 2
    around = [np.nextafter(middles, np.float32(side)) for side in (-np.inf, np.inf)]
    rest = np.array([464, 465, 480, 500, 61440, 65535, 1e30, 1e-30, -0.0, np.inf, -np.inf, np.nan], np.float32)
    return np.concatenate([numbers, middles, *around, rest, -rest]).astype(np.float32)


@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_conversions_are_those_of_ml_dtypes(type: str, target: str) -> None:
    wide = tc.define(f"def f({type}(N) x) -> (y) {{ y(i) = float32(x(i)) }}").single()
    np.testing.assert_array_equal(np.asarray(wide(every(type), target=target)), every(type).astype(np.float32))
    narrow = tc.define(f"def f(float(N) x) -> (y) {{ y(i) = {type}(x(i)) }}").single()
    with np.errstate(all="ignore"):
        expected = edges().astype(TYPES[type]).astype(np.float32)
    result = np.asarray(narrow(edges(), target=target))
    assert result.dtype == TYPES[type]
    np.testing.assert_array_equal(result.astype(np.float32), expected)
    np.testing.assert_array_equal(np.signbit(result.astype(np.float32)), np.signbit(expected))
    doubles = tc.define(f"def f(double(N) x) -> (y) {{ y(i) = {type}(x(i)) }}").single()
    close = edges().astype(np.float64) * (1 + 2.0**-45)
    with np.errstate(all="ignore"):
        nearest = np.array([round_to(float(x), tc.ScalarType(type)) for x in close])
    np.testing.assert_array_equal(np.asarray(doubles(close, target=target)).astype(np.float64), nearest)


@pytest.mark.parametrize("type", TYPES)
def test_the_oracle_rounds_alike(type: str) -> None:
    narrow = tc.define(f"def f(float(N) x) -> (y) {{ y(i) = {type}(x(i)) }}").single()
    comparison = compare(narrow.oracle(edges())["y"], np.asarray(narrow(edges())))
    assert comparison.ok, str(comparison)
    literal = tc.define(f"def f(float(N) x) -> (y) {{ y(i) = x(i) * float32({type}(0.3)) }}").single()
    rounded = np.float32(0.3).astype(TYPES[type]).astype(np.float32)
    np.testing.assert_array_equal(literal(np.ones(2, np.float32)), [rounded, rounded])


@one_in(3)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("target", TARGETS)
def test_products_of_matrices_are_summed_in_float32(type: str, target: str) -> None:
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape).astype(TYPES[type]) for shape in ((13, 70), (70, 9)))
    wide = tc.define(f"def mm({type}(M,K) a, {type}(K,N) b) -> (c) {{ c(m,n) +=! float32(a(m,k)) * float32(b(k,n)) }}")
    np.testing.assert_allclose(
        np.asarray(wide(a, b, target=target)), a.astype(np.float64) @ b.astype(np.float64), rtol=1e-5, atol=1e-5
    )
    narrow = tc.define(f"def mm({type}(M,K) a, {type}(K,N) b) -> (c) {{ c(m,n) +=! a(m,k) * b(k,n) }}").single()
    result = np.asarray(narrow(a, b, target=target))
    assert result.dtype == TYPES[type]
    comparison = compare(narrow.oracle(a, b)["c"], result)
    assert comparison.ok, str(comparison)


def test_types_promote_and_scalars_are_rounded() -> None:
    text = """
def f(float8_e4m3fn(N) x, float8_e5m2(N) y, float16(N) z) -> (a, b, c) {
    a(i) = x(i) + y(i)
    b(i) = x(i) * z(i)
    c(i) = x(i) * 2
}"""
    x, y, z = (np.ones(3, type) for type in (ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2, np.float16))
    results = tc.define(text)(x, y, z)
    assert isinstance(results, tuple)
    assert [np.asarray(result).dtype.name for result in results] == ["float32", "float16", "float8_e4m3fn"]
    scaled = tc.define("def f(float8_e5m2 s, float(N) x) -> (y) { y(i) = float32(s) * x(i) }").single()
    np.testing.assert_array_equal(scaled(0.3, np.ones(1, np.float32)), [0.3125])
    with pytest.raises(tc.ArgumentError, match=r"100000\.0 is too large for float8_e5m2"):
        scaled(1e5, np.ones(1, np.float32))


@pytest.mark.parametrize("type", TYPES)
def test_other_backends_compile(type: str) -> None:
    f = tc.define(f"def f({type}(N) x) -> (y) {{ y(i) = nextafter(x(i), x(i) * 2) }}").single()
    for target in ("cuda:sm_80", "cuda:sm_90"):
        assert f.compile((64,), target=target).source
    x = every(type)[1:60]
    for target in TARGETS:
        comparison = compare(f.oracle(x)["y"], np.asarray(f(x, target=target)))
        assert comparison.ok, str(comparison)


def test_torch_tensors() -> None:
    torch = pytest.importorskip("torch")
    f = tc.define("def f(float8_e4m3fn(N) x) -> (y) { y(i) = float32(x(i)) }").single()
    assert torch.equal(f(torch.ones(4).to(torch.float8_e4m3fn)), torch.ones(4))


@pytest.mark.parametrize("target", TARGETS)
def test_greatest_of_a_range_begins_with_minus_infinity_which_the_type_lacks(target: str) -> None:
    f = tc.define("def f(float8_e4m3fn(M) b, int32(N) I) -> (c) { c(i) max=! b(j) where j in 0:I(i) }").single()
    b = np.array([-3, -2, 1, 4], ml_dtypes.float8_e4m3fn)
    result = np.asarray(f(b, np.array([0, 2, 4], np.int32), target=target)).astype(np.float32)
    np.testing.assert_array_equal(result, [np.nan, -2, 4])
