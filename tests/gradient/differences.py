"""Derivatives of the oracle by differences, which share nothing with the rules of gradients."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tc

Array = npt.NDArray[Any]
# Distances, of which the best one counts: the nearest for smooth values, wider ones where these are great.
_STEPS: Final = (1e-6, 1e-5, 1e-4)
_FLOATING: Final = re.compile(r"\b(float|half|float16|bfloat16|float32|float8_e4m3fn|float8_e5m2)\b(?=\s*\(|\s+\w)")


def widened(text: str) -> str:
    """The text with all floating types ``double``, so that differences are not rounded away."""
    return _FLOATING.sub("double", text)


def is_floating(comprehension: tc.Comprehension, name: str) -> bool:
    return comprehension.program.tensor(name).type.is_floating


def tensors_of(comprehension: tc.Comprehension) -> list[str]:
    """The floating tensors among the arguments."""
    tensors = {tensor.name: tensor.type for tensor in comprehension.program.tensors}
    return [n for n in comprehension.program.arguments if n in tensors and tensors[n].is_floating]


def as_array(value: Any) -> Array:
    """The only result of a call."""
    return np.asarray(value)


def as_tuple(value: Any) -> tuple[Array, ...]:
    return value if isinstance(value, tuple) else (np.asarray(value),)


def assert_derivatives(
    comprehension: tc.Comprehension,
    arguments: Mapping[str, Any],
    outputs: Mapping[str, Array] | None = None,
    *,
    seed: int = 0,
    tolerance: float = 1e-5,
    kernels: bool = True,
    instead: tc.Comprehension | None = None,
) -> None:
    """The gradient and the directional derivative agree with differences, and their kernels with the oracle.

    ``instead``: what is taken for the gradient.
    """
    rng = np.random.default_rng(seed)
    outputs = dict(outputs or {})
    names = tensors_of(comprehension)
    directions = {name: rng.standard_normal(np.shape(arguments[name])) for name in names}
    results = comprehension.program.results
    values = as_tuple(comprehension.reference(*arguments.values(), out=outputs or None))
    weights = {
        name: rng.standard_normal(value.shape)
        for name, value in zip(results, values, strict=True)
        if is_floating(comprehension, name)
    }
    gradient, forward = instead or comprehension.gradient(), comprehension.jvp()
    found = _called(gradient, (*arguments.values(), *outputs.values(), *weights.values()), kernels=kernels)
    slope = sum(float((part * directions[name]).sum()) for name, part in zip(names, found, strict=True))
    scale = sum(float(np.abs(part * directions[name]).sum()) for name, part in zip(names, found, strict=True))
    changes = _called(forward, (*arguments.values(), *outputs.values(), *directions.values()), kernels=kernels)
    slopes = [slope, sum(float((c * weights[n]).sum()) for n, c in zip(weights, changes, strict=True))]
    differences = [_difference(comprehension, arguments, outputs, directions, weights, step) for step in _STEPS]
    for own in slopes:
        error = min(abs(own - difference) for difference in differences)
        assert error <= tolerance * max(abs(own), 1e-2 * scale, 1e-6), (own, differences)


def _called(comprehension: tc.Comprehension, arguments: Sequence[object], *, kernels: bool) -> tuple[Array, ...]:
    expected = as_tuple(comprehension.reference(*arguments))
    if kernels:
        for result, value in zip(as_tuple(comprehension(*arguments)), expected, strict=True):
            np.testing.assert_allclose(result, value, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(value).max(initial=0)))
    return expected


def _difference(
    comprehension: tc.Comprehension,
    arguments: Mapping[str, Any],
    outputs: Mapping[str, Array],
    directions: Mapping[str, Array],
    weights: Mapping[str, Array],
    step: float,
) -> float:
    def total(distance: float) -> float:
        moved = {n: v + distance * directions[n] if n in directions else v for n, v in arguments.items()}
        values = as_tuple(comprehension.reference(*moved.values(), out=dict(outputs) or None))
        pairs = zip(comprehension.program.results, values, strict=True)
        return sum(float((weights[name] * value).sum()) for name, value in pairs if name in weights)

    return (total(step) - total(-step)) / (2 * step)
