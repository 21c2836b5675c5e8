"""Short constructors of syntax nodes; their spans, which equality ignores, lie nowhere."""

from __future__ import annotations

from typing import Final

from tc.base.errors import Span
from tc.grammar.parser import parse
from tc.grammar.syntax import (
    Apply,
    Assign,
    Assignment,
    Binary,
    BinaryOperator,
    CallStatement,
    Definition,
    Expression,
    Extent,
    Identifier,
    Name,
    Number,
    Parameter,
    Statement,
    Unary,
    UnaryOperator,
    WhereClause,
)

NOWHERE: Final = Span(0, 0)


def number(value: float) -> Number:
    return Number(value, NOWHERE)


def name(text: str) -> Name:
    return Name(text, NOWHERE)


def extent(tensor: str, dimension: int) -> Extent:
    return Extent(tensor, dimension, NOWHERE)


def apply(function: str, *arguments: Expression) -> Apply:
    return Apply(function, arguments, NOWHERE, NOWHERE)


def negate(operand: Expression) -> Unary:
    return Unary(UnaryOperator.NEGATE, operand, NOWHERE)


def binary(operator: str, left: Expression, right: Expression) -> Binary:
    return Binary(BinaryOperator(operator), left, right, NOWHERE)


def identifiers(*names: str) -> tuple[Identifier, ...]:
    return tuple(Identifier(name, NOWHERE) for name in names)


def assign(
    target: str,
    subscripts: tuple[Expression, ...] | None,
    value: Expression,
    *where: WhereClause,
    assignment: Assignment = Assignment.SET,
) -> Assign:
    return Assign(target, subscripts, assignment, value, where, NOWHERE, NOWHERE, NOWHERE)


def call(results: tuple[str, ...], callee: str, *arguments: Expression) -> CallStatement:
    return CallStatement(identifiers(*results), Identifier(callee, NOWHERE), arguments, NOWHERE)


def parameter(type_name: str, dimensions: tuple[Name | Number, ...] | None, text: str) -> Parameter:
    return Parameter(type_name, dimensions, text, NOWHERE, NOWHERE, NOWHERE)


def parse_statements(body: str) -> tuple[Statement, ...]:
    """The statements of a body that stands in a definition of its own."""
    return parse_definition(f"def f(float(N) a) -> (c) {{ {body} }}").statements


def parse_definition(text: str) -> Definition:
    """The only definition of a text."""
    (definition,) = parse(text).definitions
    return definition


def parse_expression(text: str) -> Expression:
    """The value of a statement."""
    (statement,) = parse_statements(f"c = {text}")
    assert isinstance(statement, Assign)
    assert not statement.where
    return statement.value


def parse_where(text: str) -> tuple[WhereClause, ...]:
    """The clauses of a statement."""
    (statement,) = parse_statements(f"c = a where {text}")
    assert isinstance(statement, Assign)
    assert statement.value == name("a")
    return statement.where
