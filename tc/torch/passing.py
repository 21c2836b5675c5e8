"""Passes tensors to plans as arrays, and what they compute back as tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import fx

from tc.torch.frame import Frame
from tc.torch.fx.layout import Layout, array_of, tensor_of
from tc.torch.fx.placing import Placing, placing_of, spreading

# Makes the argument of an execution of a tensor.
Taking: TypeAlias = Callable[[Any], np.ndarray]
# Makes a tensor of the array of an output.
Giving: TypeAlias = Callable[[np.ndarray], torch.Tensor]


def layout_of(given: Any) -> Any:
    """How a tensor lies in memory; what is none as it is."""
    if isinstance(given, torch.Tensor):
        return Layout.of(tuple(given.shape), given.stride(), given.dtype)
    return given


def taking_of(layout: Layout) -> Taking:
    """Makes an array of a tensor: its own memory where that is in the order of the layout, else a copy."""
    order = layout.order if layout.order != tuple(range(len(layout.order))) else None

    def take(tensor: torch.Tensor) -> np.ndarray:
        found = tensor.detach() if order is None else tensor.detach().permute(order)
        if not found.is_contiguous() or found.is_neg():
            found = found.resolve_neg().contiguous()
        return array_of(found)

    return take


def giving_of(module: fx.GraphModule, frame: Frame) -> tuple[Giving, ...]:
    """Of each output: tensors have dimensions in the order that callers see; those that are equal are two."""
    (node,) = (node for node in module.graph.nodes if node.op == "output")
    (returned,) = node.args
    every = returned if isinstance(returned, list | tuple) else (returned,)
    makes = [_give(placing_of(one), one.meta["val"]) if _is_tensor(one) else _refuse for one in every]
    looks = [None if one.look is None else one.look.number for one in frame.outputs]
    return tuple(
        _copying(give) if look is not None and look in looks[:at] else give
        for at, (look, give) in enumerate(zip(looks, makes, strict=True))
    )


def _copying(give: Giving) -> Giving:
    return lambda array: give(array.copy())


def _is_tensor(one: object) -> bool:
    return isinstance(one, fx.Node) and isinstance(one.meta.get("val"), torch.Tensor)


def _refuse(array: np.ndarray) -> torch.Tensor:
    raise AssertionError(f"{array.shape} is no tensor in the graph that was captured")


def _give(placing: Placing, traced: torch.Tensor) -> Giving:
    """``traced``: what stands for the tensor while PyTorch traces."""
    order, dtype = placing.order, traced.dtype
    spread = None if placing.strides is None else spreading(placing)
    back = None if order == tuple(range(len(order))) else tuple(order.index(axis) for axis in range(len(order)))

    def give(array: np.ndarray) -> torch.Tensor:
        found = tensor_of(array, dtype)
        found = found if back is None else found.permute(back)
        return found if spread is None else spread(found)

    # Strides of dimensions of one element mean nothing in memory, but tell layouts apart.
    pairs = enumerate(zip(traced.shape, traced.stride(), strict=True))
    told = {n: step for n, (size, step) in pairs if isinstance(size, int) and size == 1 and isinstance(step, int)}

    def give_strided(array: np.ndarray) -> torch.Tensor:
        found = give(array)
        return found.as_strided(found.shape, [told.get(n, step) for n, step in enumerate(found.stride())])

    return give_strided if told else give
