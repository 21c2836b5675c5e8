"""Calls that PyTorch's autograd follows: backward passes call the gradient of the definition.

The gradient is a comprehension, too, and its calls are followed where a graph is asked for: so are second derivatives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

import torch

from tc.api.torch_batches import by_members, whole_adjoints

# What a call takes: tensors, and what scalars may be.
Argument: TypeAlias = Any


class Differentiable(Protocol):
    """A comprehension with the target and the options of a call."""

    @property
    def tensors(self) -> Sequence[str | None]:
        """By argument, the name of a floating tensor; None of what has no gradient."""

    @property
    def floating(self) -> Sequence[bool]:
        """By result, whether its elements are floating-point numbers."""

    @property
    def kept(self) -> Sequence[int]:
        """Which results of ``forward`` the backward pass takes."""

    def forward(self, arguments: Sequence[Argument]) -> Sequence[torch.Tensor]:
        """The results, and behind them what is kept for the backward pass."""

    def backward(
        self,
        names: Sequence[str],
        arguments: Sequence[Argument],
        kept: Sequence[torch.Tensor],
        adjoints: Sequence[torch.Tensor],
    ) -> Sequence[torch.Tensor]:
        """The adjoints of the arguments named; ``adjoints``: of the floating results."""

    def differentiable_backward(
        self, names: Sequence[str], arguments: Sequence[Argument], adjoints: Sequence[torch.Tensor]
    ) -> Sequence[torch.Tensor]:
        """As ``backward``, by a call that is followed itself."""


def followed_call(call: Differentiable, arguments: Sequence[Argument]) -> object:
    """The results of a call, which know how they came about."""
    kind = _Transformed if torch._C._are_functorch_transforms_active() else _Followed
    results = kind.apply(call, *arguments)[: len(call.floating)]  # type: ignore[no-untyped-call]
    return results[0] if len(results) == 1 else results


class _Followed(torch.autograd.Function):
    """A call; its first argument says of what."""

    @staticmethod
    def forward(ctx: Any, call: Differentiable, *arguments: Argument) -> tuple[torch.Tensor, ...]:
        output = tuple(call.forward(arguments))
        _Followed.keep(ctx, call, arguments, output)
        return output

    @staticmethod
    def keep(ctx: Any, call: Differentiable, arguments: Sequence[Argument], output: tuple[torch.Tensor, ...]) -> None:
        """What the backward pass needs."""
        ctx.call = call
        ctx.others = [None if isinstance(own, torch.Tensor) else own for own in arguments]
        kept = [output[number] for number in call.kept]
        ctx.save_for_backward(*(own for own in arguments if isinstance(own, torch.Tensor)), *kept)
        ctx.places = [number for number, own in enumerate(arguments) if isinstance(own, torch.Tensor)]
        ctx.set_materialize_grads(False)
        own = output[: len(call.floating)]
        ctx.shapes = [(result.shape, result.dtype, result.device) for result in own]
        integers = (o for o, is_floating in zip(own, call.floating, strict=True) if not is_floating)
        ctx.mark_non_differentiable(*integers, *output[len(own) :])

    @staticmethod
    def backward(ctx: Any, *adjoints: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        call: Differentiable = ctx.call
        arguments = list(ctx.others)
        saved = ctx.saved_tensors
        for place, tensor in zip(ctx.places, saved[: len(ctx.places)], strict=True):
            arguments[place] = tensor
        needed = [
            name if is_needed else None for name, is_needed in zip(call.tensors, ctx.needs_input_grad[1:], strict=True)
        ]
        names = [name for name in needed if name is not None]
        given = whole_adjoints(adjoints, ctx.shapes, call.floating)
        if not names:
            return None, *(None for _ in needed)
        if torch.is_grad_enabled():  # what is kept has no graph of its own
            found = call.differentiable_backward(names, arguments, given)
        else:
            found = call.backward(names, arguments, saved[len(ctx.places) :], given)
        values = iter(found)
        return None, *(None if name is None else next(values) for name in needed)


class _Transformed(_Followed):
    """The same inside of ``torch.func``, which wants to know each part for itself and takes its time."""

    @staticmethod
    def forward(call: Differentiable, *arguments: Argument) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        plain = [own.detach() if isinstance(own, torch.Tensor) else own for own in arguments]
        return tuple(call.forward(plain))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Argument, ...], output: tuple[torch.Tensor, ...]) -> None:
        call, *arguments = inputs
        _Followed.keep(ctx, call, arguments, output)

    @staticmethod
    def vmap(
        info: Any, in_dims: tuple[int | None, ...], call: Differentiable, *arguments: Argument
    ) -> tuple[tuple[torch.Tensor, ...], tuple[int, ...]]:
        """One call for each member of a batch."""
        results = by_members(
            lambda *own: _Transformed.apply(call, *own),  # type: ignore[no-untyped-call]
            info.batch_size,
            in_dims[1:],
            arguments,
        )
        return results, (0,) * len(results)
