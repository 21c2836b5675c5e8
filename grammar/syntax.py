"""The syntax tree of a text: what was written, with a span on every node, and nothing resolved yet.

Nodes compare by what they say, not by where they stand: spans are excluded from equality.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from tc.base.errors import Span
from tc.base.frozen import frozen


class UnaryOperator(Enum):
    """Operators with one operand."""

    NEGATE = "-"
    NOT = "!"


class BinaryOperator(Enum):
    """Operators with two operands."""

    ADD = "+"
    SUBTRACT = "-"
    MULTIPLY = "*"
    DIVIDE = "/"
    REMAINDER = "%"
    EQUAL = "=="
    NOT_EQUAL = "!="
    LESS = "<"
    LESS_EQUAL = "<="
    GREATER = ">"
    GREATER_EQUAL = ">="
    AND = "&&"
    OR = "||"


class Assignment(Enum):
    """How a statement writes its target; the forms with ``!`` start from the neutral element."""

    SET = "="
    ADD = "+="
    MULTIPLY = "*="
    MINIMUM = "min="
    MAXIMUM = "max="
    ADD_INITIALIZED = "+=!"
    MULTIPLY_INITIALIZED = "*=!"
    MINIMUM_INITIALIZED = "min=!"
    MAXIMUM_INITIALIZED = "max=!"


@frozen
class Number:
    """A literal in C syntax; ``value`` is an int, or a float where the text has a point, exponent or ``f``."""

    value: int | float
    span: Span = field(compare=False)


@frozen
class Name:
    """A bare identifier: an iterator, a size, a scalar argument, or (in calls) a tensor."""

    name: str
    span: Span = field(compare=False)


@frozen
class Extent:
    """``T.0``: the size of one dimension of a tensor."""

    tensor: str
    dimension: int
    span: Span = field(compare=False)


@frozen
class Apply:
    """``f(e, ...)``: tensor access, builtin function, cast or call of a definition; checking decides."""

    name: str
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@frozen
class Unary:
    """An operator before its operand."""

    operator: UnaryOperator
    operand: Expression
    span: Span = field(compare=False)


@frozen
class Binary:
    """An operator between its operands."""

    operator: BinaryOperator
    left: Expression
    right: Expression
    span: Span = field(compare=False)


@frozen
class Conditional:
    """``condition ? then : otherwise``."""

    condition: Expression
    then: Expression
    otherwise: Expression
    span: Span = field(compare=False)


Expression: TypeAlias = Number | Name | Extent | Apply | Unary | Binary | Conditional


@frozen
class RangeClause:
    """``i in a:b`` (upper end excluded); the left side may be any affine expression."""

    subject: Expression
    begin: Expression
    end: Expression
    span: Span = field(compare=False)


@frozen
class LetClause:
    """``x = e``: every ``x`` of the statement stands for ``e``."""

    name: str
    value: Expression
    span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@frozen
class ExistsClause:
    """``exists T(i)``: the access takes part in range inference and reads nothing."""

    access: Apply
    span: Span = field(compare=False)


@frozen
class DistinctClause:
    """``distinct I``: no two instances find the same index in the tensor, so that ``=`` may write there."""

    name: str
    span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@frozen
class ConditionClause:
    """A boolean expression that every instance of the statement fulfils."""

    condition: Expression
    span: Span = field(compare=False)


WhereClause: TypeAlias = RangeClause | LetClause | ExistsClause | DistinctClause | ConditionClause


class ArgPart(Enum):
    """The two statements that a reduction with an index becomes: there is no index where there is no term."""

    VALUES = "values"
    INDICES = "indices"


@frozen
class Assign:
    """``T(subscripts) op value where ...``; ``subscripts`` is None where the text has no parentheses.

    Without parentheses the statement writes a zero-dimensional tensor, or calls a definition
    (``O1 = MLP1(I, W1, B1)``); checking decides.  ``library``: what the original language could call in its place,
    behind ``<=>``; it does not matter here.  ``arg_part``: which half of an ``ArgReduction`` it is, if it is one.
    """

    target: str
    subscripts: tuple[Expression, ...] | None
    assignment: Assignment
    value: Expression
    where: tuple[WhereClause, ...]
    span: Span = field(compare=False)
    target_span: Span = field(compare=False)
    assignment_span: Span = field(compare=False)
    library: Apply | None = None
    arg_part: ArgPart | None = None


@frozen
class Identifier:
    """A name in a list of names."""

    name: str
    span: Span = field(compare=False)


@frozen
class CallStatement:
    """``(C1, C2) = callee(arguments)``."""

    results: tuple[Identifier, ...]
    callee: Identifier
    arguments: tuple[Expression, ...]
    span: Span = field(compare=False)


@frozen
class ArgReduction:
    """``(values, indices) op (value, index) where ...``: the least or greatest value, and the least index that has it.

    ``values`` and ``indices`` are names where the text has no parentheses.
    """

    values: Apply | Name
    indices: Apply | Name
    assignment: Assignment
    value: Expression
    index: Expression
    where: tuple[WhereClause, ...]
    span: Span = field(compare=False)
    assignment_span: Span = field(compare=False)


@frozen
class Block:
    """``for iterator in begin:end { statements }`` (upper end excluded): they run in order for every value."""

    iterator: str
    begin: Expression
    end: Expression
    statements: tuple[Statement, ...]
    span: Span = field(compare=False)
    iterator_span: Span = field(compare=False)


Statement: TypeAlias = Assign | CallStatement | ArgReduction | Block


def within_blocks(statements: Iterable[Statement]) -> Iterator[Assign | CallStatement | ArgReduction]:
    """The statements, and those in blocks in the place of these."""
    for statement in statements:
        if isinstance(statement, Block):
            yield from within_blocks(statement.statements)
        else:
            yield statement


@frozen
class Parameter:
    """``float(M, 4) A`` or ``int sh``; ``dimensions`` is None for a scalar, sizes are names or numbers."""

    type_name: str
    dimensions: tuple[Name | Number, ...] | None
    name: str
    span: Span = field(compare=False)
    type_span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@frozen
class Definition:
    """``def name(parameters) -> (results) { statements }``.

    A result may say its type and sizes, ``-> (int32(M,N) C)``, as a parameter does; both are inferred all the same.
    """

    name: str
    parameters: tuple[Parameter, ...]
    results: tuple[Identifier | Parameter, ...]
    statements: tuple[Statement, ...]
    span: Span = field(compare=False)
    name_span: Span = field(compare=False)


@frozen
class Text:
    """All definitions of one source text, in order."""

    definitions: tuple[Definition, ...]
