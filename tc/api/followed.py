"""Calls on tensors that require gradients: PyTorch's autograd follows them, and calls the gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.runtime.views.scalars import is_followed, is_transformed

# What a definition does with arguments: itself, or its gradient by the tensors named.
Run: TypeAlias = Callable[[Sequence[Any]], object]
Gradient: TypeAlias = Callable[[Sequence[str]], Run]
# Of PyTorch.
Tensor: TypeAlias = Any


def followed_tensors(interface: Interface, arguments: Sequence[object]) -> tuple[str, ...] | None:
    """The arguments that autograd follows, in a call that PyTorch must know of; None of any other call.

    It must know where a tensor requires a gradient, and of the tensors of ``torch.func.vmap``, which have no memory.
    Scalars have no gradient; a call that would have to have one is none for PyTorch.
    """
    if "torch" not in sys.modules or len(arguments) != len(interface.arguments):
        return None
    types = {tensor.name: tensor.type for tensor in interface.tensors}
    given = dict(zip(interface.arguments, arguments, strict=True))
    own: tuple[str, ...] = ()
    if any(types[name].is_floating for name in interface.results):
        own = tuple(name for name, value in given.items() if is_followed(value))
        if not all(name in types and types[name].is_floating for name in own):
            return None
    return own if own or any(is_transformed(given[name]) for name in given if name in types) else None


@frozen
class Followed:
    """A definition as ``tc.torch.torch_autograd`` calls it."""

    interface: Interface
    run: Run
    gradient: Gradient

    @property
    def tensors(self) -> tuple[str | None, ...]:
        """By argument, the name of a floating tensor; None of what has no gradient."""
        types = {tensor.name: tensor.type for tensor in self.interface.tensors}
        return tuple(n if n in types and types[n].is_floating else None for n in self.interface.arguments)

    @property
    def floating(self) -> tuple[bool, ...]:
        """By result, whether its elements are floating-point numbers."""
        return tuple(self.interface.tensor(name).type.is_floating for name in self.interface.results)

    def forward(self, arguments: Sequence[Any]) -> tuple[Tensor, ...]:
        """The results."""
        return _tuple(self.run(arguments))

    def backward(
        self, names: Sequence[str], arguments: Sequence[Any], adjoints: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The adjoints of the arguments named; ``adjoints``: of the floating results."""
        return _tuple(self.gradient(names)((*arguments, *adjoints)))


def _tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)
