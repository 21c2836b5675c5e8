"""The binary operators by what they give: numbers, comparisons, logic."""

from __future__ import annotations

from typing import Final

from tc.grammar.syntax import BinaryOperator

ARITHMETIC: Final = (
    BinaryOperator.ADD,
    BinaryOperator.SUBTRACT,
    BinaryOperator.MULTIPLY,
    BinaryOperator.DIVIDE,
    BinaryOperator.REMAINDER,
)
EQUALITIES: Final = (BinaryOperator.EQUAL, BinaryOperator.NOT_EQUAL)
RELATIONS: Final = (
    BinaryOperator.LESS,
    BinaryOperator.LESS_EQUAL,
    BinaryOperator.GREATER,
    BinaryOperator.GREATER_EQUAL,
)
COMPARISONS: Final = EQUALITIES + RELATIONS
LOGIC: Final = (BinaryOperator.AND, BinaryOperator.OR)
