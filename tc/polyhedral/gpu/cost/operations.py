"""The arithmetic of one instance of a statement, by pipe: what compilers for NVIDIA's GPUs make of it.

Sequences of instructions are those of CUDA's mathematical library without fast mode, as NVRTC 13 inlines them,
rounded: a float32 division is a reciprocal, five multiply-adds and two checks.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Call, Cast, Expression, Read, Reduction, Select, Unary, children
from tc.polyhedral.gpu.cost.tally import NOTHING, Tally, tally
from tc.polyhedral.ir.loops import StatementBody

_DIVIDE: Final = tally(fma=5, special=1, alu=2, control=1)
_FUNCTIONS: Final[Mapping[str, Tally]] = MappingProxyType(
    {
        "exp": tally(fma=4, special=1, alu=2),
        "exp2": tally(fma=1, special=1, alu=2),
        "log": tally(fma=9, alu=6),
        "log2": tally(fma=1, special=1, alu=3),
        "sqrt": tally(fma=5, special=1, alu=2, control=1),
        "rsqrt": tally(fma=1, special=1, alu=2),
        "tanh": tally(fma=8, special=2, alu=5),
        "erf": tally(fma=14, special=1, alu=5),
        "sin": tally(fma=12, alu=10, control=2),
        "cos": tally(fma=12, alu=10, control=2),
        "pow": tally(fma=30, special=2, alu=20, control=2),
        "abs": NOTHING,
        "fabs": NOTHING,
        "fma": tally(fma=1, multiply_adds=1),
        "min": tally(alu=1),
        "max": tally(alu=1),
        "fmin": tally(alu=1),
        "fmax": tally(alu=1),
        "floor": tally(special=1),
        "ceil": tally(special=1),
    }
)
_OTHER_FUNCTION: Final = tally(fma=15, special=1, alu=8)
# Of doubles, each operation is one of the double pipe; a function takes so many.
_DOUBLE_FUNCTION: Final = tally(double=20, alu=6, special=1)
_DOUBLE_DIVIDE: Final = tally(double=8, special=1, alu=3)
# Division by a number that is not known, of integers.
_INTEGER_DIVIDE: Final = tally(alu=14, special=2)


def operations(body: StatementBody, type: ScalarType) -> Tally:
    """Of one instance whose target has this type, without its accesses."""
    value, computed = body.value, computation_type(type)
    found = _expression(value)
    if body.reduction is None:
        return found
    product = value.operand if isinstance(value, Cast) else value
    fused = (
        body.reduction is Reduction.ADD
        and isinstance(product, Binary)
        and product.operator is BinaryOperator.MULTIPLY
        and computation_type(product.type) is computed
    )
    if not fused:
        return found + _combination(body.reduction, computed)
    # The product and the sum are one instruction.
    if computed is ScalarType.FLOAT64:
        return found
    if computed.is_floating:
        return found + tally(multiply_adds=1)
    return found


def _combination(reduction: Reduction, type: ScalarType) -> Tally:
    match type:
        case ScalarType.FLOAT64:
            return tally(double=1)
        case _ if type.is_floating and reduction in (Reduction.ADD, Reduction.MULTIPLY):
            return tally(fma=1)
        case _:
            return tally(alu=1)


def _expression(expression: Expression) -> Tally:
    """Everything that is computed for a value; subscripts of reads are addresses, which are counted there."""
    if isinstance(expression, Read):
        return NOTHING
    found = _own(expression)
    for child in children(expression):
        found = found + _expression(child)
    return found


def _own(expression: Expression) -> Tally:
    match expression:
        case Binary(operator, _, _, type):
            return _binary(operator, computation_type(type))
        case Select():
            return tally(alu=1)
        case Cast(operand, type):
            return _conversion(operand.type, type)
        case Call(function, _, type):
            if computation_type(type) is ScalarType.FLOAT64:
                return _DOUBLE_FUNCTION
            return _FUNCTIONS.get(function, _OTHER_FUNCTION)
        case Unary(_, _, type):
            return NOTHING if type.is_floating else tally(alu=1)
        case _:
            return NOTHING


def _binary(operator: BinaryOperator, type: ScalarType) -> Tally:
    divides = operator in (BinaryOperator.DIVIDE, BinaryOperator.REMAINDER)
    if type is ScalarType.FLOAT64:
        return _DOUBLE_DIVIDE if divides else tally(double=1)
    if type.is_floating:
        return _DIVIDE if divides else tally(fma=1)
    if divides:
        return _INTEGER_DIVIDE
    # Integer products run where float32 arithmetic does.
    return tally(fma=1) if operator is BinaryOperator.MULTIPLY else tally(alu=1)


def _conversion(source: ScalarType, target: ScalarType) -> Tally:
    """Halves become floats by an addition or a shift; to another kind of number, by the pipe of special functions."""
    if source is target or computation_type(source) is computation_type(target):
        return NOTHING if source is target else tally(alu=1)
    if ScalarType.FLOAT64 in (source, target) or source.is_floating != target.is_floating:
        return tally(special=1)
    return tally(alu=1)
