"""Scalar types against NumPy's own description of them."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from tc.base.types import ALIASES, Kind, ScalarType, computation_type, float_of, promote, scalar_type, type_names
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

NUMPY = {t: numpy_dtype(t) for t in ScalarType}
EXTENSIONS = (ScalarType.BFLOAT16, ScalarType.FLOAT8_E4M3FN, ScalarType.FLOAT8_E5M2)
INTEGERS = [t for t in ScalarType if t.is_integer]
FLOATS = [t for t in ScalarType if t.is_floating]


def has_numpy_promotion(left: ScalarType, right: ScalarType) -> bool:
    try:
        np.promote_types(NUMPY[left], NUMPY[right])
    except np.exceptions.DTypePromotionError:
        return False
    return True


PAIRS = list(itertools.product(ScalarType, repeat=2))


@pytest.mark.parametrize(("left", "right"), [pair for pair in PAIRS if has_numpy_promotion(*pair)])
def test_promotion_is_numpys(left: ScalarType, right: ScalarType) -> None:
    if {left, right} == {ScalarType.FLOAT8_E5M2, ScalarType.FLOAT16}:  # float16 holds both; NumPy takes float32
        assert promote(left, right) is ScalarType.FLOAT16
        return
    assert NUMPY[promote(left, right)] == np.promote_types(NUMPY[left], NUMPY[right])


def test_promotion_where_numpy_has_none() -> None:
    """Of bfloat16 and floats of eight bits with each other, with float16 and with long integers."""
    for left, right in (pair for pair in PAIRS if not has_numpy_promotion(*pair)):
        own, other = (left, right) if left in EXTENSIONS else (right, left)
        assert own in EXTENSIONS
        assert promote(left, right) is promote(right, left)
        if other.is_floating:
            wider = max(own, other, key=lambda t: t.itemsize)
            assert promote(own, other) is (ScalarType.FLOAT32 if own.itemsize == other.itemsize else wider)
        else:
            assert promote(own, other) is (ScalarType.FLOAT32 if other.itemsize == 2 else ScalarType.FLOAT64)


@pytest.mark.parametrize("type", list(ScalarType))
def test_sizes_and_kinds_are_numpys(type: ScalarType) -> None:
    kinds = {"b": Kind.BOOLEAN, "i": Kind.SIGNED, "u": Kind.UNSIGNED, "f": Kind.FLOATING, "V": Kind.FLOATING}
    assert type.itemsize == NUMPY[type].itemsize
    assert type.kind is kinds[NUMPY[type].kind]
    assert (type.is_integer, type.is_floating) == (type in INTEGERS, type in FLOATS)


@pytest.mark.parametrize("type", INTEGERS)
def test_limits_of_integers(type: ScalarType) -> None:
    limits = np.iinfo(type.value)
    assert (type.minimum, type.maximum) == (limits.min, limits.max)
    assert type.unit_roundoff == type.smallest_subnormal == 0.0


def test_limits_of_booleans() -> None:
    assert (ScalarType.BOOL.minimum, ScalarType.BOOL.maximum) == (0, 1)


@pytest.mark.parametrize("type", FLOATS)
def test_precision_of_floats(type: ScalarType) -> None:
    limits = torch.finfo(getattr(torch, type.value))
    assert type.unit_roundoff == limits.eps / 2
    assert type.smallest_subnormal == limits.smallest_normal * limits.eps
    assert type.largest == limits.max


@pytest.mark.parametrize("type", [t for t in ScalarType if t not in EXTENSIONS])
def test_functions_compute_where_numpys_do(type: ScalarType) -> None:
    assert NUMPY[float_of(type)] == np.exp(np.zeros(1, NUMPY[type])).dtype


def test_halves_compute_in_single_precision() -> None:
    assert all(float_of(type) is type for type in EXTENSIONS)
    halves = {t for t in ScalarType if t.is_half}
    assert halves == {ScalarType.FLOAT16, *EXTENSIONS}
    for type in ScalarType:
        assert computation_type(type) is (ScalarType.FLOAT32 if type in halves else type)


def test_names_of_the_language() -> None:
    assert {name: scalar_type(name) for name in type_names()} == {
        **{t.value: t for t in ScalarType},
        "float": ScalarType.FLOAT32,
        "double": ScalarType.FLOAT64,
        "half": ScalarType.FLOAT16,
        "int": ScalarType.INT32,
        "byte": ScalarType.UINT8,
    }
    assert set(ALIASES).isdisjoint(t.value for t in ScalarType)
    assert [str(t) for t in ScalarType] == [t.value for t in ScalarType]
    for unknown in ("Float", "float80", "int128", ""):
        assert scalar_type(unknown) is None
