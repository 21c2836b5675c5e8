"""Operators that compute each element from those at its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import torch

from tc.base.types import ScalarType, computation_type
from tc.graph.ir.values import Value
from tc.graph.operators.pointwise import MISH, cast, pointwise
from tc.graph.operators.texts import literal
from tc.torch.aten.views import converted
from tc.torch.fx.operation import Operation, Rule, Rules, UnclaimedError
from tc.torch.fx.types import TYPES

aten: Final = torch.ops.aten


def formula(
    operation: Operation,
    name: str,
    expression: str,
    operands: Sequence[object],
    type: ScalarType,
    *,
    rounded: bool = False,
) -> Value:
    """A formula of tensors and scalars, which are computed in a type and cast to that of the result.

    A number becomes a literal of the type in which halves are computed, as PyTorch's arithmetic has it; ``rounded``: of
    the type itself, as its comparisons have it.
    """
    literals = type if rounded else computation_type(type)
    values: list[Value] = []
    places: list[str] = []
    for operand in operands:
        if isinstance(operand, Value):
            # A comparison or a condition reads operands as they are.
            places.append(f"{{{len(values)}}}" if operand.type is type else f"{type}({{{len(values)}}})")
            values.append(operand)
        elif isinstance(operand, bool | int | float):
            places.append(literal(float(operand) if type.is_floating else int(operand), literals))
        else:
            raise UnclaimedError(f"takes {operand!r} as a number")
    if not values:
        raise UnclaimedError("takes no tensor")
    return pointwise(operation.builder, name, expression.format(*places), values, operation.type)


def common_type(operation: Operation, names: tuple[str, str]) -> ScalarType:
    """The type to which PyTorch promotes two arguments."""
    schema = [argument.name for argument in operation.node.target._schema.arguments]  # type: ignore[union-attr]
    found = []
    for name in names:
        at = schema.index(name)
        given: Any = operation.node.args[at] if at < len(operation.node.args) else operation[name]
        found.append(given.meta["val"] if isinstance(given, torch.fx.Node) else given)
    left, right = (one if isinstance(one, bool | int | float | torch.Tensor) else 1 for one in found)
    promoted = torch.result_type(left, right)
    if promoted not in TYPES:
        raise UnclaimedError(f"computes in {promoted}")
    return TYPES[promoted]


def _short(operation: Operation) -> str:
    return operation.name.split(".")[1].strip("_")


def _unary(expression: str) -> Rule:
    """Computed in the type of the result."""

    def rule(operation: Operation) -> Value:
        return formula(operation, _short(operation), expression, [operation.value("self")], operation.type)

    return rule


def _binary(expression: str) -> Rule:
    """Computed in the type of the result, to which both operands are cast."""

    def rule(operation: Operation) -> Value:
        operands = [operation["self"], operation["other"]]
        return formula(operation, _short(operation), expression, operands, operation.type)

    return rule


def _comparison(sign: str) -> Rule:
    """Compared in the type to which PyTorch promotes the operands."""

    def rule(operation: Operation) -> Value:
        type, operands = common_type(operation, ("self", "other")), [operation["self"], operation["other"]]
        return formula(operation, _short(operation), f"{{0}} {sign} {{1}}", operands, type, rounded=True)

    return rule


def _logical(expression: str) -> Rule:
    """Of truth values: what is not 0 is true."""

    def rule(operation: Operation) -> Value:
        names = [name for name in ("self", "other") if operation.has(name)]
        operands = [operation.value(name) for name in names]
        places = [f"({_truth(own, at)})" for at, own in enumerate(operands)]
        return pointwise(operation.builder, _short(operation), expression.format(*places), operands, ScalarType.BOOL)

    return rule


def _truth(value: Value, at: int) -> str:
    """Whether operand ``at`` is not 0; what is true or false is not compared with a number, which is ``int64``."""
    return f"{{{at}}}" if value.type is ScalarType.BOOL else f"{{{at}}} != 0"


def _sum(sign: str, swapped: bool = False) -> Rule:
    def rule(operation: Operation) -> Value:
        left, right, factor = operation["self"], operation["other"], operation["alpha"]
        if swapped:
            left, right = right, left
        first, second = "{0}", "{1}"
        if factor not in (None, 1):
            wide = computation_type(operation.type)
            scaled = literal(float(factor) if operation.type.is_floating else int(factor), wide)
            first, second = (f"{scaled} * {{0}}", second) if swapped else (first, f"{scaled} * {{1}}")
        if operation.type is ScalarType.BOOL:
            if sign == "-":
                raise UnclaimedError("subtracts truth values")
            return formula(operation, _short(operation), "{0} || {1}", [left, right], ScalarType.BOOL)
        return formula(operation, _short(operation), f"{first} {sign} {second}", [left, right], operation.type)

    return rule


def _divided(operation: Operation) -> Value:
    mode = operation["rounding_mode"]
    operands, type = [operation["self"], operation["other"]], operation.type
    if mode is None:
        return formula(operation, "div", "{0} / {1}", operands, type)
    if type.is_floating:
        text = "trunc({0} / {1})" if mode == "trunc" else _FLOORED_QUOTIENT
        return formula(operation, "div", text, operands, type)
    rounded = "{0} / {1}" if mode == "trunc" else _floored(operands[1], type)
    return formula(operation, "div", rounded, operands, type)


# As Python has it: of what the remainder leaves, so that it is never one more than the quotient.
_QUOTIENT: Final = "(({0} - fmod({0}, {1})) / {1} - (fmod({0}, {1}) != 0 && ({1} < 0) != (fmod({0}, {1}) < 0) ? 1 : 0))"
_FLOORED_QUOTIENT: Final = (
    f"{{1}} == 0 ? {{0}} / {{1}} : {_QUOTIENT} == 0 ? copysign({{0}} * 0, {{0}} / {{1}}) : "
    f"floor({_QUOTIENT}) + ({_QUOTIENT} - floor({_QUOTIENT}) > 0.5 ? 1 : 0)"
)
_FLOORED: Final = "{0} / {1} - ({0} % {1} != 0 && ({0} < 0) != ({1} < 0) ? 1 : 0)"
_INTEGER_REMAINDER: Final = "({0} % {1} != 0 && ({0} % {1} < 0) != ({1} < 0)) ? {0} % {1} + {1} : {0} % {1}"
# The same by what is known to be positive, as most divisors are, with fewer conditions.
_FLOORED_BY_POSITIVE: Final = "{0} / {1} - ({0} % {1} < 0 ? 1 : 0)"
_REMAINDER_BY_POSITIVE: Final = "{0} % {1} < 0 ? {0} % {1} + {1} : {0} % {1}"
_REMAINDER: Final = "fmod({0}, {1}) != 0 && (fmod({0}, {1}) < 0) != ({1} < 0) ? fmod({0}, {1}) + {1} : fmod({0}, {1})"


def _is_positive(divisor: object, type: ScalarType) -> bool:
    """Whether it is a number that is above 0 as one of an integer type, too."""
    return isinstance(divisor, int | float) and 1 <= divisor <= type.maximum


def _floored(divisor: object, type: ScalarType) -> str:
    return _FLOORED_BY_POSITIVE if _is_positive(divisor, type) else _FLOORED


def _remainder(operation: Operation) -> Value:
    if operation.type.is_floating:
        text = _REMAINDER
    else:
        positive = _is_positive(operation["other"], operation.type)
        text = _REMAINDER_BY_POSITIVE if positive else _INTEGER_REMAINDER
    return formula(operation, "remainder", text, [operation["self"], operation["other"]], operation.type)


def _floor_divided(operation: Operation) -> Value:
    text = _FLOORED_QUOTIENT if operation.type.is_floating else _floored(operation["other"], operation.type)
    return formula(operation, "floor_divide", text, [operation["self"], operation["other"]], operation.type)


def _power(operation: Operation) -> Value:
    exponent, type = operation["exponent"], operation.type
    if isinstance(exponent, bool | int | float) and type.is_floating:
        known = {0: "1.0 + 0 * {0}", 1: "{0}", 2: "{0} * {0}", 3: "{0} * {0} * {0}", 0.5: "sqrt({0})", -1: "1 / {0}"}
        if exponent in known and exponent != 0:
            return formula(operation, "pow", known[exponent], [operation["self"]], type)
    if not type.is_floating:
        if isinstance(exponent, int) and exponent in (1, 2, 3):
            return formula(operation, "pow", " * ".join(["{0}"] * exponent), [operation["self"]], type)
        raise UnclaimedError("raises integers to powers")
    return formula(operation, "pow", "pow({0}, {1})", [operation["self"], exponent], type)


def _where(operation: Operation) -> Value:
    condition, left, right = operation.value("condition"), operation["self"], operation["other"]
    operands, places = [condition], [_truth(condition, 0)]
    for own in (left, right):
        if isinstance(own, Value):
            places.append(f"{operation.type}({{{len(operands)}}})")
            operands.append(own)
        else:
            places.append(literal(own, operation.type))
    expression = f"{places[0]} ? {places[1]} : {places[2]}"
    return pointwise(operation.builder, "where", expression, operands, operation.type)


def _clamp(operation: Operation) -> Value:
    names = [name for name in ("min", "max") if operation.has(name)]
    expression = "{0}"
    for at, name in enumerate(names, 1):
        # A bound that is NaN, or an element, is the result.
        sign = "<" if name == "min" else ">"
        expression = f"({expression} {sign} {{{at}}} || {{{at}}} != {{{at}}} ? {{{at}}} : {expression})"
    return formula(
        operation, "clamp", expression, [operation["self"], *(operation[name] for name in names)], operation.type
    )


def _converted(operation: Operation) -> Value:
    return converted(operation, operation.value("self"), operation.type)


def _copied(operation: Operation) -> Value:
    return cast(operation.builder, operation.value("self"), operation.type)


def _gelu(operation: Operation) -> Value:
    text = "0.5 * {0} * (1 + erf({0} * 0.7071067811865476))"
    if operation["approximate"] == "tanh":
        text = "0.5 * {0} * (1 + tanh(0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})))"
    return formula(operation, "gelu", text, [operation.value("self")], operation.type)


def _with(expression: str, *names: str) -> Rule:
    """A formula of ``self`` and of scalar arguments by name."""

    def rule(operation: Operation) -> Value:
        type = operation.type
        computed = ScalarType.FLOAT64 if type is ScalarType.FLOAT64 else ScalarType.FLOAT32
        given = {name: literal(float(operation.number(name)), computed) for name in names}
        return formula(operation, _short(operation), expression.format("{0}", **given), [operation.value("self")], type)

    return rule


def _bitwise(sign: str) -> Rule:
    def rule(operation: Operation) -> Value:
        logical = {"&": "{0} && {1}", "|": "{0} || {1}", "^": "{0} != {1}"}
        boolean = operation.type is ScalarType.BOOL
        text = logical[sign] if boolean else f"{{0}} {sign} {{1}}"
        return formula(operation, _short(operation), text, [operation["self"], operation["other"]], operation.type)

    return rule


def _not(operation: Operation) -> Value:
    text = "!{0}" if operation.type is ScalarType.BOOL else "~{0}"
    return formula(operation, "not", text, [operation.value("self")], operation.type)


def _sign(operation: Operation) -> Value:
    if operation.type is ScalarType.BOOL or operation.type.value.startswith("uint"):
        return formula(operation, "sign", "{0}", [operation.value("self")], operation.type)
    text = (
        "{0} > 0 ? 1 : {0} < 0 ? -1 : 0 * {0}" if not operation.type.is_floating else "{0} > 0 ? 1 : {0} < 0 ? -1 : 0"
    )
    return formula(operation, "sign", text, [operation.value("self")], operation.type)


# Functions of the language that are called alike.
_FUNCTIONS: Final = (
    "exp exp2 expm1 log log2 log10 log1p sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh "
    "erf erfc erfinv floor ceil trunc abs lgamma"
)
_UNARY: Final[dict[str, str]] = {
    **{name: f"{name}({{0}})" for name in _FUNCTIONS.split()},
    "neg": "-{0}",
    "reciprocal": "1 / {0}",
    "sigmoid": "1 / (1 + exp(-{0}))",
    "relu": "{0} < 0 ? 0 : {0}",
    "mish": MISH,
    "square": "{0} * {0}",
    "frac": "{0} - trunc({0})",
}
_UNCHANGED_INTEGERS: Final = ("floor", "ceil", "trunc")


def _named(expression: str) -> Rule:
    plain = _unary(expression)

    def rule(operation: Operation) -> Value:
        unsigned = operation.type is ScalarType.BOOL or operation.type.value.startswith("uint")
        if not operation.type.is_floating and (_short(operation) in _UNCHANGED_INTEGERS):
            return operation.value("self")
        if unsigned and _short(operation) == "abs":
            return operation.value("self")
        return plain(operation)  # type: ignore[return-value]

    return rule


def _is(expression: str, whole: str) -> Rule:
    """A test of each element; of integers it is ``whole``."""

    def rule(operation: Operation) -> Value:
        own = operation.value("self")
        text = expression if own.type.is_floating else f"{{0}} == {{0}} && bool({whole})"
        return pointwise(operation.builder, _short(operation), text, [own], ScalarType.BOOL)

    return rule


def _extreme(name: str) -> Rule:
    """The greater or lesser of two; NaN where one is."""
    return _binary(f"{name}({{0}}, {{1}})")


def _pairs() -> Iterator[tuple[Any, Rule]]:
    for name, expression in _UNARY.items():
        packet = getattr(aten, name, None)
        if packet is not None and "default" in packet.overloads():
            yield packet.default, _named(expression)
    for name, sign in (("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")):
        for overload in ("Tensor", "Scalar"):
            yield getattr(getattr(aten, name), overload), _comparison(sign)
    for overload in ("Tensor", "Scalar"):
        yield getattr(aten.add, overload), _sum("+")
        yield getattr(aten.sub, overload), _sum("-")
        yield getattr(aten.rsub, overload), _sum("-", swapped=True)
        yield getattr(aten.mul, overload), _multiplied
        yield getattr(aten.div, overload), _divided
        yield getattr(aten.div, f"{overload}_mode"), _divided
        yield getattr(aten.remainder, overload), _remainder
        yield getattr(aten.fmod, overload), _fmod
        for name, sign in (("and", "&"), ("or", "|"), ("xor", "^")):
            yield getattr(getattr(aten, f"bitwise_{name}"), overload), _bitwise(sign)
        yield getattr(aten.pow, f"Tensor_{overload}"), _power


def _multiplied(operation: Operation) -> Value:
    text = "{0} && {1}" if operation.type is ScalarType.BOOL else "{0} * {1}"
    return formula(operation, "mul", text, [operation["self"], operation["other"]], operation.type)


def _fmod(operation: Operation) -> Value:
    text = "fmod({0}, {1})" if operation.type.is_floating else "{0} % {1}"
    return formula(operation, "fmod", text, [operation["self"], operation["other"]], operation.type)


RULES: Final[Rules] = {
    **dict(_pairs()),
    aten.pow.Scalar: _power,
    aten.floor_divide.default: _floor_divided,
    aten.where.self: _where,
    aten.clamp.default: _clamp,
    aten.clamp.Tensor: _clamp,
    aten.clamp_min.default: _clamp,
    aten.clamp_max.default: _clamp,
    aten.maximum.default: _extreme("max"),
    aten.minimum.default: _extreme("min"),
    aten.fmax.default: _extreme("fmax"),
    aten.fmin.default: _extreme("fmin"),
    aten.atan2.default: _binary("atan2({0}, {1})"),
    aten.hypot.default: _binary("hypot({0}, {1})"),
    aten.copysign.Tensor: _binary("copysign({0}, {1})"),
    aten.copysign.Scalar: _binary("copysign({0}, {1})"),
    aten.nextafter.default: _binary("nextafter({0}, {1})"),
    aten.ldexp.Tensor: _binary("{0} * exp2({1})"),
    aten.logical_and.default: _logical("{0} && {1}"),
    aten.logical_or.default: _logical("{0} || {1}"),
    aten.logical_xor.default: _logical("{0} != {1}"),
    aten.logical_not.default: _logical("!{0}"),
    aten.bitwise_not.default: _not,
    aten.sign.default: _sign,
    aten.isnan.default: _is("{0} != {0}", "0"),
    aten.isinf.default: _is("{0} == 1.0 / 0.0 || {0} == -1.0 / 0.0", "0"),
    aten._to_copy.default: _converted,
    aten.clone.default: _copied,
    aten.alias.default: _copied,
    aten.detach.default: _copied,
    aten.lift_fresh_copy.default: _copied,
    aten.gelu.default: _gelu,
    aten.leaky_relu.default: _with("{0} > 0 ? {0} : {0} * {negative_slope}", "negative_slope"),
    aten.hardtanh.default: _with(
        "{0} < {min_val} ? {min_val} : {0} > {max_val} ? {max_val} : {0}", "min_val", "max_val"
    ),
    aten.elu.default: _with(
        "{0} > 0 ? {0} * {scale} : (exp({0} * {input_scale}) - 1) * {alpha} * {scale}", "alpha", "scale", "input_scale"
    ),
}
