"""Calls on tensors that require gradients: PyTorch's autograd follows them, and calls the gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.runtime.views.scalars import is_followed, is_transformed
from tc.targets.options import Options, numerics_alone

# What a definition does with arguments: itself, or its gradient by the tensors named.
Run: TypeAlias = Callable[[Sequence[Any]], object]
Gradient: TypeAlias = Callable[[Sequence[str]], Run]
# The gradient by the tensors named, of the arguments and of what is kept by name, and of the adjoints of results.
Backward: TypeAlias = Callable[[Sequence[str], Mapping[str, Any], Sequence[Any]], object]
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


class Definition(Protocol):
    """A comprehension."""

    @property
    def interface(self) -> Interface:
        """What callers know of it."""

    def __call__(self, /, *arguments: object, target: str | None = None, options: Options | None = None) -> object:
        """Its results."""

    def gradient(self, *names: str) -> Definition:
        """Its gradient by the arguments named."""

    def with_gradient(
        self, *names: str, save: Sequence[str] | None = None, only: Sequence[str] = ()
    ) -> tuple[Definition, Definition, tuple[str, ...]]:
        """Itself, its gradient by the arguments named (``only``: by some of them), and what these share."""


@frozen
class Shared:
    """A pair of a definition and its gradient: the results of its ``forward``, and those that ``backward`` takes."""

    results: tuple[str, ...]
    kept: tuple[str, ...]
    forward: Run
    backward: Backward


@frozen
class Followed:
    """A definition as ``tc.api.torch_autograd`` calls it.

    ``gradient``: computes from the arguments alone, so that it has derivatives itself.  ``shared``: computes from what
    the forward has kept; None where nothing has a gradient.
    """

    interface: Interface
    run: Run
    gradient: Gradient
    shared: Shared | None

    @property
    def tensors(self) -> tuple[str | None, ...]:
        """By argument, the name of a floating tensor; None of what has no gradient."""
        types = {tensor.name: tensor.type for tensor in self.interface.tensors}
        return tuple(n if n in types and types[n].is_floating else None for n in self.interface.arguments)

    @property
    def floating(self) -> tuple[bool, ...]:
        """By result, whether its elements are floating-point numbers."""
        return tuple(self.interface.tensor(name).type.is_floating for name in self.interface.results)

    @property
    def kept(self) -> tuple[int, ...]:
        """Which results of ``forward`` the backward pass takes."""
        shared = self.shared
        return () if shared is None else tuple(map(shared.results.index, shared.kept))

    def forward(self, arguments: Sequence[Any]) -> tuple[Tensor, ...]:
        """The results, and behind them what is kept for the backward pass."""
        return _tuple(self.run(arguments) if self.shared is None else self.shared.forward(arguments))

    def backward(
        self, names: Sequence[str], arguments: Sequence[Any], kept: Sequence[Tensor], adjoints: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The adjoints of the arguments named; ``adjoints``: of the floating results."""
        assert self.shared is not None
        names_of = (*self.interface.arguments, *self.shared.kept)
        values = dict(zip(names_of, (*arguments, *kept), strict=True))
        return _tuple(self.shared.backward(names, values, adjoints))

    def differentiable_backward(
        self, names: Sequence[str], arguments: Sequence[Any], adjoints: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """As ``backward``, by a call that is followed itself."""
        return _tuple(self.gradient(names)((*arguments, *adjoints)))


def _tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


def follow(
    definition: Definition,
    arguments: tuple[object, ...],
    names: tuple[str, ...],
    target: str | None,
    options: Options | None,
) -> object:
    """A call that autograd follows by the arguments named; GradientError for what has no gradient."""
    from tc.api.torch_autograd import followed_call

    inherited = None if options is None else numerics_alone(options)

    def run(arguments: Sequence[object]) -> object:
        return definition(*arguments, target=target, options=options)

    def gradient(names: Sequence[str]) -> Run:
        found = definition.gradient(*names)
        return lambda arguments: found(*arguments, target=target, options=inherited)

    shared = _shared(definition, names, target, options) if names else None
    return followed_call(Followed(definition.interface, run, gradient, shared), arguments)


def _shared(
    definition: Definition, names: tuple[str, ...], target: str | None, options: Options | None
) -> Shared | None:
    if any(tensor.in_out for tensor in definition.interface.tensors):  # no call without ``out`` does
        return None
    inherited = None if options is None else numerics_alone(options)
    own, pulled_back, kept = definition.with_gradient(*names)

    def forward(arguments: Sequence[object]) -> object:
        return own(*arguments, target=target, options=options)

    def backward(asked: Sequence[str], values: Mapping[str, object], adjoints: Sequence[object]) -> object:
        gradient, taken = pulled_back, kept
        if set(asked) != set(names):
            _, gradient, taken = definition.with_gradient(*names, save=kept, only=asked)
        given = (values[name] for name in (*definition.interface.arguments, *taken))
        return gradient(*given, *adjoints, target=target, options=inherited)

    return Shared(own.interface.results, kept, forward, backward)
