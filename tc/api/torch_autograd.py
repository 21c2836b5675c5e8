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

    def forward(self, arguments: tuple[Argument, ...]) -> tuple[torch.Tensor, ...]:
        """The results, and behind them what is kept for the backward pass."""

    def backward(
        self,
        names: tuple[str, ...],
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
    if torch._C._are_functorch_transforms_active():
        output = _Transformed.apply(call, *arguments)  # type: ignore[no-untyped-call]
    else:
        living = (_living(own) if isinstance(own, torch.Tensor) else own for own in arguments)
        output = _plain_apply(call, *living)  # type: ignore[no-untyped-call]
    results = output[: len(call.floating)]
    return results[0] if len(results) == 1 else results


class _Followed(torch.autograd.Function):
    """A call; its first argument says of what."""

    @staticmethod
    def forward(ctx: Any, call: Differentiable, *arguments: Argument) -> tuple[torch.Tensor, ...]:
        output = call.forward(arguments)
        _Followed.keep(ctx, call, arguments, output)
        return output

    @staticmethod
    def keep(ctx: Any, call: Differentiable, arguments: Sequence[Argument], output: tuple[torch.Tensor, ...]) -> None:
        """What the backward pass needs."""
        ctx.call = call
        tensors = [own for own in arguments if isinstance(own, torch.Tensor)]
        # Scalars, by place; tensors are saved, so that PyTorch sees who changes them.
        ctx.others = None
        if len(tensors) < len(arguments):
            ctx.others = [None if isinstance(own, torch.Tensor) else (own,) for own in arguments]
        ctx.save_for_backward(*tensors, *[output[number] for number in call.kept])
        ctx.number = len(tensors)
        floating = call.floating
        ctx.like = None
        if len(output) > len(floating) or not all(floating):
            integers = [own for own, is_floating in zip(output, floating, strict=False) if not is_floating]
            ctx.mark_non_differentiable(*integers, *output[len(floating) :])
            # Else PyTorch would make zeros for the adjoints of what is kept, too.
            ctx.set_materialize_grads(False)
            ctx.like = [(own.shape, own.dtype, own.device) for own in output[: len(floating)]]

    @staticmethod
    def backward(ctx: Any, *adjoints: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        call: Differentiable = ctx.call
        needed = call.tensors
        if not all(ctx.needs_input_grad[1:]) or None in needed:
            pairs = zip(needed, ctx.needs_input_grad[1:], strict=True)
            needed = tuple(name if is_needed else None for name, is_needed in pairs)
        names = tuple(filter(None, needed))
        saved = ctx.saved_tensors
        arguments, kept = saved[: ctx.number], saved[ctx.number :]
        if ctx.others is not None:
            tensors = iter(arguments)
            arguments = tuple(next(tensors) if own is None else own[0] for own in ctx.others)
        if ctx.like is None:  # all are floating results, and PyTorch has made zeros of what was missing
            given = [own.contiguous() for own in adjoints]
        else:
            given = whole_adjoints(adjoints, ctx.like, call.floating)
        if not names:
            return None, *(None for _ in needed)
        # What is kept has no graph of its own.
        if torch.is_grad_enabled():
            found = call.differentiable_backward(names, arguments, given)
        else:
            found = call.backward(names, arguments, kept, given)
        if len(names) == len(needed):
            return None, *found
        values = iter(found)
        return None, *(None if name is None else next(values) for name in needed)


# What PyTorch's own ``apply`` does where no transform is active, once it has found that out.
_plain_apply = super(torch.autograd.Function, _Followed).apply
_living = torch._C._functorch.unwrap_if_dead


class _Transformed(_Followed):
    """The same inside of ``torch.func``, which wants to know each part for itself and takes its time."""

    @staticmethod
    def forward(call: Differentiable, *arguments: Argument) -> tuple[torch.Tensor, ...]:  # type: ignore[override]
        plain = [own.detach() if isinstance(own, torch.Tensor) else own for own in arguments]
        return call.forward(tuple(plain))

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
