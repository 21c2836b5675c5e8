"""The typing rules of ``Program`` expressions, for those that no checker has made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

from tc.base.counted import counted
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator, UnaryOperator
from tc.language.program.functions import FUNCTIONS
from tc.language.program.operators import ARITHMETIC, LOGIC
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Call,
    Cast,
    Expression,
    InRange,
    IteratorReference,
    Literal,
    Read,
    ScalarReference,
    Select,
    SizeReference,
    Unary,
    children,
)


def find_type_error(expression: Expression, ranks: Mapping[str, tuple[ScalarType, int]]) -> str | None:
    """What is wrong with the types of an expression; None if it is sound.  ``ranks``: type and rank per tensor."""
    for child in children(expression):
        found = find_type_error(child, ranks)
        if found is not None:
            return found
    match expression:
        case Literal(value, type):
            return _literal_error(value, type)
        case IteratorReference() | SizeReference() | ScalarReference() | Cast():
            return None
        case Read(tensor, subscripts, type):
            return _read_error(tensor, subscripts, type, ranks)
        case Unary(operator, operand, type):
            wanted = ScalarType.BOOL if operator is UnaryOperator.NOT else type
            if operand.type is not wanted or (operator is UnaryOperator.NEGATE) == (type is ScalarType.BOOL):
                return f"`{operator.value}` of {operand.type} does not give {type}"
            return None
        case Binary(operator, left, right, type):
            return _binary_error(operator, left.type, right.type, type)
        case Select(condition, then, otherwise, type):
            if condition.type is not ScalarType.BOOL or then.type is not type or otherwise.type is not type:
                return f"a choice by {condition.type} between {then.type} and {otherwise.type} does not give {type}"
            return None
        case InRange(index, begin, end, extent):
            wrong = next((part.type for part in (index, begin, end, extent) if part.type is not INDEX_TYPE), None)
            return None if wrong is None else f"a bound of a range is {wrong}, not {INDEX_TYPE}"
        case Call(function, arguments, type):
            return _call_error(function, [argument.type for argument in arguments], type)
        case _:
            assert_never(expression)


def _literal_error(value: bool | int | float, type: ScalarType) -> str | None:
    kind = bool if type is ScalarType.BOOL else float if type.is_floating else int
    if value.__class__ is not kind:
        return f"{value!r} is no literal of {type}"
    if type.is_integer and not type.minimum <= value <= type.maximum:
        return f"{value} does not fit into {type}"
    return None


def _read_error(
    tensor: str, subscripts: tuple[Expression, ...], type: ScalarType, ranks: Mapping[str, tuple[ScalarType, int]]
) -> str | None:
    if tensor not in ranks:
        return f"unknown tensor `{tensor}`"
    declared, rank = ranks[tensor]
    if len(subscripts) != rank:
        return f"`{tensor}` has {counted(rank, 'dimension')}, read with {counted(len(subscripts), 'subscript')}"
    if type is not declared:
        return f"`{tensor}` is {declared}, read as {type}"
    wrong = next((s.type for s in subscripts if s.type is not INDEX_TYPE), None)
    return None if wrong is None else f"a subscript of `{tensor}` is {wrong}, not {INDEX_TYPE}"


def _binary_error(operator: BinaryOperator, left: ScalarType, right: ScalarType, type: ScalarType) -> str | None:
    if operator in ARITHMETIC:
        sound = left is right is type and type is not ScalarType.BOOL
    elif operator in LOGIC:
        sound = left is right is type is ScalarType.BOOL
    else:
        sound = left is right and type is ScalarType.BOOL
    return None if sound else f"`{operator.value}` of {left} and {right} does not give {type}"


def _call_error(name: str, arguments: list[ScalarType], type: ScalarType) -> str | None:
    function = FUNCTIONS.get(name)
    if function is None:
        return f"unknown function `{name}`"
    if len(arguments) != function.arity:
        return f"`{name}` takes {counted(function.arity, 'argument')}, {len(arguments)} given"
    if any(argument is not type for argument in arguments):
        return f"`{name}` of {', '.join(map(str, arguments))} does not give {type}"
    return None if type.is_floating or function.keeps_integers else f"`{name}` needs floating-point operands"
