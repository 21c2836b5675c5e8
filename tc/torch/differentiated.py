"""Runs the backward of a call."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def differentiated(found: Any, model: Callable[..., Any], given: Any) -> None:
    """Runs the backward of the sum of results, if they need gradients.  ``given``: the arguments of the call."""
    results = torch.utils._pytree.tree_leaves(found)
    wanted = [one for one in results if isinstance(one, torch.Tensor) and one.requires_grad]
    if wanted:
        own = list(model.parameters()) if isinstance(model, torch.nn.Module) else []
        tensors = (one for one in torch.utils._pytree.tree_leaves(given) if isinstance(one, torch.Tensor))
        learned = [one for one in (*own, *tensors) if one.requires_grad]
        torch.autograd.grad([one.sum() for one in wanted], learned, allow_unused=True)
