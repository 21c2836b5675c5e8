"""``call``: a comprehension as a function of JAX, for ``jax.jit``, ``jax.grad`` and ``jax.vmap`` on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np

from tc.api.comprehension import Comprehension
from tc.api.definitions import Definitions
from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

Array: TypeAlias = Any


def call(definition: Definitions | Comprehension) -> Callable[..., Any]:
    """A function of JAX that calls a definition with the arguments in order, and returns its results.

    It may be traced: ``jax.jit`` calls back to it, its gradient is that of the definition, which computes from what the
    forward keeps, and ``jax.vmap`` calls it for each member of a batch.  Scalars that shapes depend on must be numbers.
    Other scalars have no gradient.  ArgumentError for results that come in, which functions of JAX do not change.
    """
    f = definition.single() if isinstance(definition, Definitions) else definition
    interface = f.interface
    if any(tensor.in_out for tensor in interface.tensors):
        raise ArgumentError(
            f"{interface.name} changes results that come in, and functions of JAX change nothing; begin its "
            "results with `=` or `+=!`"
        )

    def called(*arguments: Any) -> Any:
        if len(arguments) != len(interface.arguments):
            raise ArgumentError(
                f"{interface.name} takes {', '.join(interface.arguments)}, got {len(arguments)} arguments"
            )
        fixed = {name: value for name, value in _named(f, arguments) if name in interface.structural}
        for name, value in fixed.items():
            if isinstance(value, jax.core.Tracer):
                raise ArgumentError(
                    f"shapes of {interface.name} depend on {name}: a number, as static_argnums makes it"
                )
        moving = [value for name, value in _named(f, arguments) if name not in fixed]
        results = _differentiable(f, fixed)(*(jax.numpy.asarray(value) for value in moving))
        return results[0] if len(results) == 1 else results

    return called


def _differentiable(f: Comprehension, fixed: dict[str, Any]) -> Callable[..., tuple[Array, ...]]:
    """The results for the arguments that are not fixed, with the gradient of the definition."""
    interface = f.interface
    names = interface.floating

    @jax.custom_vjp  # type: ignore[untyped-decorator]
    def run(*moving: Array) -> tuple[Array, ...]:
        return _call(f, fixed, moving)

    def forward(*moving: Array) -> tuple[tuple[Array, ...], Any]:
        pair = f.with_gradient(*names)
        found = _call(pair.forward, fixed, moving)
        values = dict(zip(pair.forward.interface.results, found, strict=True))
        return found[: len(interface.results)], (moving, [values[name] for name in pair.kept])

    def backward(residuals: Any, adjoints: Sequence[Array]) -> tuple[Array, ...]:
        moving, kept = residuals
        pairs = zip(interface.results, adjoints, strict=True)
        given = [adjoint for name, adjoint in pairs if interface.tensor(name).type.is_floating]
        _, gradient, _ = f.with_gradient(*names)
        found = dict(zip(names, _call(gradient, fixed, (*moving, *kept, *given)), strict=True))
        taken = [name for name in interface.arguments if name not in fixed]
        return tuple(found[n] if n in found else _no_adjoint(v) for n, v in zip(taken, moving, strict=True))

    run.defvjp(forward, backward)
    function: Callable[..., tuple[Array, ...]] = run
    return function


def _no_adjoint(value: Array) -> Any:
    """Of an argument without a gradient, in the type that JAX asks for."""
    if jax.numpy.issubdtype(value.dtype, jax.numpy.floating):
        return jax.numpy.zeros_like(value)
    return np.zeros(value.shape, jax.dtypes.float0)


def _call(f: Comprehension, fixed: dict[str, Any], moving: Sequence[Array]) -> tuple[Array, ...]:
    """A call back to Python, of which JAX knows the shapes."""
    interface = f.interface
    scalars = {scalar.name: scalar.type for scalar in interface.scalars}

    def arranged(values: Sequence[Any]) -> list[Any]:
        rest = iter(values)
        return [fixed[name] if name in fixed else next(rest) for name in interface.arguments]

    shapes = f.output_shapes(
        *(
            (fixed.get(name, 1) if name in scalars else tuple(value.shape))
            for name, value in _named(f, arranged(moving))
        )
    )
    like = tuple(
        jax.ShapeDtypeStruct(shapes[name], numpy_dtype(interface.tensor(name).type)) for name in interface.results
    )

    def back(*values: Any) -> tuple[Any, ...]:
        arrays = [
            value if name in fixed else _as(value, scalars.get(name) or interface.tensor(name).type, name in scalars)
            for name, value in _named(f, arranged(values))
        ]
        found = f(*arrays)
        return found if isinstance(found, tuple) else (found,)

    results: tuple[Array, ...] = jax.pure_callback(back, like, *moving, vmap_method="sequential")
    return results


def _named(f: Comprehension, values: Sequence[Any]) -> list[tuple[str, Any]]:
    return list(zip(f.interface.arguments, values, strict=True))


def _as(value: Any, type: ScalarType, is_scalar: bool) -> Any:
    array = np.asarray(value)
    return array.item() if is_scalar else np.ascontiguousarray(array, numpy_dtype(type))
