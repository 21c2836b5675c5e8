"""Gradients and directional derivatives of every differentiable definition of the corpus, in float64."""

from __future__ import annotations

import re
from collections.abc import Mapping

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.comprehensions.case import Argument, Case
from tests.comprehensions.corpus import CASES
from tests.gradient.differences import as_tuple, assert_derivatives
from tests.gradient.differentiable import (
    DIFFERENTIABLE,
    REFUSED,
    WITHOUT_FLOATS,
    gradient_call,
    has_floats,
    in_double,
    least_sizes,
    wide,
)
from tests.turns import every


@pytest.mark.parametrize("case", every(9, DIFFERENTIABLE), ids=lambda case: case.name)
def test_derivatives_agree_with_differences(case: Case) -> None:
    comprehension = in_double(case)
    rng = np.random.default_rng(1)
    sizes = least_sizes(case)
    inputs: Mapping[str, Argument] = case.make_inputs(rng, sizes)
    outputs = case.make_outputs(rng, sizes)
    assert_derivatives(
        comprehension,
        {name: wide(name, value, comprehension) for name, value in inputs.items()},
        {name: np.asarray(wide(name, value, comprehension)) for name, value in outputs.items()},
        tolerance=1e-4,
    )


@pytest.mark.parametrize("case", every(24, DIFFERENTIABLE), ids=lambda case: case.name)
def test_kernels_of_gpus_agree_with_the_oracle(case: Case) -> None:
    """In the types of the definition, on the emulator."""
    gradient, values = gradient_call(case, seed=2)
    found = as_tuple(gradient(*values, target="emulator"))
    for (name, expected), result in zip(gradient.oracle(*values).items(), found, strict=True):
        comparison = compare(expected, result)
        assert comparison.ok, f"{name}: {comparison}"


@pytest.mark.parametrize("case", every(8, DIFFERENTIABLE), ids=lambda case: case.name)
def test_texts_parse_back_equal(case: Case) -> None:
    for derivative in (in_double(case).gradient(), in_double(case).jvp()):
        assert tc.define(str(derivative)).single().program == derivative.program


@pytest.mark.parametrize("case", [case for case in CASES if case.name in REFUSED], ids=lambda case: case.name)
def test_refusals_say_what_has_none(case: Case) -> None:
    with pytest.raises(tc.GradientError, match=re.escape(REFUSED[case.name])):
        in_double(case).gradient()


def test_definitions_without_floats_are_those_named() -> None:
    """Of the others a derivative is taken, which is refused where nothing is floating."""
    named = [case for case in CASES if case.name in WITHOUT_FLOATS]
    assert {case.name for case in named} == WITHOUT_FLOATS
    assert [case.name for case in named if has_floats(case)] == []
    assert all(has_floats(case) for case in DIFFERENTIABLE[::20])
