"""Steps of optimizers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.texts import access, definition, iterators, literal, parameter, sizes

# Statements of a step for tensors of a type; `@` stands for the subscripts of their elements.
Formula: TypeAlias = "Callable[[Operation, ScalarType], list[str]]"


def _optimizer(states: Sequence[str], formula: Formula) -> Rule:
    """A step that makes new tensors, and new ``states`` of each.

    The operands are the rate ``R``, the number of the step ``T``, all tensors ``x``, all gradients ``g``, and then all
    that there is of each state.
    """

    def rule(operation: Operation) -> Sequence[Value]:
        kinds = ["x", "g", *states]
        count, rest = divmod(len(operation.operands) - 2, len(kinds))
        if rest or count < 1:
            raise operation.error(f"{len(operation.operands)} operands; it takes two, and {len(kinds)} for each tensor")
        places = [range(2 + tensor, len(operation.operands), count) for tensor in range(count)]
        found = [_step(operation, kinds, own, formula) for own in places]
        return [results[kind] for kind in range(1 + len(states)) for results in found]

    return rule


def _step(operation: Operation, kinds: Sequence[str], places: Sequence[int], formula: Formula) -> Sequence[Value]:
    """The new tensor and its new states, for operands at these places."""
    rate, number = (operation.builder.reshape(operation.operand(index), ()) for index in range(2))
    own = [operation.operand(place) for place in places]
    type, rank = own[0].type, len(own[0].shape)
    parameters = [parameter(rate.type, (), "R"), parameter(number.type, (), "T")]
    parameters += [parameter(value.type, sizes(rank), name) for value, name in zip(own, kinds, strict=True)]
    at = access("", iterators(rank))
    statements = [statement.replace("@", at) for statement in formula(operation, type)]
    results = [f"{name}_new" for name in kinds if name != "g"]
    return operation.call(definition(operation.kind.lower(), parameters, results, statements), rate, number, *own)


def _regularized(operation: Operation, type: ScalarType, default: float | None = 0.0) -> str:
    """The gradient with that of the norm of the tensor."""
    return f"d@ = {literal(operation.number('norm_coefficient', default), type)} * x@ + g@"


def _adagrad(operation: Operation, type: ScalarType) -> list[str]:
    decay = literal(operation.number("decay_factor", 0.0), type)
    epsilon = literal(operation.number("epsilon", 1e-6), type)
    return [
        _regularized(operation, type),
        f"rate = {type}(R) / (1 + {type}(T) * {decay})",
        "h_new@ = h@ + d@ * d@",
        f"x_new@ = x@ - rate * d@ / (sqrt(h_new@) + {epsilon})",
    ]


def _adam(operation: Operation, type: ScalarType) -> list[str]:
    alpha, beta = operation.number("alpha", 0.9), operation.number("beta", 0.999)
    epsilon = literal(operation.number("epsilon", 1e-6), type)
    after = operation.number("norm_coefficient_post", 0.0)
    kept = "" if after == 0 else f"{literal(1 - after, type)} * "
    # Powers near 1 are taken from 1: in float64, for a few numbers.
    first, second = (f"(1 - pow({literal(base, ScalarType.FLOAT64)}, float64(T)))" for base in (alpha, beta))
    return [
        _regularized(operation, type),
        f"rate = {type}(T > 0 ? R * sqrt({second}) / {first} : R)",
        f"v_new@ = {literal(alpha, type)} * v@ + {literal(1 - alpha, type)} * d@",
        f"h_new@ = {literal(beta, type)} * h@ + {literal(1 - beta, type)} * d@ * d@",
        f"x_new@ = {kept}(x@ - rate * v_new@ / (sqrt(h_new@) + {epsilon}))",
    ]


def _momentum(operation: Operation, type: ScalarType) -> list[str]:
    alpha, beta = (literal(operation.number(name), type) for name in ("alpha", "beta"))
    mode = operation.text("mode")
    if mode not in ("standard", "nesterov"):
        raise operation.error(f"`mode` is {mode!r}, and must be standard or nesterov")
    direction = "v_new@" if mode == "standard" else f"(d@ + {alpha} * v_new@)"
    return [
        _regularized(operation, type, None),
        f"v_new@ = {alpha} * v@ + (T > 0 ? {beta} : 1) * d@",
        f"x_new@ = x@ - {type}(R) * {direction}",
    ]


RULES: Final[dict[str, Rule]] = {
    "Adagrad": _optimizer(("h",), _adagrad),
    "Adam": _optimizer(("v", "h"), _adam),
    "Momentum": _optimizer(("v",), _momentum),
}
