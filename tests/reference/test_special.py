"""NaN, infinities, overflow, subnormals and empty reductions."""

from __future__ import annotations

import math

import numpy as np
import pytest

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
    select,
    specialize,
    statement,
    tensor,
)

NAN, INF = float("nan"), float("inf")


def certain(values: list[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.array(values, np.float32)


def test_min_and_max_propagate_nan_and_fmin_and_fmax_ignore_it() -> None:
    left, right = certain([NAN, 1, NAN, -INF]), certain([1, NAN, NAN, INF])
    for name, expected in (
        ("min", [NAN, NAN, NAN, -INF]),
        ("max", [NAN, NAN, NAN, INF]),
        ("fmin", [1, 1, NAN, -INF]),
        ("fmax", [1, 1, NAN, INF]),
    ):
        result = pointwise(lambda a, b, name=name: call(name, a, b), left, right)
        np.testing.assert_array_equal(result.values, expected)
        assert not result.error.any()


@pytest.mark.parametrize("reduction", ["min", "max", "+", "*"])
def test_reductions_propagate_nan(reduction: str) -> None:
    result = reduced(reduction, certain([1, NAN, 3]).reshape(1, 3))
    assert np.isnan(result.values).all()
    assert not result.error.any()


def test_sums_of_infinities() -> None:
    rows = np.stack([certain([1, INF, 2]), certain([INF, 3, -INF]), certain([-INF, -INF, 0])])
    result = reduced("+", rows)
    np.testing.assert_array_equal(result.values, [INF, NAN, -INF])
    assert not result.error.any()


def test_products_of_infinities() -> None:
    rows = np.stack([certain([1, INF, -2]), certain([INF, 3, 4]), certain([INF, 0, 1])])
    result = reduced("*", rows)
    np.testing.assert_array_equal(result.values[:2], [-INF, INF])
    assert not result.error[:2].any()
    assert np.isnan(result.values[2])


@pytest.mark.parametrize(("reduction", "neutral"), [("+", 0.0), ("*", 1.0), ("min", INF), ("max", -INF)])
def test_an_empty_reduction_is_neutral(reduction: str, neutral: float) -> None:
    result = reduced(reduction, np.zeros((2, 0), np.float32))
    assert result.values.tolist() == [neutral, neutral]
    assert compare(result, certain([neutral, neutral])).ok


def test_overflow_of_the_declared_type_is_infinite() -> None:
    left = certain([3e38, 3e38, -3e38, 1e20])
    result = pointwise(lambda a, b: binary(a, "*", b), left, certain([10, 1, 10, 1e20]))
    np.testing.assert_array_equal(result.values[[0, 2, 3]], [INF, -INF, INF])
    assert not result.error[[0, 2, 3]].any()
    assert compare(result, certain([INF, 3e38, -INF, INF])).ok
    assert not compare(result, certain([3.4e38, 3e38, -INF, INF])).ok


def test_the_product_inside_fma_does_not_overflow() -> None:
    left, right, addend = np.array([1e200, 1e200, INF]), np.array([1e200, 1e200, 2.0]), np.array([-INF, 1.0, -INF])
    result = pointwise(lambda a, b, c: call("fma", a, b, c), left, right, addend)
    np.testing.assert_array_equal(result.values, [-INF, INF, NAN])
    assert not result.error.any()


def test_float64_overflow_is_certain() -> None:
    left = np.array([1e308, 1e200, 1e300, -1e308])
    right = np.array([1e308, 1e200, 1e-300, -1e308])
    for operator, expected in (("+", [INF, 2e200, 1e300, -INF]), ("*", [INF, INF, 1.0, INF]), ("/", [1, 1, INF, 1])):
        result = pointwise(lambda a, b, operator=operator: binary(a, operator, b), left, right)
        assert compare(result, np.array(expected)).ok
        assert not np.isinf(result.error).any()


def test_infinity_is_accepted_where_the_bound_reaches_it() -> None:
    largest = np.finfo(np.float32).max
    result = pointwise(lambda a, b: binary(a, "+", b), certain([float(largest)]), certain([1e31]))
    assert compare(result, certain([INF])).ok
    assert compare(result, certain([float(largest)])).ok
    assert not compare(result, certain([-INF])).ok
    assert not compare(result, certain([NAN])).ok


def test_a_product_that_overflows_alone_may_survive_a_contraction() -> None:
    near, far = certain([2e19, 1e30]), certain([2e19, 1e30])
    result = pointwise(lambda a, b, c: binary(binary(a, "*", b), "+", c), near, far, certain([-3e38, -3e38]))
    assert compare(result, certain([INF, INF])).ok
    assert compare(result, certain([float(np.float32(4e38 - 3e38)), INF])).ok
    assert not compare(result, certain([INF, 1e38])).ok


@pytest.mark.parametrize(("dtype", "large"), [(np.float32, 1e30), (np.float64, 1e200)])
def test_an_overflowing_product_contracted_with_an_infinite_sum_may_vanish(dtype: type, large: float) -> None:
    factors: tuple[np.ndarray, np.ndarray] = np.array([[large, -INF]], dtype), np.array([[large, 1]], dtype)
    result = reduced("+", *factors, formula=lambda a, b: binary(a, "*", b))
    for outcome in (NAN, -INF):
        assert compare(result, np.array([outcome], dtype)).ok


def test_a_sum_that_overflows_in_some_order_accepts_anything() -> None:
    result = reduced("+", certain([3e38, 3e38, -3e38, -3e38]).reshape(1, 4))
    for outcome in (0.0, INF, -INF, NAN):
        assert compare(result, certain([outcome])).ok
    assert result.ambiguous.all()


def test_a_sum_that_overflows_in_every_order_is_infinite() -> None:
    result = reduced("+", certain([3e38, 3e38, 1e38, -1e30]).reshape(1, 4))
    assert compare(result, certain([INF])).ok
    assert not compare(result, certain([3.4e38])).ok


def test_a_product_accepts_what_its_orders_can_give() -> None:
    result = reduced("*", certain([1e30, 1e30, 1e-30, 1e-30]).reshape(1, 4))
    for outcome in (1.0, INF, 0.0):
        assert compare(result, certain([outcome])).ok
    plain = reduced("*", certain([1.5, 2.5, 3.5, 0.25]).reshape(1, 4))
    assert compare(plain, certain([1.5 * 2.5 * 3.5 * 0.25])).ok
    assert not compare(plain, certain([3.2813])).ok


def test_division_by_zero() -> None:
    result = pointwise(lambda a, b: binary(a, "/", b), certain([1, -1, 0, 1]), certain([0, 0, 0, -0.0]))
    np.testing.assert_array_equal(result.values, [INF, -INF, NAN, -INF])
    assert not result.error.any()


def test_remainder_rounds_ties_to_the_even_multiple() -> None:
    pairs = [(x / 2, y) for x in range(-14, 15) for y in (1.0, 2.0, 3.0, -2.0, 0.5)]
    dividend, divisor = certain([x for x, _ in pairs]), certain([y for _, y in pairs])
    result = pointwise(lambda a, b: call("remainder", a, b), dividend, divisor)
    np.testing.assert_array_equal(result.values, [math.remainder(x, y) for x, y in pairs])


def test_subnormals_are_kept() -> None:
    tiny = certain([1e-40, 2.0**-149, 1e-20])
    result = pointwise(lambda a, b: binary(a, "*", b), tiny, certain([0.5, 1, 1e-20]))
    assert compare(result, tiny * certain([0.5, 1, 1e-20])).ok
    assert not compare(result, certain([0, 0, 0])).ok
    copied = pointwise(lambda a: a, tiny)
    assert compare(copied, tiny).ok
    assert not compare(copied, certain([0, 0, 1e-20])).ok


def test_nan_is_not_equal_and_chooses_the_other_branch() -> None:
    values = certain([NAN, 1, -1])
    result = pointwise(lambda a: select(binary(a, "<", 0.0), literal(1.0, "float32"), literal(2.0, "float32")), values)
    assert result.values.tolist() == [2, 2, 1]
    result = pointwise(lambda a: binary(a, "!=", a), values)
    assert result.values.tolist() == [True, False, False]


def test_signed_zeros_are_equal() -> None:
    result = pointwise(lambda a: a, certain([0.0]))
    assert compare(result, certain([-0.0])).ok


def test_an_element_that_no_statement_wrote_may_hold_anything() -> None:
    output = tensor("O", "float32", (3,), Role.OUTPUT)
    written = statement(output, ["i"], {"i": (0, 2)}, literal(1.0, "float32"))
    result = evaluate(specialize([output], [written]), {})["O"]
    assert compare(result, certain([1, 1, NAN])).ok
    assert not compare(result, certain([1, 2, NAN])).ok


def test_in_out_tensors_combine_with_what_they_held() -> None:
    source, output = tensor("A", "float32", (2, 3)), tensor("O", "float32", (2,), Role.IN_OUT)
    array = np.array([[1, 2, 3], [4, 1, 2]], np.float32)
    for reduction, expected in (("+", [INF, 9]), ("*", [INF, 16]), ("min", [1, 1]), ("max", [INF, 4])):
        written = statement(output, ["i"], {"i": (0, 2), "k": (0, 3)}, read(source, "i", "k"), reduction)
        result = evaluate(specialize([source, output], [written]), {"A": array, "O": certain([INF, 2])})["O"]
        np.testing.assert_array_equal(result.values, expected)


def test_computed_zeros_may_have_either_sign() -> None:
    zeros = certain([0.0, 0.0])
    computed = pointwise(lambda a, b: binary(1.0, "/", call("min", a, b)), zeros, -zeros)
    for outcome in (INF, -INF):
        assert compare(computed, certain([outcome, outcome])).ok
    given = pointwise(lambda a: call("copysign", literal(1.0, "float32"), a), certain([0.0, -0.0]))
    assert given.values.tolist() == [1, -1]
    assert not given.error.any()


def test_nan_has_no_sign_to_be_unsure_of() -> None:
    zeros = certain([0.0, 0.0])
    computed = pointwise(lambda a, b: call("copysign", a, call("min", b, b)), certain([np.nan, 1.0]), zeros)
    assert not np.isnan(computed.error).any()
    assert compare(computed, certain([np.nan, -1.0])).ok
    assert not compare(computed, certain([1.0, 1.0])).ok


def test_converted_zeros_keep_their_sign() -> None:
    result = pointwise(lambda a: binary(literal(1.0, "float64"), "/", cast(a, "float64")), certain([0.0, -0.0, 1.0]))
    np.testing.assert_array_equal(result.values, [INF, -INF, 1])
    assert not np.isinf(result.error).any()
