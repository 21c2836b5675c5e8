"""Functions compiled by ours beside eager PyTorch: results, layouts, gradients, and that nothing is left to PyTorch."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from typing import Any
from unittest import mock

import torch

from tc.graph.memory.plan import MemoryPlan
from tc.graph.run.evaluate import Evaluation
from tc.torch.backend import backend
from tc.torch.report import Report

Tensors = list[torch.Tensor]


class Oracle:
    """Runs a graph by the reference of each node, in the place of kernels."""

    def __init__(self, plan: MemoryPlan, target: object) -> None:
        del target
        self.plan = plan
        self.kernels: tuple[object, ...] = ()
        self.run = Evaluation(plan.graph).run

    def warm(self, bound: object, names: object) -> None:
        """Every call is evaluated."""


def agrees(
    function: Callable[..., Any],
    *inputs: Any,
    left: Iterable[str] = (),
    kernels: bool = False,
    rtol: float = 1e-4,
    atol: float = 1e-5,
) -> Report:
    """Asserts that the function, captured, gives what it gives; ``left``: the operators that stay PyTorch's.

    Gradients are those of inputs, and of parameters of a module, that require them.  ``kernels``: they are compiled; by
    default the oracle runs the graph that is divided into kernels.
    """
    torch._dynamo.reset()
    report = Report()
    compiled = torch.compile(function, backend=functools.partial(backend, report=report), dynamic=False)
    close = functools.partial(torch.testing.assert_close, rtol=rtol, atol=atol, equal_nan=True)
    learned = [own for own in (*tensors(inputs), *_parameters(function)) if own.requires_grad]
    wanted = function(*inputs)
    weights = [torch.randn_like(one) for one in tensors(wanted) if one.requires_grad]
    gradients = _gradients(wanted, learned, weights)  # before a second call changes what modules hold
    with nullcontext() if kernels else mock.patch("tc.torch.compiled.Execution", Oracle):
        found = compiled(*inputs)
        close(found, wanted)
        assert [strides(one) for one in tensors(found)] == [strides(one) for one in tensors(wanted)]
        close(_gradients(found, learned, weights), gradients)
    counts = {name for part in report.parts for name in part.counts}
    assert (counts, [part.failures for part in report.parts if part.failures]) == (set(left), [])
    return report


def refused(function: Callable[..., Any], *inputs: Any) -> dict[str, str]:
    """Why operators are left to PyTorch, by operator; PyTorch may raise what it raises for them."""
    torch._dynamo.reset()
    report = Report()
    compiled = torch.compile(function, backend=functools.partial(backend, report=report), dynamic=False)
    with suppress(RuntimeError):
        compiled(*inputs)
    return {name: reason for part in report.parts for name, reason in part.left.items()}


def tensors(values: Any) -> Tensors:
    """Those among values, in order."""
    return [one for one in torch.utils._pytree.tree_leaves(values) if isinstance(one, torch.Tensor)]


def random(*shape: int, dtype: torch.dtype = torch.float32, learned: bool = False) -> torch.Tensor:
    """Numbers around 0, integers from -9 to 9; ``learned``: they require gradients."""
    if dtype is torch.bool:
        return torch.rand(shape) > 0.5
    if not dtype.is_floating_point:
        return torch.randint(0 if dtype is torch.uint8 else -9, 10, shape, dtype=dtype)
    return torch.randn(shape).to(dtype).requires_grad_(learned)


def strides(tensor: torch.Tensor) -> tuple[int, ...]:
    """Those of dimensions that have several elements, if there are any elements."""
    pairs = zip(tensor.stride(), tensor.shape, strict=True)
    return tuple(stride for stride, extent in pairs if extent > 1) if tensor.numel() else ()


def sharing(every: Tensors) -> list[int]:
    """For each tensor with elements, the first that shares its memory."""
    places = [one.untyped_storage().data_ptr() for one in every if one.layout is torch.strided and one.numel()]
    return [places.index(place) for place in places]


def _gradients(results: Any, learned: Tensors, weights: Tensors) -> tuple[torch.Tensor | None, ...]:
    own = [one for one in tensors(results) if one.requires_grad]
    return torch.autograd.grad(own, learned, weights, allow_unused=True) if own and learned else ()


def _parameters(function: Callable[..., Any]) -> Tensors:
    return list(function.parameters()) if isinstance(function, torch.nn.Module) else []
