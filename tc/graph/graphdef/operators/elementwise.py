"""Operators that compute each element from those at its place."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Final

from tc.base.types import ScalarType
from tc.graph.graphdef.operation import Operation, Operator
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import broadcast_shape, cast, pointwise
from tc.graph.operators.texts import access, definition, iterators, literal, parameter, sizes

BOOL: Final = ScalarType.BOOL


def formula(expression: str, count: int, *, whole: str | None = None, type: ScalarType | None = None) -> Operator:
    """A formula of so many operands; ``whole`` of integers.  ``type`` of the result; None for that of the first."""

    def rule(operation: Operation) -> Sequence[Value]:
        operands = operation.operands
        own = whole if whole is not None and not operands[0].type.is_floating else expression
        result = operands[0].type if type is None else type
        return [pointwise(operation.builder, operation.kind.lower(), own, operands, result)]

    return Operator(rule, count)


def _with(expression: str, **defaults: float) -> Operator:
    """A formula of one operand and of attributes that are numbers: ``{alpha}``."""

    def rule(operation: Operation) -> Sequence[Value]:
        (operand,) = operation.operands
        kind = ScalarType.FLOAT64 if operand.type is ScalarType.FLOAT64 else ScalarType.FLOAT32
        given = {name: literal(operation.number(name, value), kind) for name, value in defaults.items()}
        own = expression.format("{0}", **given)
        return [pointwise(operation.builder, operation.kind.lower(), own, [operand], operand.type)]

    return Operator(rule, 1)


def _add_n(operation: Operation) -> Sequence[Value]:
    operands = operation.operands
    total = " + ".join(f"{{{index}}}" for index in range(len(operands)))
    return [pointwise(operation.builder, "add_n", total, operands, operands[0].type)]


def _cast(operation: Operation) -> Sequence[Value]:
    return [cast(operation.builder, operation.operands[0], operation.type("DstT"))]


def _select(operation: Operation) -> Sequence[Value]:
    """A condition that is a vector chooses rows; another has the shape of what it chooses from."""
    condition, then, otherwise = operation.operands
    if operation.kind == "Select" and len(condition.shape) == 1 < len(then.shape):
        condition = operation.builder.reshape(condition, (*condition.shape, *(1,) * (len(then.shape) - 1)))
    return [pointwise(operation.builder, "select", "{0} ? {1} : {2}", [condition, then, otherwise], then.type)]


# Exponents from here on leave every integer type, but for powers of -1, 0 and 1.
_MOST: Final = 64


def _power(operation: Operation) -> Sequence[Value]:
    left, right = operation.operands
    if left.type.is_floating:
        return [pointwise(operation.builder, "pow", "pow({0}, {1})", [left, right], left.type)]
    shape = broadcast_shape([left.shape, right.shape], operation.node.place)
    builder, rank = operation.builder, len(shape)
    names, extents = iterators(rank), sizes(rank)
    base, exponent = access("A", names), access("B", names)
    squares = [access(f"A{place}", names) for place in range(_MOST.bit_length() - 1)]
    e = access("E", names)
    size = f"abs({exponent})"
    factors = [f"({e} / {2**place} % 2 == 1 ? {square} : 1)" for place, square in enumerate(squares)]
    statements = [
        f"{e} = {size} < {_MOST} ? {size} : {_MOST - 2} + {size} % 2",
        f"{squares[0]} = {base}",
        *(f"{square} = {before} * {before}" for before, square in itertools.pairwise(squares)),
        f"{access('P', names)} = {' * '.join(factors)}",
        f"{access('Y', names)} = {left.type}({exponent} >= 0 ? {access('P', names)} : 1 / {access('P', names)})",
    ]
    parameters = [parameter(left.type, extents, "A"), parameter(right.type, extents, "B")]
    operands = [builder.expand(left, shape), builder.expand(right, shape)]
    return [operation.one(definition("pow", parameters, ["Y"], statements), *operands)]


# Half to even; zeros keep their sign.
_ROUND: Final = "{0} - {0} == 0 ? copysign({0} - remainder({0}, 1), {0}) : {0}"
_SIGN: Final = "{0} > 0 ? 1 : {0} < 0 ? -1 : {0} != {0} ? {0} : 0"
_FLOOR_MOD: Final = "fmod({0}, {1}) != 0 && (fmod({0}, {1}) < 0) != ({1} < 0) ? fmod({0}, {1}) + {1} : fmod({0}, {1})"
_WHOLE_FLOOR_MOD: Final = "{0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0) ? {0} % {1} + {1} : {0} % {1}"
_WHOLE_FLOOR_DIV: Final = "{0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0) ? {0} / {1} - 1 : {0} / {1}"
# Of "Self-Normalizing Neural Networks", https://arxiv.org/abs/1706.02515
_SCALE, _SCALE_ALPHA = 1.0507009873554805, 1.7580993408473768

_ONE: Final = {
    "Abs": "abs({0})",
    "Acos": "acos({0})",
    "Acosh": "acosh({0})",
    "Asin": "asin({0})",
    "Asinh": "asinh({0})",
    "Atan": "atan({0})",
    "Atanh": "atanh({0})",
    "Cos": "cos({0})",
    "Cosh": "cosh({0})",
    "Elu": "{0} < 0 ? expm1({0}) : {0}",
    "Erf": "erf({0})",
    "Erfc": "erfc({0})",
    "Exp": "exp({0})",
    "Expm1": "expm1({0})",
    "Inv": "1 / {0}",
    "Lgamma": "lgamma({0})",
    "Log": "log({0})",
    "Log1p": "log1p({0})",
    "Neg": "-{0}",
    "Reciprocal": "1 / {0}",
    "Relu": "max({0}, 0)",
    "Relu6": "min(max({0}, 0), 6)",
    "Rsqrt": "rsqrt({0})",
    "Selu": f"{{0}} < 0 ? {_SCALE_ALPHA} * expm1({{0}}) : {_SCALE} * {{0}}",
    "Sigmoid": "1 / (1 + exp(-{0}))",
    "Sin": "sin({0})",
    "Sinh": "sinh({0})",
    "Softplus": "max({0}, 0) + log1p(exp(-abs({0})))",
    "Softsign": "{0} / (1 + abs({0}))",
    "Sqrt": "sqrt({0})",
    "Square": "{0} * {0}",
    "Tan": "tan({0})",
    "Tanh": "tanh({0})",
}
_TWO: Final = {
    "Add": "{0} + {1}",
    "AddV2": "{0} + {1}",
    "Atan2": "atan2({0}, {1})",
    "Div": "{0} / {1}",
    "DivNoNan": "{1} == 0 ? 0 : {0} / {1}",
    "Maximum": "max({0}, {1})",
    "Minimum": "min({0}, {1})",
    "Mul": "{0} * {1}",
    "RealDiv": "{0} / {1}",
    "SquaredDifference": "({0} - {1}) * ({0} - {1})",
    "Sub": "{0} - {1}",
    "TruncateDiv": "{0} / {1}",
}
_TRUTHS: Final = {
    "Equal": "{0} == {1}",
    "Greater": "{0} > {1}",
    "GreaterEqual": "{0} >= {1}",
    "Less": "{0} < {1}",
    "LessEqual": "{0} <= {1}",
    "LogicalAnd": "{0} && {1}",
    "LogicalOr": "{0} || {1}",
    "NotEqual": "{0} != {1}",
}
OPERATORS: Final = {
    **{name: formula(expression, 1) for name, expression in _ONE.items()},
    **{name: formula(expression, 2) for name, expression in _TWO.items()},
    **{name: formula(expression, 2, type=BOOL) for name, expression in _TRUTHS.items()},
    "AddN": Operator(_add_n, 0, lists=1),
    "Cast": Operator(_cast, 1),
    "Ceil": formula("ceil({0})", 1, whole="{0}"),
    "ClipByValue": formula("min(max({0}, {1}), {2})", 3),
    "Floor": formula("floor({0})", 1, whole="{0}"),
    "FloorDiv": formula("floor({0} / {1})", 2, whole=_WHOLE_FLOOR_DIV),
    "FloorMod": formula(_FLOOR_MOD, 2, whole=_WHOLE_FLOOR_MOD),
    "IsFinite": formula("{0} - {0} == 0", 1, type=BOOL),
    "IsInf": formula("{0} == {0} && {0} - {0} != 0", 1, type=BOOL),
    "IsNan": formula("{0} != {0}", 1, type=BOOL),
    "LeakyRelu": _with("{0} < 0 ? {alpha} * {0} : {0}", alpha=0.2),
    "LogicalNot": formula("!{0}", 1, type=BOOL),
    "Mod": formula("fmod({0}, {1})", 2, whole="{0} % {1}"),
    "Pow": Operator(_power, 2),
    "Rint": formula(_ROUND, 1),
    "Round": formula(_ROUND, 1, whole="{0}"),
    "Select": Operator(_select, 3),
    "SelectV2": Operator(_select, 3),
    "Sign": formula(_SIGN, 1, whole="{0} > 0 ? 1 : {0} < 0 ? -1 : 0"),
    "TruncateMod": formula("fmod({0}, {1})", 2, whole="{0} % {1}"),
}
