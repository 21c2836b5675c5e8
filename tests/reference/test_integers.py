"""Integer and boolean arithmetic, against Python's own integers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tc.reference.compare import compare
from tests.reference.build import binary, call, cast, pointwise, reduced, select, unary
from tests.turns import one_in

OPERATORS = ("+", "-", "*", "/", "%")


def exact(operator: str, left: int, right: int) -> int:
    """The operation on unbounded integers."""
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return 0 if right == 0 else abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case _:
            return 0 if right == 0 else abs(left) % abs(right) * (-1 if left < 0 else 1)


def wrapped(value: int, dtype: str) -> int:
    """The integer of the type that equals ``value`` modulo its range."""
    limits = np.iinfo(dtype)
    return (value - int(limits.min)) % (1 << limits.bits) + int(limits.min)


def interesting(dtype: str) -> list[int]:
    """All values of an 8-bit type, the critical ones of wider types."""
    limits = np.iinfo(dtype)
    if limits.bits == 8:
        return list(range(int(limits.min), int(limits.max) + 1))
    low, high = int(limits.min), int(limits.max)
    return [v for v in (low, low + 1, -7, -3, -2, -1, 0, 1, 2, 3, 10, 129, high // 2, high - 1, high) if v >= low]


@one_in(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("operator", OPERATORS)
def test_every_pair_agrees_with_unbounded_integers(dtype: str, operator: str) -> None:
    values = interesting(dtype)
    pairs = [(a, b) for a in values for b in values]
    expected = [wrapped(exact(operator, a, b), dtype) for a, b in pairs]
    left, right = (np.array(side, dtype) for side in zip(*pairs, strict=True))
    result = pointwise(lambda a, b: binary(a, operator, b), left, right)
    assert result.values.dtype == dtype
    assert result.values.tolist() == expected
    assert not result.error.any()
    assert not result.ambiguous.any()


@pytest.mark.parametrize("source", ["int8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_integer_casts_wrap(source: str, target: str) -> None:
    values = interesting(source)
    result = pointwise(lambda a: cast(a, target), np.array(values, source))
    assert result.values.tolist() == [wrapped(v, target) for v in values]


def test_negation_and_absolute_value_of_the_least_value_wrap() -> None:
    array = np.array([-128, -5, 0, 127], np.int8)
    assert pointwise(lambda a: unary("-", a), array).values.tolist() == [-128, 5, 0, -127]
    assert pointwise(lambda a: call("abs", a), array).values.tolist() == [-128, 5, 0, 127]


def test_minimum_and_maximum_keep_integers() -> None:
    left, right = np.array([1, 2**63, 5], np.uint64), np.array([2, 2**63 + 1, 3], np.uint64)
    assert pointwise(lambda a, b: call("max", a, b), left, right).values.tolist() == [2, 2**63 + 1, 5]
    assert pointwise(lambda a, b: call("min", a, b), left, right).values.tolist() == [1, 2**63, 3]


@pytest.mark.parametrize("target", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("source", ["float32", "float64"])
def test_floating_to_integer_truncates_and_saturates(source: str, target: str) -> None:
    limits = np.iinfo(target)
    values = np.array([-2.9, -0.5, 0.5, 2.9, 1e30, -1e30, np.inf, -np.inf, np.nan, 127.5, 255.9, 2.0**63], source)
    expected = [
        0 if math.isnan(v) else int(limits.max) if v == math.inf else int(limits.min) if v == -math.inf
        else min(max(int(v), int(limits.min)), int(limits.max))
        for v in values.tolist()
    ]  # fmt: skip
    result = pointwise(lambda a: cast(a, target), values)
    assert result.values.tolist() == expected
    assert not result.error.any()


@np.errstate(over="ignore")
def test_integers_convert_to_floating_within_a_rounding() -> None:
    values = np.array([0, 3, 2**24 + 1, 2**53 + 1, 2**63 - 1, -(2**63)], np.int64)
    for target in ("float16", "float32", "float64"):
        result = pointwise(lambda a, target=target: cast(a, target), values)
        assert compare(result, values.astype(target)).ok
        assert result.error[:2].tolist() == [0.0, 0.0]
    assert pointwise(lambda a: cast(a, "float32"), values).error[2] > 0


def test_booleans_test_for_zero() -> None:
    floats = np.array([0.0, -0.0, 0.5, np.nan, np.inf], np.float32)
    assert pointwise(lambda a: cast(a, "bool"), floats).values.tolist() == [False, False, True, True, True]
    flags = np.array([False, False, True, True])
    other = np.array([False, True, False, True])
    assert pointwise(lambda a, b: binary(a, "+", b), flags, other).values.tolist() == [False, True, True, True]
    assert pointwise(lambda a, b: binary(a, "-", b), flags, other).values.tolist() == [False, True, True, False]
    assert pointwise(lambda a, b: binary(a, "&&", b), flags, other).values.tolist() == [False, False, False, True]
    assert pointwise(lambda a, b: binary(a, "||", b), flags, other).values.tolist() == [False, True, True, True]
    assert pointwise(lambda a: unary("!", a), flags).values.tolist() == [True, True, False, False]
    assert pointwise(lambda a: cast(a, "int8"), flags).values.tolist() == [0, 0, 1, 1]


def test_reductions_wrap_in_the_declared_type() -> None:
    array = np.array([[100, 100, 100], [-128, -1, 5]], np.int8)
    assert reduced("+", array).values.tolist() == [wrapped(300, "int8"), wrapped(-124, "int8")]
    assert reduced("*", array).values.tolist() == [wrapped(10**6, "int8"), wrapped(640, "int8")]
    assert reduced("min", array).values.tolist() == [100, -128]
    assert reduced("max", array).values.tolist() == [100, 5]


def test_boolean_reductions_are_or_and_and() -> None:
    array = np.array([[False, False], [True, False], [True, True]])
    assert reduced("+", array).values.tolist() == [False, True, True]
    assert reduced("*", array).values.tolist() == [False, False, True]


@pytest.mark.parametrize(("reduction", "neutral"), [("+", 0), ("*", 1), ("min", 127), ("max", -128)])
def test_an_empty_reduction_is_neutral(reduction: str, neutral: int) -> None:
    assert reduced(reduction, np.zeros((3, 0), np.int8)).values.tolist() == [neutral] * 3


def test_comparisons_of_integers_are_exact_beyond_float64() -> None:
    left, right = np.array([2**53, 2**62 + 1], np.int64), np.array([2**53 + 1, 2**62], np.int64)
    result = pointwise(lambda a, b: select(binary(a, "<", b), a, b), left, right)
    assert result.values.tolist() == [2**53, 2**62]
    assert not result.ambiguous.any()
