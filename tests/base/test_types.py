"""Scalar types against NumPy's own description of them."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
import torch

from tc.base.types import ALIASES, Kind, ScalarType, computation_type, float_of, promote, scalar_type, type_names

NUMPY = {t: np.dtype(ml_dtypes.bfloat16 if t is ScalarType.BFLOAT16 else t.value) for t in ScalarType}
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
    assert NUMPY[promote(left, right)] == np.promote_types(NUMPY[left], NUMPY[right])


def test_promotion_where_numpy_has_none() -> None:
    missing = {frozenset(pair) for pair in PAIRS if not has_numpy_promotion(*pair)}
    bfloat16 = ScalarType.BFLOAT16
    assert missing == {frozenset((bfloat16, other)) for other in (ScalarType.FLOAT16, *INTEGERS)} - {
        frozenset((bfloat16, other)) for other in (ScalarType.INT8, ScalarType.UINT8)
    }
    for pair in missing:
        (other,) = pair - {bfloat16}
        narrow = other in (ScalarType.FLOAT16, ScalarType.INT16, ScalarType.UINT16)
        assert promote(bfloat16, other) is promote(other, bfloat16)
        assert promote(bfloat16, other) is (ScalarType.FLOAT32 if narrow else ScalarType.FLOAT64)


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


@pytest.mark.parametrize("type", [t for t in ScalarType if t is not ScalarType.BFLOAT16])
def test_functions_compute_where_numpys_do(type: ScalarType) -> None:
    assert NUMPY[float_of(type)] == np.exp(np.zeros(1, NUMPY[type])).dtype


def test_halves_compute_in_single_precision() -> None:
    assert float_of(ScalarType.BFLOAT16) is ScalarType.BFLOAT16
    halves = {t for t in ScalarType if t.is_half}
    assert halves == {ScalarType.FLOAT16, ScalarType.BFLOAT16}
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
