"""Operators that compute each element from those at its place."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.values import Value
from tc.graph.onnx.operation import Operation, Rule
from tc.graph.operators.pointwise import MISH, cast, pointwise
from tc.graph.operators.texts import literal


def _unary(expression: str) -> Rule:
    """A formula of one operand; its result has the type of the operand."""

    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        return [pointwise(operation.builder, operation.kind.lower(), expression, [operand], operand.type)]

    return rule


def _with(expression: str, **defaults: float) -> Rule:
    """A formula of one operand and of attributes that are numbers: ``{alpha}``."""

    def rule(operation: Operation) -> Sequence[Value]:
        operand = operation.operand(0)
        kind = ScalarType.FLOAT64 if operand.type is ScalarType.FLOAT64 else ScalarType.FLOAT32
        given = {name: literal(operation.number(name, value), kind) for name, value in defaults.items()}
        formula = expression.format("{0}", **given)
        return [pointwise(operation.builder, operation.kind.lower(), formula, [operand], operand.type)]

    return rule


def _binary(expression: str, whole: str | None = None, type: ScalarType | None = None) -> Rule:
    """A formula of two operands; ``whole`` of integers.  ``type`` of the result; None for that of the first."""

    def rule(operation: Operation) -> Sequence[Value]:
        left, right = operation.operand(0), aligned(operation)
        formula = whole if whole is not None and not left.type.is_floating else expression
        result = left.type if type is None else type
        return [pointwise(operation.builder, operation.kind.lower(), formula, [left, right], result)]

    return rule


def aligned(operation: Operation) -> Value:
    """The second operand, with the dimensions that old versions give it by an attribute."""
    left, right = operation.operand(0), operation.operand(1)
    if operation.opset < 7 and operation.integer("broadcast", 0) and "axis" in operation.attributes:
        axis = operation.axis(operation.integer("axis"), len(left.shape))
        missing = len(left.shape) - axis - len(right.shape)
        return operation.builder.reshape(right, (*right.shape, *(1,) * missing))
    return right


def _many(fold: str, result: str = "{0}") -> Rule:
    """A formula of two operands, over all operands in turn; ``result`` of it, with their number as ``{n}``."""

    def rule(operation: Operation) -> Sequence[Value]:
        operands = [operation.operand(index) for index in range(len(operation.operands))]
        formula = "{0}"
        for index in range(1, len(operands)):
            formula = fold.format(formula, f"{{{index}}}")
        final = result.format(formula, n=len(operands))
        return [pointwise(operation.builder, operation.kind.lower(), final, operands, operands[0].type)]

    return rule


def _cast(operation: Operation) -> Sequence[Value]:
    return [_converted(operation, operation.type_of(operation.integer("to")))]


def _cast_like(operation: Operation) -> Sequence[Value]:
    return [_converted(operation, operation.operand(1).type)]


def _converted(operation: Operation, type: ScalarType) -> Value:
    """The operand as another type; floats of eight bits hold the greatest number in place of greater ones."""
    operand = operation.operand(0)
    if type.itemsize == 1 and type.is_floating and operand.type.is_floating and operation.integer("saturate", 1):
        formula = f"min(max(float32({{0}}), -{type.largest!r}), {type.largest!r})"
        return pointwise(operation.builder, f"to_{type}", formula, [operand], type)
    return cast(operation.builder, operand, type)


def _clip(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    formula, operands = "{0}", [operand]
    for name, index, function in (("min", 1, "max"), ("max", 2, "min")):
        bound = operation.optional(index)
        if bound is not None:
            operands.append(operation.builder.reshape(bound, ()))
            formula = f"{function}({formula}, {{{len(operands) - 1}}})"
        elif name in operation.attributes:
            formula = f"{function}({formula}, {literal(operation.number(name), operand.type)})"
    return [pointwise(operation.builder, "clip", formula, operands, operand.type)]


def _where(operation: Operation) -> Sequence[Value]:
    operands = [operation.operand(index) for index in range(3)]
    return [pointwise(operation.builder, "where", "{0} ? {1} : {2}", operands, operands[1].type)]


_INTEGER_MODULO: Final = "({0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0)) ? {0} % {1} + {1} : {0} % {1}"
_FLOAT_MODULO: Final = (
    "fmod({0}, {1}) == 0 ? copysign(0, {1}) : (fmod({0}, {1}) < 0) != ({1} < 0) ? fmod({0}, {1}) + {1} : fmod({0}, {1})"
)


def _modulo(operation: Operation) -> Sequence[Value]:
    left, right = operation.operand(0), operation.operand(1)
    if operation.integer("fmod", 0):
        formula = "fmod({0}, {1})" if left.type.is_floating else "{0} % {1}"
    else:  # Python's, whose sign is that of the divisor
        formula = _INTEGER_MODULO if left.type.is_integer else _FLOAT_MODULO
    return [pointwise(operation.builder, "mod", formula, [left, right], left.type)]


def _power(operation: Operation) -> Sequence[Value]:
    left, right = operation.operand(0), aligned(operation)
    return [pointwise(operation.builder, "pow", "pow({0}, {1})", [left, right], left.type)]


def _is_infinite(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    infinity = "float64(1.0 / 0.0)"
    found = [f"float64({{0}}) == {infinity}"] if operation.integer("detect_positive", 1) else []
    found += [f"float64({{0}}) == -{infinity}"] if operation.integer("detect_negative", 1) else []
    formula = " || ".join(found) or "{0} != {0} && {0} == {0}"
    return [pointwise(operation.builder, "is_inf", formula, [operand], ScalarType.BOOL)]


def _gelu(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    if operation.text("approximate", "none") == "tanh":
        formula = f"0.5 * {{0}} * (1 + tanh({math.sqrt(2 / math.pi)!r} * ({{0}} + 0.044715 * {{0}} * {{0}} * {{0}})))"
    else:
        formula = f"0.5 * {{0}} * (1 + erf({{0}} * {math.sqrt(0.5)!r}))"
    return [pointwise(operation.builder, "gelu", formula, [operand], operand.type)]


def _parametric_relu(operation: Operation) -> Sequence[Value]:
    operand, slope = operation.operand(0), operation.operand(1)
    if len(slope.shape) == 1 and operation.opset < 9 and len(operand.shape) > 2:
        slope = operation.builder.reshape(slope, (*slope.shape, *(1,) * (len(operand.shape) - 2)))
    return [pointwise(operation.builder, "prelu", "{0} < 0 ? {1} * {0} : {0}", [operand, slope], operand.type)]


def _dropout(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    training = operation.optional(2)
    if training is not None and bool(operation.contents(training).reshape(-1)[0]):
        ratio = operation.optional(1)
        if ratio is None or float(operation.contents(ratio).reshape(-1)[0]) != 0:
            raise operation.error("dropout in training draws random numbers, which is not supported")
    mask = pointwise(operation.builder, "mask", "{0} == {0} || {0} != {0}", [operand], ScalarType.BOOL)
    return [operand, mask]


def _sign(operation: Operation) -> Sequence[Value]:
    operand = operation.operand(0)
    nan = " : {0} != {0} ? {0}" if operand.type.is_floating else ""
    formula = "{0} > 0 ? 1 : {0} < 0 ? -1" + nan + " : 0"
    return [pointwise(operation.builder, "sign", formula, [operand], operand.type)]


BOOL: Final = ScalarType.BOOL
RULES: Final[dict[str, Rule]] = {
    "Abs": _unary("abs({0})"),
    "Acos": _unary("acos({0})"),
    "Acosh": _unary("acosh({0})"),
    "Add": _binary("{0} + {1}"),
    "And": _binary("{0} && {1}", type=BOOL),
    "Asin": _unary("asin({0})"),
    "Asinh": _unary("asinh({0})"),
    "Atan": _unary("atan({0})"),
    "Atanh": _unary("atanh({0})"),
    "Cast": _cast,
    "CastLike": _cast_like,
    "Ceil": _unary("ceil({0})"),
    "Celu": _with("max({0}, 0) + min(0, {alpha} * (exp({0} / {alpha}) - 1))", alpha=1.0),
    "Clip": _clip,
    "Cos": _unary("cos({0})"),
    "Cosh": _unary("cosh({0})"),
    "Div": _binary("{0} / {1}"),
    "Dropout": _dropout,
    "Elu": _with("{0} < 0 ? {alpha} * (exp({0}) - 1) : {0}", alpha=1.0),
    "Equal": _binary("{0} == {1}", type=BOOL),
    "Erf": _unary("erf({0})"),
    "Exp": _unary("exp({0})"),
    "Floor": _unary("floor({0})"),
    "Gelu": _gelu,
    "Greater": _binary("{0} > {1}", type=BOOL),
    "GreaterOrEqual": _binary("{0} >= {1}", type=BOOL),
    "HardSigmoid": _with("max(0, min(1, {alpha} * {0} + {beta}))", alpha=0.2, beta=0.5),
    "HardSwish": _unary("{0} * max(0, min(1, {0} / 6 + 0.5))"),
    "IsInf": _is_infinite,
    "IsNaN": lambda operation: [
        pointwise(operation.builder, "is_nan", "{0} != {0}", [operation.operand(0)], ScalarType.BOOL)
    ],
    "LeakyRelu": _with("{0} < 0 ? {alpha} * {0} : {0}", alpha=0.01),
    "Less": _binary("{0} < {1}", type=BOOL),
    "LessOrEqual": _binary("{0} <= {1}", type=BOOL),
    "Log": _unary("log({0})"),
    "Max": _many("max({0}, {1})"),
    "Mean": _many("{0} + {1}", "({0}) / {n}"),
    "Min": _many("min({0}, {1})"),
    "Mish": _unary(MISH),
    "Mod": _modulo,
    "Mul": _binary("{0} * {1}"),
    "Neg": _unary("-{0}"),
    "Not": _unary("!{0}"),
    "Or": _binary("{0} || {1}", type=BOOL),
    "PRelu": _parametric_relu,
    "Pow": _power,
    "Reciprocal": _unary("1 / {0}"),
    "Relu": _unary("max({0}, 0)"),
    "Round": _unary("abs(round({0}) - {0}) == 0.5 ? 2 * round({0} / 2) : round({0})"),
    "Selu": _with(
        "{gamma} * ({0} > 0 ? {0} : {alpha} * exp({0}) - {alpha})", alpha=1.6732632423543772, gamma=1.0507009873554805
    ),
    "Shrink": _with("{0} < -{lambd} ? {0} + {bias} : {0} > {lambd} ? {0} - {bias} : 0", lambd=0.5, bias=0.0),
    "Sigmoid": _unary("1 / (1 + exp(-{0}))"),
    "Sign": _sign,
    "Sin": _unary("sin({0})"),
    "Sinh": _unary("sinh({0})"),
    "Softplus": _unary("max({0}, 0) + log1p(exp(-abs({0})))"),
    "Softsign": _unary("{0} / (1 + abs({0}))"),
    "Sqrt": _unary("sqrt({0})"),
    "Sub": _binary("{0} - {1}"),
    "Sum": _many("{0} + {1}"),
    "Swish": _with("{0} / (1 + exp(-{alpha} * {0}))", alpha=1.0),
    "Tan": _unary("tan({0})"),
    "Tanh": _unary("tanh({0})"),
    "ThresholdedRelu": _with("{0} > {alpha} ? {0} : 0", alpha=1.0),
    "Where": _where,
    "Xor": _binary("{0} != {1}", type=BOOL),
}
