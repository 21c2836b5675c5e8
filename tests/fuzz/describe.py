"""A failing recipe as text that says all there is to run it again."""

from __future__ import annotations

import numpy as np

from tests.fuzz.arrays import make
from tests.fuzz.execute import Outcome
from tests.fuzz.recipe import Recipe, ScalarArgument

_FEW = 48


def describe(recipe: Recipe, outcome: Outcome) -> str:
    """The text, the arguments with shapes, strides and few values, the options, and what went wrong."""
    rng = np.random.default_rng([recipe.seed, recipe.number])
    choices = (
        f"--seed {recipe.seed} --only {recipe.number} --target {recipe.target} --sanitizer {recipe.sanitizer.value}"
    )
    lines = [f"program {recipe.number} of seed {recipe.seed} (python -m tests.fuzz {choices})", recipe.text.rstrip()]
    for name, argument in recipe.arguments:
        if isinstance(argument, ScalarArgument):
            lines.append(f"{name} = {argument.value!r}")
            continue
        array = make(rng, argument, recipe.shape(argument)).view
        steps = tuple(stride // array.itemsize for stride in array.strides)
        kind = "torch" if argument.torch else "numpy"
        lines.append(f"{name}: {kind} {argument.type} {array.shape} strides {steps}, {argument.layout.value}")
        if array.size <= _FEW:
            lines.append(f"    = {array.tolist()}")
    lines += [f"out= {name}: {layout.value}" for name, layout in recipe.outputs]
    lines += [f"{result} lies in the memory of {name}" for result, name in recipe.shared]
    lines += [f"{size} stays open up to {most}" for size, most in recipe.opened]
    lines += [f"{recipe.options}", f"target {recipe.target}, sanitizer {recipe.sanitizer.value}"]
    lines.append(f"{recipe.name}: {outcome.detail.rstrip()}")
    return "\n".join(lines)
