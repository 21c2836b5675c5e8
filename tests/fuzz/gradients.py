"""Gradients of random programs: directional derivatives beside differences of the oracle, which share no rule.

Arguments are smooth random numbers, so that differences meet no kink by accident.  Where programs jump, overflow or
vary too fast for differences of any step, nothing is said.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tc
from tc.language.program.program import Role
from tests.fuzz.arrays import make
from tests.fuzz.recipe import Recipe, ScalarArgument

Array = npt.NDArray[Any]
_FLOATING: Final = re.compile(r"\b(float|half|float16|bfloat16|float32|float8_e4m3fn|float8_e5m2)\b(?=\s*\(|\s+\w)")
_STEPS: Final = (1e-7, 1e-6, 1e-5, 1e-4, 1e-3)
# Two neighbouring steps whose differences agree so far are taken for the derivative.
_SETTLED: Final = 1e-5
_TOLERANCE: Final = 1e-3


@dataclass(frozen=True)
class Found:
    """``kind``: agreed, refused, undecided, or wrong."""

    kind: str
    message: str = ""


def widened(text: str) -> str:
    """The text with all floating types ``double``, so that differences are not rounded away."""
    return _FLOATING.sub("double", text)


def check(recipe: Recipe) -> Found:
    """Derives the gradient of a program, and compares it."""
    try:
        f = tc.define(widened(recipe.text))[recipe.name]
    except tc.SemanticError:
        return Found("refused", "no program in double")
    try:
        gradient, forward = f.gradient(), f.jvp()
    except tc.GradientError as error:
        return Found("refused", str(error))
    for derivative in (gradient, forward):
        if tc.define(str(derivative)).single().program != derivative.program:
            return Found("wrong", f"prints as something else:\n{derivative}")
    call = _Call(recipe, f)
    try:
        values = call.results(0.0)
    except tc.ArgumentError as error:
        return Found("refused", str(error))
    if not all(np.isfinite(value).all() for value in values.values()):
        return Found("undecided", "infinite")
    weights = {name: call.rng.standard_normal(value.shape) for name, value in values.items()}
    differences = [call.difference(weights, step) for step in _STEPS]
    pairs = zip(differences, differences[1:], strict=False)
    settled = [b for a, b in pairs if np.isfinite([a, b]).all() and abs(a - b) <= _SETTLED * max(abs(a), abs(b), 1e-3)]
    slopes = {"gradient": call.slope(gradient, weights), "jvp": call.change(forward, weights)}
    if not settled:
        return Found("undecided", "differences do not settle")
    for what, slope in slopes.items():
        if not any(abs(slope - own) <= _TOLERANCE * max(abs(own), 1e-2) for own in settled):
            return Found("wrong", f"{what}: {slope}, differences {differences}")
    return Found("agreed")


class _Call:
    """A definition with smooth arguments, and a direction in which they change."""

    def __init__(self, recipe: Recipe, f: tc.Comprehension) -> None:
        self.f = f
        self.rng = np.random.default_rng((recipe.seed, recipe.number))
        self.types = {tensor.name: tensor.type for tensor in f.program.tensors}
        self.arguments: dict[str, Any] = {}
        self.directions: dict[str, Array] = {}
        for name, argument in recipe.arguments:
            if isinstance(argument, ScalarArgument):
                self.arguments[name] = argument.value
            elif self.types[name].is_floating:
                self.arguments[name] = self.rng.standard_normal(recipe.shape(argument))
                self.directions[name] = self.rng.standard_normal(recipe.shape(argument))
            else:
                self.arguments[name] = make(self.rng, argument, recipe.shape(argument)).view
        self.outputs: dict[str, Array] = {}
        incoming = [t for t in f.program.tensors if t.role is Role.IN_OUT]
        if incoming:
            shapes = f.output_shapes(*self.arguments.values())
            for tensor in incoming:
                drawn = self.rng.standard_normal(shapes[tensor.name])
                is_wide = tensor.type.is_floating
                self.outputs[tensor.name] = drawn if is_wide else drawn.astype(np.dtype(tensor.type.value))

    def results(self, distance: float) -> dict[str, Array]:
        """The floating results at a distance in the direction."""
        moved = {
            name: value + distance * self.directions[name] if name in self.directions else value
            for name, value in self.arguments.items()
        }
        found = self.f.reference(*moved.values(), out=dict(self.outputs) or None)
        values = found if isinstance(found, tuple) else (found,)
        pairs = zip(self.f.program.results, values, strict=True)
        return {name: value for name, value in pairs if self.types[name].is_floating}

    def difference(self, weights: dict[str, Array], step: float) -> float:
        ahead, behind = self.results(step), self.results(-step)
        return sum(float((weight * (ahead[n] - behind[n])).sum()) for n, weight in weights.items()) / (2 * step)

    def slope(self, gradient: tc.Comprehension, weights: dict[str, Array]) -> float:
        """By the gradient."""
        found = gradient.reference(*self.arguments.values(), *self.outputs.values(), *weights.values())
        parts = found if isinstance(found, tuple) else (found,)
        pairs = zip(self.directions.values(), parts, strict=True)
        return sum(float((direction * part).sum()) for direction, part in pairs)

    def change(self, forward: tc.Comprehension, weights: dict[str, Array]) -> float:
        """By the directional derivative."""
        found = forward.reference(*self.arguments.values(), *self.outputs.values(), *self.directions.values())
        parts = found if isinstance(found, tuple) else (found,)
        return sum(float((weight * part).sum()) for weight, part in zip(weights.values(), parts, strict=True))
