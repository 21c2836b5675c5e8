"""``explain``: what runs where of a model, how long it takes, and why something is left to PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tc.torch.backend import backend
from tc.torch.differentiated import differentiated
from tc.torch.report import Report

# The first call compiles; the least time of those after it counts.
_CALLS = 4


def explain(model: Callable[..., Any], *inputs: Any, **named: Any) -> Report:
    """Compiles a model for such inputs and calls it; ``str`` of the result says what became of it.

    Where results need gradients, the backward of their sum is compiled and run, too; no gradient is changed.
    """
    report = Report(timed=True)
    compiled = torch.compile(model, backend=functools.partial(backend, report=report))
    for _ in range(_CALLS):
        differentiated(compiled(*inputs, **named), model, (inputs, named))
    return report
