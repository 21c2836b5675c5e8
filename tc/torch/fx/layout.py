"""How tensors lie in memory, and as arrays of NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import fx

from tc.base.frozen import frozen


@frozen
class Layout:
    """How a tensor that comes in lies in memory: ``order`` permutes its dimensions so that they are contiguous.

    ``shape``: with its dimensions in their own order.
    """

    shape: tuple[int, ...]
    order: tuple[int, ...]
    dtype: torch.dtype

    @staticmethod
    def of(shape: Sequence[int], strides: Sequence[int], dtype: torch.dtype) -> Layout:
        """The layout of a tensor; one with gaps or repeated elements is copied, into the order of its dimensions."""
        order = tuple(sorted(range(len(shape)), key=lambda axis: (-strides[axis], axis)))
        step = 1
        for axis in reversed(order):
            if shape[axis] != 1 and strides[axis] != step:
                return Layout(tuple(shape), tuple(range(len(shape))), dtype)
            step *= max(shape[axis], 1)
        return Layout(tuple(shape), order, dtype)


def attribute_of(module: fx.GraphModule, node: fx.Node) -> Any:
    """What a node reads from the module."""
    found: Any = module
    for part in str(node.target).split("."):
        found = getattr(found, part)
    return found


def array_of(tensor: torch.Tensor) -> np.ndarray:
    """The memory of a contiguous tensor as an array."""
    if tensor.dtype is torch.bfloat16:
        import ml_dtypes

        return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return tensor.numpy()


def tensor_of(array: np.ndarray, dtype: torch.dtype) -> torch.Tensor:
    """The memory of a contiguous array as a tensor of this type."""
    if dtype is torch.bfloat16:
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)
