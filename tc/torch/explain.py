"""``explain``: what runs where of a model, how long it takes, and why something is left to PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import torch

from tc.torch.backend import backend
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
        found = torch.utils._pytree.tree_leaves(compiled(*inputs, **named))
        wanted = [one for one in found if isinstance(one, torch.Tensor) and one.requires_grad]
        if wanted:
            learned = [own for own in _learned(model, inputs, named) if own.requires_grad]
            torch.autograd.grad([one.sum() for one in wanted], learned, allow_unused=True)
    return report


def _learned(model: Callable[..., Any], inputs: tuple[Any, ...], named: dict[str, Any]) -> list[torch.Tensor]:
    own = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
    return [*own, *(one for one in torch.utils._pytree.tree_leaves((inputs, named)) if isinstance(one, torch.Tensor))]
