"""Comprehensions as operators of ``torch.library``: PyTorch compiles and differentiates them without a graph break.

Three kinds are registered: ``ns::name`` gives the results.  Where its gradient saves values, it is composed of
``ns::name_forward``, which also returns these.  ``ns::name_backward`` gives the adjoints; for derivatives of these,
``ns::name_gradient`` computes them from the arguments alone, and is such an operator itself.
"""

from __future__ import annotations

import functools
import keyword
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import torch

from tc.api.torch_batches import by_members, whole_adjoints
from tc.api.torch_shapes import result_shapes
from tc.base.errors import GradientError, OptionsError
from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.types import Kind, ScalarType
from tc.language.program.program import Program

if TYPE_CHECKING:
    from tc.artifact.definition import Definition as Meaning

# What an operator takes and gives.
Value: TypeAlias = Any
# Of schemas, beside those of Python.
_KEYWORDS: Final = frozenset((*keyword.kwlist, "NoneType"))
_NAME: Final = re.compile(r"([A-Za-z_]\w*)::([A-Za-z_]\w*)")


class Definition(Protocol):
    """A comprehension."""

    @property
    def interface(self) -> Interface:
        """What callers know of it."""

    @property
    def program(self) -> Program:
        """What it means."""

    @property
    def definition(self) -> Meaning:
        """By which the cache knows its kernels."""

    def __call__(self, /, *arguments: object) -> object:
        """Its results."""

    def output_shapes(self, /, *arguments: object) -> dict[str, tuple[int, ...]]:
        """Shapes of the results."""

    def gradient(self, *names: str) -> Definition:
        """Its gradient by the arguments named."""

    def with_gradient(self, *names: str, only: Sequence[str] = ()) -> tuple[Definition, Definition, tuple[str, ...]]:
        """Itself, its gradient by the arguments named (``only``: by some of them), and what these share."""


def torch_operator(definition: Definition, qualified: str, *, differentiable: bool = True) -> Any:
    """The operator ``ns::name``; OptionsError for other names, those that are taken, and results that come in.

    ``differentiable``: its gradient is derived, if it has one.
    """
    found = _NAME.fullmatch(qualified)
    if found is None:
        raise OptionsError(f"an operator of PyTorch is named as in 'ns::name', got {qualified!r}")
    namespace, name = found.groups()
    if hasattr(getattr(torch.ops, namespace), name):
        raise OptionsError(f"there is an operator {qualified} already; take another name")
    if any(tensor.in_out for tensor in definition.interface.tensors):
        raise OptionsError(
            f"{definition.interface.name} changes results that come in, and operators change nothing; begin its "
            "results with `=` or `+=!`"
        )
    if differentiable:
        _Operator(definition, namespace, name).register()
    else:
        _opaque(definition, namespace, name)
    return getattr(getattr(torch.ops, namespace), name)


@frozen
class Registered:
    """What an operator was made of: ``whole`` gives all results, ``plain`` those before what a gradient takes."""

    whole: Definition
    plain: Definition


@functools.cache
def registered() -> dict[Any, Registered]:
    """By operator of PyTorch, what it was made of; operators stay as long as the process does."""
    return {}


@functools.cache
def _library(namespace: str) -> torch.library.Library:
    """What is registered lives as long as the library does."""
    return torch.library.Library(namespace, "FRAGMENT")  # type: ignore[no-untyped-call]


@frozen
class _Operator:
    definition: Definition
    namespace: str
    name: str

    def register(self) -> None:
        """The operator, and what it is composed of."""
        names = _floating(self.definition.interface)
        try:
            pair = self.definition.with_gradient(*names) if names else None
        except GradientError:
            pair = None  # calls that need none are none the worse
        if pair is None:
            _opaque(self.definition, self.namespace, self.name)
            return
        forward, _, kept = pair
        count = len(self.definition.interface.results)
        if forward is self.definition:
            _opaque(forward, self.namespace, self.name)
            self.differentiable(self.name, forward.interface.results, kept)
            return
        inner = _opaque(forward, self.namespace, f"{self.name}_forward", self.definition)
        self.differentiable(f"{self.name}_forward", forward.interface.results, kept)

        def composed(*arguments: Value) -> Value:
            results = inner(*arguments)[:count]
            return results[0] if count == 1 else results

        library = _library(self.namespace)
        library.define(f"{self.name}{_schema(self.definition.interface)}")  # type: ignore[no-untyped-call]
        library.impl(self.name, composed, "CompositeImplicitAutograd")  # type: ignore[no-untyped-call]
        _batched(composed, count, self.namespace, self.name)

    def differentiable(self, name: str, results: Sequence[str], kept: Sequence[str]) -> None:
        """Registers the backward pass of an operator, among whose results is what is kept."""
        own = self.definition.interface
        floating = [own.tensor(result).type.is_floating for result in own.results]

        def setup(ctx: Any, inputs: tuple[Value, ...], output: Value) -> None:
            outputs = output if isinstance(output, tuple) else (output,)
            ctx.places = [number for number, value in enumerate(inputs) if isinstance(value, torch.Tensor)]
            ctx.others = [None if isinstance(value, torch.Tensor) else value for value in inputs]
            ctx.set_materialize_grads(False)
            saved = [outputs[results.index(value)] for value in kept]
            ctx.save_for_backward(*(inputs[place] for place in ctx.places), *saved)
            ctx.like = [(value.shape, value.dtype, value.device) for value in outputs[: len(own.results)]]
            integers = (o for o, is_own in zip(outputs, floating, strict=False) if not is_own)
            ctx.mark_non_differentiable(*integers, *outputs[len(own.results) :])

        def backward(ctx: Any, *adjoints: Value) -> tuple[Value, ...]:
            saved = ctx.saved_tensors
            arguments = list(ctx.others)
            for place, tensor in zip(ctx.places, saved[: len(ctx.places)], strict=True):
                arguments[place] = tensor
            needs = zip(own.arguments, ctx.needs_input_grad, strict=True)
            names = [name for name, is_needed in needs if is_needed and name in _floating(own)]
            given = whole_adjoints(adjoints, ctx.like, floating)
            found = iter(self.adjoints(names, arguments, kept, saved[len(ctx.places) :], given))
            return tuple(next(found) if name in names else None for name in own.arguments)

        torch.library.register_autograd(
            f"{self.namespace}::{name}", backward, setup_context=setup, lib=_library(self.namespace)
        )

    def adjoints(
        self,
        names: Sequence[str],
        arguments: Sequence[Value],
        kept: Sequence[str],
        saved: Sequence[torch.Tensor],
        given: Sequence[torch.Tensor],
    ) -> Sequence[torch.Tensor]:
        """Of the arguments named, by operators that are registered when they are first needed."""
        every = _floating(self.definition.interface)
        suffix = "" if tuple(names) == every else "_".join(("", *names))
        if torch.is_grad_enabled():  # what is kept has no graph of its own
            gradient = self.definition.gradient(*names)
            name = f"{self.name}_gradient{suffix}"
            values = (*arguments, *given)
        else:
            _, gradient, taken = self.definition.with_gradient(*every, only=names)
            name = f"{self.name}_backward{suffix}"
            values = (*arguments, *(saved[kept.index(own)] for own in taken), *given)
        packet = getattr(torch.ops, self.namespace)
        if not hasattr(packet, name):
            if torch.is_grad_enabled():
                _Operator(gradient, self.namespace, name).register()
            else:
                _opaque(gradient, self.namespace, name)
        results = getattr(packet, name)(*values)
        return results if isinstance(results, tuple | list) else (results,)


def _floating(interface: Interface) -> tuple[str, ...]:
    """The arguments that have a gradient, if a result has one."""
    has_gradients = any(interface.tensor(name).type.is_floating for name in interface.results)
    return interface.floating if has_gradients else ()


def _opaque(definition: Definition, namespace: str, name: str, plain: Definition | None = None) -> Callable[..., Value]:
    """Registers an operator that PyTorch does not look into, with its shapes and its batches."""
    qualified, library = f"{namespace}::{name}", _library(namespace)
    library.define(f"{name}{_schema(definition.interface)}")  # type: ignore[no-untyped-call]

    def run(*arguments: Value) -> Value:
        plain = (value.detach() if isinstance(value, torch.Tensor) else value for value in arguments)
        found = definition(*plain)
        # Without a tensor among the arguments, the results are NumPy's.
        return tuple(map(torch.as_tensor, found)) if isinstance(found, tuple) else torch.as_tensor(found)

    def fake(*arguments: Value) -> Value:
        return _empty(definition, arguments)

    library.impl(name, run, "CompositeExplicitAutograd")  # type: ignore[no-untyped-call]
    torch.library.register_fake(qualified, fake, lib=library)
    operator: Callable[..., Value] = getattr(getattr(torch.ops, namespace), name)
    _batched(operator, len(definition.interface.results), namespace, name)
    registered()[operator.default] = Registered(definition, plain or definition)  # type: ignore[attr-defined]
    return operator


def _batched(operator: Callable[..., Value], count: int, namespace: str, name: str) -> None:
    """Lets ``torch.vmap`` call an operator with ``count`` results for each member of a batch."""

    def vmap(info: Any, in_dims: tuple[int | None, ...], *arguments: Value) -> tuple[Value, Value]:
        def call(*own: Value) -> tuple[Value, ...]:
            found = operator(*own)
            return (found,) if count == 1 else tuple(found)

        results = by_members(call, info.batch_size, in_dims, arguments)
        return (results[0], 0) if count == 1 else (results, (0,) * count)

    torch.library.register_vmap(f"{namespace}::{name}", vmap, lib=_library(namespace))


def _empty(definition: Definition, arguments: Sequence[Value]) -> Value:
    """Results without values, of the right shapes."""
    interface = definition.interface
    named = dict(zip(interface.arguments, arguments, strict=True))
    shapes = result_shapes(definition.program, named)
    if shapes is None:  # PyTorch then keeps what it compiles for these sizes alone
        plain = (tuple(map(int, v.shape)) if isinstance(v, torch.Tensor) else v for v in arguments)
        shapes = list(definition.output_shapes(*plain).values())
    device = next((value.device for value in arguments if isinstance(value, torch.Tensor)), None)
    types = [_dtype(interface.tensor(name).type) for name in interface.results]
    results = [torch.empty(shape, dtype=dtype, device=device) for shape, dtype in zip(shapes, types, strict=True)]
    return results[0] if len(results) == 1 else tuple(results)


def _dtype(type: ScalarType) -> torch.dtype:
    found = getattr(torch, type.value)
    assert isinstance(found, torch.dtype)
    return found


def _schema(interface: Interface) -> str:
    scalars = {scalar.name: scalar.type for scalar in interface.scalars}
    parameters = (f"{_kind(scalars.get(name))} {_parameter(name, interface)}" for name in interface.arguments)
    count = len(interface.results)
    results = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    return f"({', '.join(parameters)}) -> {results}"


def _parameter(name: str, interface: Interface) -> str:
    """What an argument is called in a schema, which has keywords of its own."""
    own = name
    while own in _KEYWORDS or (own != name and own in interface.arguments):
        own += "_"
    return own


def _kind(type: ScalarType | None) -> str:
    if type is None:
        return "Tensor"
    match type.kind:
        case Kind.FLOATING:
            return "float"
        case Kind.BOOLEAN:
            return "bool"
        case _:
            return "SymInt"
