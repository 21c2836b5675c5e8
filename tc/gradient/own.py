"""Gradients that a text gives itself: another of its definitions, which takes what the gradient takes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from tc.base.errors import Diagnostic, GradientError
from tc.base.interface import Interface, TensorParameter
from tc.gradient.assemble import lowered, pruned
from tc.gradient.gradient import Derived, wanted_of
from tc.grammar.syntax import Apply, Assign, CallStatement, Definition, within_blocks
from tc.language.program.program import Program


def require_gradient(definition: Interface, gradient: Interface) -> None:
    """GradientError for a definition that is no gradient of another one, by what it takes and returns."""
    results = [definition.tensor(name) for name in definition.results]
    floating = definition.floating
    taken = [*(_described(definition, name) for name in definition.arguments), *map(_kind, filter(_floats, results))]
    given = [_described(definition, name) for name in floating]
    own = [_described(gradient, name) for name in gradient.arguments]
    returned = [_kind(gradient.tensor(name)) for name in gradient.results]
    if own != taken or returned != given or any(tensor.in_out for tensor in gradient.tensors):
        message = (
            f"`{gradient.name}` is no gradient of `{definition.name}`: it must take ({', '.join(taken)}), the "
            f"arguments and the adjoints of the results, and return ({', '.join(given)}), the adjoints of "
            f"{', '.join(floating) or 'none'}; it takes ({', '.join(own)}) and returns ({', '.join(returned)})"
        )
        raise GradientError(Diagnostic(message))


def _floats(tensor: TensorParameter) -> bool:
    return tensor.type.is_floating


def _described(interface: Interface, name: str) -> str:
    scalars = {scalar.name: scalar for scalar in interface.scalars}
    return scalars[name].type.value if name in scalars else _kind(interface.tensor(name))


def _kind(tensor: TensorParameter) -> str:
    return f"{tensor.type.value}({', '.join('*' * tensor.dimensions)})"


def own_gradient(program: Program, gradient: Program, names: Sequence[str]) -> Derived:
    """The gradient that a text gives a definition, by some of its arguments."""
    wanted = wanted_of(program, names)
    floating = wanted_of(program, ())
    returned = dict(zip(floating, gradient.results, strict=True))
    results = {name: returned[name] for name in wanted}
    results_of = [name for name in program.results if program.tensor(name).type.is_floating]
    given = dict(zip(results_of, gradient.arguments[len(program.arguments) :], strict=True))
    if tuple(results.values()) == gradient.results:
        return Derived(gradient, gradient, given, results, {})
    raw = pruned(replace(gradient, results=tuple(results.values())))
    return Derived(lowered(raw), raw, given, results, {})


def callers(definitions: Sequence[Definition], names: Mapping[str, object]) -> Mapping[str, str]:
    """Which definitions call one of those named, themselves or through others, and which one."""
    calls = {definition.name: set(_called(definition)) for definition in definitions}
    found: dict[str, str] = {}
    size = -1
    while size < len(found):
        size = len(found)
        for caller, called in calls.items():
            own = next((name for name in sorted(called) if name in names), None)
            through = next((found[name] for name in sorted(called) if name in found), None)
            if caller not in found and (own or through):
                found[caller] = own or through or ""
    return found


def _called(definition: Definition) -> Iterator[str]:
    for statement in within_blocks(definition.statements):
        match statement:
            case CallStatement(callee=callee):
                yield callee.name
            case Assign(subscripts=None, value=Apply(name=name)):
                yield name
            case _:
                pass
