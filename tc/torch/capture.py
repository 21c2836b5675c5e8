"""Captures a model: the parts of its graphs that are ours, with the arguments of one call, which PyTorch runs."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from tc.torch.backend import backend
from tc.torch.compiled import Compiled
from tc.torch.differentiated import differentiated
from tc.torch.tuning import TunedPart, tunable


def captured(model: Callable[..., Any], inputs: Sequence[Any]) -> list[TunedPart]:
    """The parts of the forward, and of the backward of the sum of the results where they need gradients.

    A module in evaluation mode has no backward.  No gradient of the model is changed.
    """
    calls: list[tuple[Compiled, Sequence[Any]]] = []
    watch = functools.partial(backend, watch=lambda *call: calls.append(call))
    called = torch.compile(model, backend=watch, dynamic=False)
    trains = not isinstance(model, torch.nn.Module) or model.training
    with torch.set_grad_enabled(trains):
        differentiated(called(*inputs), model, inputs)
    return tunable(calls)
