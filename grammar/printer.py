"""Syntax tree to canonical text: parsing it gives an equal tree.

One statement per line, one space around operators, parentheses only where precedence asks for them, ``;`` only
where the next statement could be read as part of the one before it.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Final, assert_never

from tc.grammar.syntax import (
    Apply,
    ArgReduction,
    Assign,
    Binary,
    BinaryOperator,
    Block,
    CallStatement,
    Conditional,
    ConditionClause,
    Definition,
    DistinctClause,
    ExistsClause,
    Expression,
    Extent,
    Identifier,
    LetClause,
    Name,
    Number,
    Parameter,
    RangeClause,
    Statement,
    Text,
    Unary,
    WhereClause,
)


class _Level(IntEnum):
    """How tightly an expression holds together; the order of C."""

    CONDITIONAL = 0
    DISJUNCTION = 1
    CONJUNCTION = 2
    EQUALITY = 3
    RELATION = 4
    SUM = 5
    PRODUCT = 6
    PREFIX = 7
    ATOM = 8


_LEVELS: Final = {
    BinaryOperator.OR: _Level.DISJUNCTION,
    BinaryOperator.AND: _Level.CONJUNCTION,
    BinaryOperator.EQUAL: _Level.EQUALITY,
    BinaryOperator.NOT_EQUAL: _Level.EQUALITY,
    BinaryOperator.LESS: _Level.RELATION,
    BinaryOperator.LESS_EQUAL: _Level.RELATION,
    BinaryOperator.GREATER: _Level.RELATION,
    BinaryOperator.GREATER_EQUAL: _Level.RELATION,
    BinaryOperator.ADD: _Level.SUM,
    BinaryOperator.SUBTRACT: _Level.SUM,
    BinaryOperator.MULTIPLY: _Level.PRODUCT,
    BinaryOperator.DIVIDE: _Level.PRODUCT,
    BinaryOperator.REMAINDER: _Level.PRODUCT,
}


def print_text(text: Text) -> str:
    """All definitions, separated by blank lines, with a newline at the end."""
    return "\n\n".join(map(print_definition, text.definitions)) + "\n"


def print_definition(definition: Definition) -> str:
    """One definition, without a newline at the end."""
    parameters = ", ".join(map(_parameter, definition.parameters))
    header = f"def {definition.name}({parameters}) -> ({_results(definition.results)})"
    return "\n".join([header + " {", *_indented(definition.statements), "}"])


def _indented(statements: tuple[Statement, ...]) -> list[str]:
    """The lines of statements in braces."""
    lines: list[str] = []
    for statement in statements:
        if lines and _continues(statement):
            lines[-1] += ";"
        lines.extend("    " + line for line in print_statement(statement).split("\n"))
    return lines


def print_statement(statement: Statement) -> str:
    """One statement on one line, or a block with a line for each of its statements, without a separator."""
    match statement:
        case Block(iterator, begin, end, statements):
            level = _Level.DISJUNCTION
            range = f"{_expression(begin, level)}:{_expression(end, level)}"
            return "\n".join([f"for {iterator} in {range} {{", *_indented(statements), "}"])
        case Assign():
            target = statement.target
            if statement.subscripts is not None:
                target += f"({_expressions(statement.subscripts)})"
            value = print_expression(statement.value)
            library = "" if statement.library is None else f" <=> {print_expression(statement.library)}"
            return f"{target} {statement.assignment.value} {value}{library}{_where(statement.where)}"
        case ArgReduction():
            targets = _expressions((statement.values, statement.indices))
            operands = _expressions((statement.value, statement.index))
            return f"({targets}) {statement.assignment.value} ({operands}){_where(statement.where)}"
        case CallStatement():
            arguments = _expressions(statement.arguments)
            return f"({_names(statement.results)}) = {statement.callee.name}({arguments})"
        case _:
            assert_never(statement)


def print_expression(expression: Expression) -> str:
    """One expression.

    A negative number, which no text holds, prints as the negation that means the same.  Raises ``ValueError`` for
    infinities and NaN, which have no literals.
    """
    return _expression(expression, _Level.CONDITIONAL)


def _expression(expression: Expression, context: int) -> str:
    """The text, in parentheses where ``context`` binds more tightly than the expression itself."""
    match expression:
        case Number(value):
            level, text = _number(value)
        case Name(name):
            level, text = _Level.ATOM, name
        case Extent(tensor, dimension):
            level, text = _Level.ATOM, f"{tensor}.{dimension}"
        case Apply(name, arguments):
            level, text = _Level.ATOM, f"{name}({_expressions(arguments)})"
        case Unary(operator, operand):
            level = _Level.PREFIX
            text = operator.value + _expression(operand, level)
        case Binary(operator, left, right):
            level = _LEVELS[operator]
            # Comparisons do not chain: without parentheses, people would read `0 <= i < N` as in Python.
            first = level + 1 if level in (_Level.EQUALITY, _Level.RELATION) else level
            text = f"{_expression(left, first)} {operator.value} {_expression(right, level + 1)}"
        case Conditional(condition, then, otherwise):
            level = _Level.CONDITIONAL
            choice = _expression(condition, level + 1)
            text = f"{choice} ? {_expression(then, level)} : {_expression(otherwise, level)}"
        case _:
            assert_never(expression)
    return f"({text})" if level < context else text


def _number(value: float) -> tuple[_Level, str]:
    if not math.isfinite(value):
        raise ValueError(f"{value} has no literal in the language")
    text = repr(value)
    return (_Level.PREFIX if text.startswith("-") else _Level.ATOM), text


def _expressions(expressions: tuple[Expression, ...]) -> str:
    return ", ".join([_expression(expression, _Level.CONDITIONAL) for expression in expressions])


def _names(names: tuple[Identifier, ...]) -> str:
    return ", ".join(name.name for name in names)


def _results(results: tuple[Identifier | Parameter, ...]) -> str:
    return ", ".join(_parameter(result) if isinstance(result, Parameter) else result.name for result in results)


def _parameter(parameter: Parameter) -> str:
    sizes = "" if parameter.dimensions is None else f"({_expressions(parameter.dimensions)})"
    return f"{parameter.type_name}{sizes} {parameter.name}"


def _where(clauses: tuple[WhereClause, ...]) -> str:
    return " where " + ", ".join(map(_clause, clauses)) if clauses else ""


def _clause(clause: WhereClause) -> str:
    match clause:
        case RangeClause(subject, begin, end):
            # Parentheses keep the colons of conditionals apart from the one of the range.
            level = _Level.DISJUNCTION
            return f"{_head(subject)} in {_expression(begin, level)}:{_expression(end, level)}"
        case LetClause(name, value):
            return f"{name} = {print_expression(value)}"
        case ExistsClause(access):
            return f"exists {print_expression(access)}"
        case DistinctClause(name):
            return f"distinct {name}"
        case ConditionClause(condition):
            return _head(condition)
        case _:
            assert_never(clause)


def _head(expression: Expression) -> str:
    """The expression with which a clause starts: a variable called ``exists`` must not look like the keyword."""
    bare_keyword = isinstance(expression, Name) and expression.name in ("exists", "distinct")
    return _expression(expression, _Level.ATOM + 1 if bare_keyword else _Level.DISJUNCTION)


def _continues(statement: Statement) -> bool:
    """Whether the statement, behind another one and white space, could be read as a part of it."""
    match statement:
        case Assign():
            return statement.target in ("where", "in")
        case CallStatement() | ArgReduction():
            return True
        case Block():
            return False
        case _:
            assert_never(statement)
