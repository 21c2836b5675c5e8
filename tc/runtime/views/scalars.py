"""Scalar arguments: Python's and NumPy's numbers and zero-dimensional arrays, in the type the definition asks for."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable
from typing import assert_never

import numpy as np

from tc.base.errors import ArgumentError
from tc.base.rounding import round_to
from tc.base.types import Kind, ScalarType


def convert_scalar(value: object, type: ScalarType, place: str) -> int | float:
    """``value`` as a number of ``type``: an integer in its range, or a float that the type represents.

    Floats are rounded to nearest; everything else must be exact.  ArgumentError, naming ``place``, for what does not
    fit: 3.5 or 1e30 for int32, 300 for int8, 2 for bool, 1e39 for float32.
    """
    number = _number(value, type, place)
    match type.kind:
        case Kind.FLOATING:
            return _rounded(number, type, place)
        case Kind.BOOLEAN | Kind.SIGNED | Kind.UNSIGNED:
            return _whole(number, type, place)
        case _:
            assert_never(type.kind)


def is_followed(value: object) -> bool:
    """Whether a scalar argument is a tensor that autograd follows; see ``ArrayView``."""
    torch = sys.modules.get("torch")
    return torch is not None and getattr(value, "requires_grad", False) and bool(torch.is_grad_enabled())


def is_transformed(value: object) -> bool:
    """Whether a tensor stands for others inside of ``torch.func``, as members of a batch do; it has no memory then."""
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return False
    return bool(torch._C._functorch.is_functorch_wrapped_tensor(value))


def _whole(number: int | float, type: ScalarType, place: str) -> int:
    if isinstance(number, float) and not number.is_integer():
        raise ArgumentError(f"{place}: {number!r} is no {type}; pass a whole number")
    if not type.minimum <= number <= type.maximum:
        raise ArgumentError(
            f"{place}: {_shortened(number)} does not fit {type}, which holds {type.minimum} to {type.maximum}"
        )
    return int(number)


def _number(value: object, type: ScalarType, place: str) -> int | float:
    if isinstance(value, (int, float)):
        return value
    shape = getattr(value, "shape", None)
    if shape is None and hasattr(value, "__index__"):
        return operator.index(value)
    if shape is not None and tuple(shape) != ():
        raise ArgumentError(f"{place}: expected one {type}, got an array of shape {tuple(shape)}")
    # NumPy's numbers, and arrays and tensors without dimensions.
    item: Callable[[], object] | None = getattr(value, "item", None)
    if item is not None:
        try:
            inner = item()
        except (RuntimeError, TypeError) as error:  # meta tensors, traced values
            raise ArgumentError(f"{place}: the value of a {_name(value)} cannot be read: {error}") from error
        if isinstance(inner, (int, float)):
            return inner
        if isinstance(inner, np.floating):  # a long double has no Python type
            return float(inner)
    raise ArgumentError(f"{place}: expected a number for {type}, got {_name(value)}")


def _name(value: object) -> str:
    return value.__class__.__name__


def _rounded(number: int | float, type: ScalarType, place: str) -> float:
    """The value of a floating type nearest to ``number``; infinities and NaN are values like others."""
    try:
        value = float(number)
        if not math.isfinite(value):
            return value
        rounded = round_to(value, type)
    except OverflowError:  # an integer beyond float64
        rounded = math.inf
    if math.isfinite(rounded):
        return rounded
    raise ArgumentError(f"{place}: {_shortened(number)} is too large for {type}")


def _shortened(number: int | float) -> str:
    if isinstance(number, int) and number.bit_length() > 256:
        return f"an integer of {number.bit_length()} bits"
    return repr(number)
