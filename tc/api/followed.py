"""Calls on tensors that require gradients: PyTorch's autograd follows them, and calls the gradient."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol, TypeAlias

from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.once import Once
from tc.runtime.views.scalars import is_transformed
from tc.targets.options import Options, numerics_alone

# What a definition does with arguments: itself, or its gradient by the tensors named.
Run: TypeAlias = Callable[[Sequence[Any]], object]
Gradient: TypeAlias = Callable[[Sequence[str]], Run]
# The gradient by the tensors named, of the arguments, of what is kept, and of the adjoints of results.
Backward: TypeAlias = Callable[[tuple[str, ...], Sequence[Any], Sequence[Any], Sequence[Any]], object]
# Of PyTorch.
Tensor: TypeAlias = Any


class Definition(Protocol):
    """A comprehension."""

    @property
    def interface(self) -> Interface:
        """What callers know of it."""

    def __call__(self, /, *arguments: object, target: str | None = None, options: Options | None = None) -> object:
        """Its results."""

    def gradient(self, *names: str) -> Definition:
        """Its gradient by the arguments named."""

    def with_gradient(self, *names: str, only: Sequence[str] = ()) -> tuple[Definition, Definition, tuple[str, ...]]:
        """Itself, its gradient by the arguments named (``only``: by some of them), and what these share."""


@frozen
class Shared:
    """A pair of a definition and its gradient: the results of its ``forward``, and those that ``backward`` takes."""

    results: tuple[str, ...]
    kept: tuple[str, ...]
    forward: Run
    backward: Backward


class Followed:
    """A definition as ``tc.api.torch_autograd`` calls it.

    ``tensors``: by argument, the name of a floating tensor; None of what has no gradient.  ``floating``: by result,
    whether its elements are floating-point numbers.  ``kept``: which results of ``forward`` the backward pass takes.
    """

    def __init__(self, interface: Interface, run: Run, gradient: Gradient, shared: Shared | None) -> None:
        """``gradient``: computes from the arguments alone, so that it has derivatives itself.

        ``shared``: computes from what the forward has kept; None where nothing has a gradient.
        """
        types = {tensor.name: tensor.type for tensor in interface.tensors}
        names = interface.arguments
        self.tensors: Final = tuple(n if n in types and types[n].is_floating else None for n in names)
        self.floating: Final = tuple(types[name].is_floating for name in interface.results)
        self.kept: Final = () if shared is None else tuple(map(shared.results.index, shared.kept))
        self._run, self._gradient, self._shared = run, gradient, shared

    def forward(self, arguments: tuple[Any, ...]) -> tuple[Tensor, ...]:
        """The results, and behind them what is kept for the backward pass."""
        return _tuple(self._run(arguments) if self._shared is None else self._shared.forward(arguments))

    def backward(
        self, names: tuple[str, ...], arguments: Sequence[Any], kept: Sequence[Tensor], adjoints: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """The adjoints of the arguments named; ``adjoints``: of the floating results."""
        assert self._shared is not None
        return _tuple(self._shared.backward(names, arguments, kept, adjoints))

    def differentiable_backward(
        self, names: Sequence[str], arguments: Sequence[Any], adjoints: Sequence[Tensor]
    ) -> tuple[Tensor, ...]:
        """As ``backward``, by a call that is followed itself."""
        return _tuple(self._gradient(names)((*arguments, *adjoints)))


def _tuple(results: Any) -> tuple[Tensor, ...]:
    return results if isinstance(results, tuple) else (results,)


class Following:
    """The calls of a definition that autograd follows, which have what they need at hand when they come again."""

    def __init__(self, interface: Interface) -> None:
        types = {tensor.name: tensor.type for tensor in interface.tensors}
        self._arguments: Final = tuple(
            (name, name in types, name in types and types[name].is_floating) for name in interface.arguments
        )
        self._has_gradients = any(types[name].is_floating for name in interface.results)
        self._calls: Final[Once[tuple[tuple[str, ...], str | None, Options | None], Followed]] = Once()

    def tensors(self, arguments: Sequence[object]) -> tuple[str, ...] | None:
        """The arguments that autograd follows, in a call that PyTorch must know of; None of any other call.

        It must know where a tensor requires a gradient, and of the tensors of ``torch.func.vmap``, which have no
        memory.  Scalars have no gradient; a call that would have to have one is none for PyTorch.
        """
        torch = sys.modules.get("torch")
        if torch is None or len(arguments) != len(self._arguments):
            return None
        own: list[str] = []
        if self._has_gradients and torch.is_grad_enabled():
            for (name, _, is_floating), value in zip(self._arguments, arguments, strict=True):
                if getattr(value, "requires_grad", False):
                    if not is_floating:
                        return None
                    own.append(name)
        if own:
            return tuple(own)
        pairs = zip(self._arguments, arguments, strict=True)
        return () if any(is_tensor and is_transformed(value) for (_, is_tensor, _), value in pairs) else None

    def call(
        self,
        definition: Definition,
        arguments: tuple[object, ...],
        names: tuple[str, ...],
        target: str | None,
        options: Options | None,
    ) -> object:
        """A call that autograd follows by the arguments named; GradientError for what has no gradient."""
        from tc.api.torch_autograd import followed_call

        found = self._calls.get((names, target, options), lambda: _followed(definition, names, target, options))
        return followed_call(found, arguments)


def _followed(definition: Definition, names: tuple[str, ...], target: str | None, options: Options | None) -> Followed:
    inherited = None if options is None else numerics_alone(options)

    def run(arguments: Sequence[object]) -> object:
        return definition(*arguments, target=target, options=options)

    def gradient(names: Sequence[str]) -> Run:
        found = definition.gradient(*names)
        return lambda arguments: found(*arguments, target=target, options=inherited)

    shared = _shared(definition, names, target, options) if names else None
    return Followed(definition.interface, run, gradient, shared)


def _shared(
    definition: Definition, names: tuple[str, ...], target: str | None, options: Options | None
) -> Shared | None:
    if any(tensor.in_out for tensor in definition.interface.tensors):  # no call without ``out`` does
        return None
    inherited = None if options is None else numerics_alone(options)
    own, pulled_back, kept = definition.with_gradient(*names)

    def forward(arguments: Sequence[object]) -> object:
        return own(*arguments, target=target, options=options)

    def backward(
        asked: tuple[str, ...], arguments: Sequence[object], values: Sequence[object], adjoints: Sequence[object]
    ) -> object:
        if asked == names:
            return pulled_back(*arguments, *values, *adjoints, target=target, options=inherited)
        _, gradient, taken = definition.with_gradient(*names, only=asked)
        by_name = dict(zip(kept, values, strict=True))
        return gradient(*arguments, *(by_name[n] for n in taken), *adjoints, target=target, options=inherited)

    return Shared(own.interface.results, kept, forward, backward)
