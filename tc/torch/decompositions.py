"""Operators of ATen as others: PyTorch's decompositions, but for what rules take whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch._decomp import core_aten_decompositions

aten = torch.ops.aten


def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """By operator, the function that computes it by others."""
    found: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    return found
