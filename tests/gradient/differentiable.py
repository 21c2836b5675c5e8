"""The definitions of the corpus that have a gradient, and why others have none."""

from __future__ import annotations

import functools
import math

import numpy as np

import tc
from tc.runtime.frameworks.numpy_arrays import numpy_dtype
from tests.comprehensions.case import Argument, Array, Case, Sizes
from tests.comprehensions.corpus import CASES
from tests.gradient.differences import is_floating, tensors_of, widened

# What has no derivative, and why.
REFUSED = {
    "functions": "`nextafter` has no gradient",
}
# Nothing that a result depends on is floating, or no result is.  They are named, because every process that collects
# tests would define the corpus otherwise.
WITHOUT_FLOATS = frozenset(
    {
        *(f"sum_of_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
        *(f"comparison_{name}" for name in ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")),
        "argument_of_minimum",
        "argument_of_minimum_of_blocks",
        "argument_of_minimum_of_minima",
        "arguments_of_minima_of_blocks",
        "arguments_of_minima_of_minima",
        "broadcast_of_integer",
        "broadcast_of_scalar",
        "cast",
        "cast_with_argument",
        "constants_without_inputs",
        "copy_of_scalar",
        "fibonacci",
        "gather_of_integers",
        "greatest_and_least_by_remainder",
        "histogram",
        "integer_arithmetic",
        "prefix_sums",
        "segment_weights",
        "zero_without_inputs",
    }
)
# Differences say nothing where values jump, at ties, and beside infinities.
JUMPING = {"segment_counts", "segment_scales", "greatest_and_its_index", "greatest_behind"}


@functools.cache
def _definitions(text: str) -> tc.Definitions:
    return tc.define(widened(text))


def in_double(case: Case) -> tc.Comprehension:
    definitions = _definitions(case.text)
    return definitions.single() if case.definition is None else definitions[case.definition]


def has_floats(case: Case) -> bool:
    """Whether a floating result can follow from a floating tensor."""
    own = in_double(case)
    return bool(tensors_of(own)) and any(is_floating(own, name) for name in own.program.results)


def least_sizes(case: Case) -> Sizes:
    """The smallest sizes at which there is something to differentiate."""
    found = [own for own in case.ragged_sizes if own and min(own.values()) > 1] or [case.paper_sizes]
    return min(found, key=lambda own: math.prod(own.values()))


def wide(name: str, value: Argument | Array, comprehension: tc.Comprehension) -> Argument | Array:
    """The value in float64, if it is a floating tensor."""
    tensors = {tensor.name: tensor.type for tensor in comprehension.program.tensors}
    is_wide = name in tensors and tensors[name].is_floating
    return np.asarray(value, np.float64) if is_wide else value


def gradient_call(case: Case, seed: int) -> tuple[tc.Comprehension, tuple[Argument | Array, ...]]:
    """The gradient of a definition in its own types, and arguments for it."""
    definitions = tc.define(case.text)
    f = definitions.single() if case.definition is None else definitions[case.definition]
    rng = np.random.default_rng(seed)
    inputs, outputs = case.make_inputs(rng, least_sizes(case)), case.make_outputs(rng, least_sizes(case))
    types = {tensor.name: tensor.type for tensor in f.program.tensors}
    shapes = f.output_shapes(*inputs.values())
    adjoints = (
        rng.standard_normal(shape).astype(numpy_dtype(types[name]))
        for name, shape in shapes.items()
        if types[name].is_floating
    )
    return f.gradient(), (*inputs.values(), *outputs.values(), *adjoints)


DIFFERENTIABLE = [case for case in CASES if case.name not in {*WITHOUT_FLOATS, *REFUSED, *JUMPING}]
