"""Activations of recurrent cells, by their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.onnx.operation import Operation
from tc.graph.operators.texts import literal

# Formulas of `x`, with the defaults of `{alpha}` and `{beta}`, where they have such numbers.
_FORMULAS: Final[dict[str, tuple[str, float | None, float | None]]] = {
    "affine": ("{alpha} * x + {beta}", 1.0, 0.0),
    "elu": ("(x < 0 ? {alpha} * (exp(x) - 1) : x)", 1.0, None),
    "hardsigmoid": ("min(max({alpha} * x + {beta}, 0), 1)", 0.2, 0.5),
    "leakyrelu": ("(x < 0 ? {alpha} * x : x)", 0.01, None),
    "relu": ("max(x, 0)", None, None),
    "scaledtanh": ("{alpha} * tanh({beta} * x)", 1.0, 1.0),
    "sigmoid": ("1 / (1 + exp(-x))", None, None),
    "softplus": ("(max(x, 0) + log1p(exp(-abs(x))))", None, None),
    "softsign": ("x / (1 + abs(x))", None, None),
    "tanh": ("tanh(x)", None, None),
    "thresholdedrelu": ("(x < {alpha} ? 0 : x)", 1.0, None),
}


def activations(operation: Operation, defaults: Sequence[str], type: ScalarType) -> list[str]:
    """Formulas of ``x`` for the activations of a cell, or for ``defaults``.

    Each that has an alpha takes the next one that is given, and so for beta.
    """
    names = operation.texts("activations") or defaults
    if len(names) < len(defaults):
        raise operation.error(f"{len(names)} activations are given, and {len(defaults)} are used")
    alphas, betas = (iter(operation.numbers(f"activation_{name}") or ()) for name in ("alpha", "beta"))
    found = []
    for name in names[: len(defaults)]:
        if name.lower() not in _FORMULAS:
            raise operation.error(f"there is no activation {name!r}; there are {', '.join(_FORMULAS)}")
        formula, alpha, beta = _FORMULAS[name.lower()]
        given = {
            key: literal(next(numbers, default), type)
            for key, numbers, default in (("alpha", alphas, alpha), ("beta", betas, beta))
            if default is not None
        }
        found.append(formula.format(**given))
    return found
