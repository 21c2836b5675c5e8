"""The terms of sums."""

from __future__ import annotations

from tc.base.dots import Products
from tc.base.types import ScalarType, computation_type
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, Call, Cast, Expression, Read, walk


def float32_term(value: Expression) -> Expression:
    """What a statement that reduces halves adds up, in float32.

    A conversion to a half at the root of the value says what type the reduction has; it rounds no term.
    """
    while isinstance(value, Cast) and value.type.is_half:
        value = value.operand
    return value if value.type is ScalarType.FLOAT32 else Cast(value, ScalarType.FLOAT32)


def bfloat16_factors(value: Expression) -> tuple[Read, Read] | None:
    """The factors of a term that is a product of two bfloat16 numbers, in their own type or in float32.

    Products of these are exact in float32, but processors and GPUs may take subnormal numbers for zeros in them.
    """
    return _factors(value, (ScalarType.BFLOAT16,))


def factors_of_instructions(value: Expression) -> tuple[Read, Read] | None:
    """The same of two bfloat16 or two float16 numbers, for which there are instructions that add up products.

    In an order and with roundings of their own.
    """
    return _factors(value, (ScalarType.BFLOAT16, ScalarType.FLOAT16))


def widened_term(value: Expression) -> Expression:
    """``float32_term``, whose factors are converted each by itself where it is a product of halves; others as is."""
    while isinstance(value, Cast) and value.type.is_half:
        value = value.operand
    match value:
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type.is_half:
            return Binary(BinaryOperator.MULTIPLY, widened_term(left), widened_term(right), ScalarType.FLOAT32)
        case _:
            return Cast(value, ScalarType.FLOAT32) if value.type.is_half else value


def is_factor(value: Expression, read: Read) -> bool:
    """Whether a term is a product of what is read and of other numbers, which is rounded to no half on the way."""
    while isinstance(value, Cast) and value.type.is_half:
        value = value.operand  # it says what type the reduction has
    return _is_factor(value, read)


def _is_factor(value: Expression, read: Read) -> bool:
    match value:
        case Read():
            return value == read
        case Cast(operand, type) if type in (ScalarType.FLOAT32, ScalarType.FLOAT64) and operand.type.is_floating:
            return _is_factor(operand, read)
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type.is_floating:
            return _is_factor(left, read) != _is_factor(right, read)
        case _:
            return False


def _factors(value: Expression, types: tuple[ScalarType, ...]) -> tuple[Read, Read] | None:
    """Those of a product of two numbers of one of the types."""
    sums = (ScalarType.FLOAT32, *types)
    while isinstance(value, Cast) and value.type in sums:
        value = value.operand
    match value:
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type in sums:
            first, second = (
                own.operand if isinstance(own, Cast) and own.type is ScalarType.FLOAT32 else own
                for own in (left, right)
            )
        case _:
            return None
    if isinstance(first, Read) and isinstance(second, Read) and first.type is second.type and first.type in types:
        return first, second
    return None


def half_factors(value: Expression) -> tuple[Read, Read] | None:
    """The factors of a term in float32 that is the product of two halves of one type, which is exact there."""
    while isinstance(value, Cast) and value.type is ScalarType.FLOAT32:
        value = value.operand
    match value:
        case Binary(BinaryOperator.MULTIPLY, left, right, type) if type is ScalarType.FLOAT32 or type.is_half:
            first, second = (
                own.operand if isinstance(own, Cast) and own.type is ScalarType.FLOAT32 else own
                for own in (left, right)
            )
        case _:
            return None
    if isinstance(first, Read) and isinstance(second, Read) and first.type is second.type and first.type.is_half:
        return first, second
    return None


def byte_factors(value: Expression) -> tuple[Read, Read] | None:
    """The factors of a term in int32 that is the product of two bytes, signed or not."""
    match value:
        case Binary(BinaryOperator.MULTIPLY, Cast(left, first), Cast(right, second), ScalarType.INT32):
            bytes = (ScalarType.INT8, ScalarType.UINT8)
            known = isinstance(left, Read) and isinstance(right, Read) and first is second is ScalarType.INT32
            if known and left.type in bytes and right.type in bytes:
                assert isinstance(left, Read)
                assert isinstance(right, Read)
                return left, right
    return None


def single_factors(value: Expression) -> tuple[Read, Read] | None:
    """The factors of a term that is the product of two float32 numbers."""
    match value:
        case Binary(BinaryOperator.MULTIPLY, Read() as first, Read() as second, ScalarType.FLOAT32):
            return (first, second) if first.type is second.type is ScalarType.FLOAT32 else None
        case _:
            return None


def matrix_factors(value: Expression, products: Products) -> tuple[Read, Read] | None:
    """Those of a term that matrix instructions may add up, as it is computed, or with factors rounded so."""
    rounded = None if products is Products.EXACT else single_factors(value)
    return half_factors(value) or byte_factors(value) or rounded


def is_product_of_two(value: Expression) -> bool:
    """Whether the terms of a sum are products of two things that are read, as in a product of matrices.

    Or dot products of words, which are added at once.
    """
    match value:
        case Cast(operand, type) if type in (operand.type, computation_type(operand.type)) or type.is_half:
            return is_product_of_two(operand)
        case Call("pair_dot"):
            return True
        case Binary(BinaryOperator.MULTIPLY, left, right):
            first, second = ({part for part in walk(side) if isinstance(part, Read)} for side in (left, right))
            return bool(first and second) and first != second
        case _:
            return False
