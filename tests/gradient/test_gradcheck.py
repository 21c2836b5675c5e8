"""PyTorch's own checks of derivatives, first and second, on the corpus in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import tc
from tests.comprehensions.case import Case
from tests.gradient.differences import is_floating
from tests.gradient.differentiable import DIFFERENTIABLE, in_double, least_sizes, wide
from tests.turns import every

# Results that come in are written into, which autograd does not follow.
FOLLOWED = [case for case in DIFFERENTIABLE if not case.in_out]
# Small integers are equally near in several places, between which first derivatives jump.
TIED = {"nearest_codes"}
# Of more elements, differences by each of them take long; then one direction is checked.
_MOST = 256
_MOST_TWICE = 64


def _call(case: Case) -> tuple[Callable[..., Any], tuple[torch.Tensor, ...], int]:
    """A function of the floating tensors, these, and how many elements they have."""
    f = in_double(case)
    inputs = case.make_inputs(np.random.default_rng(1), least_sizes(case))
    values: list[Any] = []
    tensors: list[torch.Tensor] = []
    types = {tensor.name: tensor.type for tensor in f.program.tensors}
    for name, value in inputs.items():
        if name not in types:
            values.append(value)
            continue
        tensor = torch.from_numpy(np.array(wide(name, value, f)))
        values.append(tensor)
        if types[name].is_floating:
            tensors.append(tensor.requires_grad_())

    def call(*moved: torch.Tensor) -> Any:
        rest = iter(moved)
        arguments = [next(rest) if own is not None and _requires(own) else own for own in values]
        results = f(*arguments)
        found = results if isinstance(results, tuple) else (results,)
        return tuple(own for name, own in zip(f.program.results, found, strict=True) if is_floating(f, name))

    return call, tuple(tensors), sum(tensor.numel() for tensor in tensors)


def _requires(value: object) -> bool:
    return isinstance(value, torch.Tensor) and value.requires_grad


@pytest.mark.parametrize("case", every(60, FOLLOWED), ids=lambda case: case.name)
def test_first_derivatives(case: Case) -> None:
    call, tensors, count = _call(case)
    assert torch.autograd.gradcheck(call, tensors, atol=1e-4, rtol=1e-3, fast_mode=count > _MOST)


@pytest.mark.parametrize("case", every(120, [c for c in FOLLOWED if c.name not in TIED]), ids=lambda case: case.name)
def test_second_derivatives(case: Case) -> None:
    call, tensors, count = _call(case)
    assert torch.autograd.gradgradcheck(call, tensors, atol=1e-4, rtol=1e-3, fast_mode=count > _MOST_TWICE)


def test_the_corpus_is_large() -> None:
    assert len(FOLLOWED) > 200
    assert isinstance(in_double(FOLLOWED[0]), tc.Comprehension)
