"""From the rules of the grammar to the nodes of the syntax tree; runs while the parser reduces."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Final, NamedTuple

from tc.base.errors import Diagnostic, Span
from tc.grammar.syntax import (
    Apply,
    ArgReduction,
    Assign,
    Assignment,
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
    UnaryOperator,
    WhereClause,
)
from tc.grammar.tokens import Placed, Token

MAXIMUM_DEPTH: Final = 200
"""Levels of an expression: operators, applications and parentheses inside each other.

Passes over the tree may recurse: at four Python frames per level they stay below the default limit of 1,000.
"""


MAXIMUM_BLOCKS: Final = 16
"""Blocks inside each other."""


class RefusedError(Exception):
    """The text is in the grammar but beyond what the tree can hold; the parser adds the source."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


class Measured(NamedTuple):
    """An expression and the number of levels in it."""

    expression: Expression
    depth: int

    @property
    def span(self) -> Span:
        """Where the expression stands."""
        return self.expression.span


def too_deep(span: Span) -> Diagnostic:
    """The complaint about an expression that is nested too deeply."""
    return Diagnostic(
        f"the expression has more than {MAXIMUM_DEPTH} levels of operators and parentheses",
        span,
        "split it into several statements, each with a target of its own",
    )


def span_of(token: Placed) -> Span:
    """The place of a token that came from a text."""
    start = token.start_pos
    assert start is not None
    return Span(start, start + len(token))


def _measured(expression: Expression, *parts: Measured) -> Measured:
    depth = 1 + max((part.depth for part in parts), default=0)
    if depth > MAXIMUM_DEPTH:
        raise RefusedError(too_deep(expression.span))
    return Measured(expression, depth)


def _expressions(parts: tuple[Measured, ...]) -> tuple[Expression, ...]:
    return tuple(part.expression for part in parts)


_LARGEST_INTEGER: Final = 2**64 - 1
_LONGEST_INTEGER: Final = len(str(_LARGEST_INTEGER))


def _integer(token: Token) -> int:
    hexadecimal = token[:2] in ("0x", "0X")
    # Longer texts are not converted at all: Python refuses to convert thousands of decimal digits.
    if hexadecimal or len(token) <= _LONGEST_INTEGER:
        value = int(token, 16 if hexadecimal else 10)
        if value <= _LARGEST_INTEGER:
            return value
    hint = f"the largest is {_LARGEST_INTEGER}"
    raise RefusedError(Diagnostic("this integer does not fit 64 bits", span_of(token), hint))


def _floating(token: Token) -> float:
    value = float(token.rstrip("fF"))
    if math.isinf(value):
        message = "this number is beyond the range of 64-bit floating point"
        raise RefusedError(Diagnostic(message, span_of(token), "the largest is 1.7976931348623157e308"))
    return value


def _blocks_within(block: Block) -> int:
    """The most blocks inside each other, the block itself among them."""
    return 1 + max((_blocks_within(part) for part in block.statements if isinstance(part, Block)), default=0)


class Target(NamedTuple):
    """The left-hand side of an assignment."""

    name: str
    subscripts: tuple[Expression, ...] | None
    name_span: Span
    span: Span

    @property
    def access(self) -> Apply | Name:
        """As an expression."""
        if self.subscripts is None:
            return Name(self.name, self.span)
        return Apply(self.name, self.subscripts, self.span, self.name_span)


_ARG_REDUCTIONS: Final = (Assignment.MINIMUM_INITIALIZED, Assignment.MAXIMUM_INITIALIZED)
ARG_REDUCTION: Final = "`(m(i), k(i)) max=! (x(i,j), j)`"
_PAIR: Final = f"write {ARG_REDUCTION}: `k` gets the least `j` at which `m` is attained"


class Builder:
    """One method per rule of ``tc.lark``; expressions travel with their depth until a statement takes them."""

    def start(self, *definitions: Definition) -> Text:
        """``start``: all definitions of a text."""
        return Text(definitions)

    # Definitions

    def definition(
        self,
        opening: Token,
        name: Token,
        parameters: tuple[Parameter, ...],
        results: tuple[Identifier | Parameter, ...],
        *rest: Statement | Token,
    ) -> Definition:
        """``def name(parameters) -> (results) { statements }``."""
        statements = tuple(part for part in rest if not isinstance(part, str))
        closing = rest[-1]
        assert not isinstance(closing, Statement)
        span = span_of(opening).to(span_of(closing))
        return Definition(str(name), parameters, results, statements, span, span_of(name))

    def parameters(self, *parameters: Parameter) -> tuple[Parameter, ...]:
        """The parameters of a definition, in their order."""
        return parameters

    def scalar_parameter(self, type_name: Token, name: Token) -> Parameter:
        """``type name``."""
        type_span, name_span = span_of(type_name), span_of(name)
        return Parameter(str(type_name), None, str(name), type_span.to(name_span), type_span, name_span)

    def tensor_parameter(
        self, type_name: Token, sizes: tuple[Name | Number, ...], _closing: Token, name: Token
    ) -> Parameter:
        """``type(sizes) name``."""
        type_span, name_span = span_of(type_name), span_of(name)
        return Parameter(str(type_name), sizes, str(name), type_span.to(name_span), type_span, name_span)

    def sizes(self, *sizes: Measured) -> tuple[Name | Number, ...]:
        """The sizes of a parameter: names and numbers."""
        return tuple(size.expression for size in sizes if isinstance(size.expression, Name | Number))

    def results(self, *results: Identifier | Parameter) -> tuple[Identifier | Parameter, ...]:
        """The results of a definition, with a type or without."""
        return results

    def name(self, name: Token) -> Identifier:
        """One name."""
        return Identifier(str(name), span_of(name))

    # Statements

    def bare_target(self, name: Token) -> Target:
        """A left-hand side without subscripts."""
        return Target(str(name), None, span_of(name), span_of(name))

    def indexed_target(self, name: Token, subscripts: tuple[Measured, ...], closing: Token) -> Target:
        """``name(subscripts)`` on a left-hand side."""
        return Target(str(name), _expressions(subscripts), span_of(name), span_of(name).to(span_of(closing)))

    def targets(self, *targets: Target) -> tuple[Target, ...]:
        """Several left-hand sides in parentheses."""
        return targets

    def library(self, _operator: Token, name: Token, arguments: tuple[Measured, ...], closing: Token) -> Apply:
        """``<=> name(arguments)``."""
        name_span = span_of(name)
        return Apply(str(name), _expressions(arguments), name_span.to(span_of(closing)), name_span)

    def assign(
        self, target: Target, assignment: Token, value: Measured, *rest: Apply | tuple[WhereClause, ...]
    ) -> Assign:
        """A comprehension: ``target op value``, with its library call and its ``where`` clauses, if it has any."""
        library = next((part for part in rest if isinstance(part, Apply)), None)
        where = next((part for part in rest if isinstance(part, tuple)), ())
        end = where[-1].span if where else value.span if library is None else library.span
        return Assign(
            target.name,
            target.subscripts,
            Assignment(assignment),
            value.expression,
            where,
            target.name_span.to(end),
            target.name_span,
            span_of(assignment),
            library,
        )

    def call(
        self,
        opening: Token,
        targets: tuple[Target, ...],
        _assignment: Token,
        callee: Identifier,
        arguments: tuple[Measured, ...],
        closing: Token,
    ) -> CallStatement:
        """``(results) = name(arguments)``."""
        for target in targets:
            if target.subscripts is not None:
                message = "the results of a call are names, without subscripts"
                raise RefusedError(Diagnostic(message, target.span, f"write `{target.name}`"))
        results = tuple(Identifier(target.name, target.name_span) for target in targets)
        return CallStatement(results, callee, _expressions(arguments), span_of(opening).to(span_of(closing)))

    def arg_reduction(
        self,
        opening: Token,
        targets: tuple[Target, ...],
        assignment: Token,
        inner: Token,
        operands: tuple[Measured, ...],
        closing: Token,
        where: tuple[WhereClause, ...] = (),
    ) -> ArgReduction:
        """``(values, indices) op (value, index)``."""
        if Assignment(assignment) not in _ARG_REDUCTIONS:
            message = f"`{assignment}` gives no index: only `min=!` and `max=!` do"
            raise RefusedError(Diagnostic(message, span_of(assignment), _PAIR))
        for count, begin, end in (
            (len(targets), span_of(opening), targets[-1].span),
            (len(operands), span_of(inner), span_of(closing)),
        ):
            if count != 2:
                message = f"a reduction with indices has a value and an index, this has {count}"
                raise RefusedError(Diagnostic(message, begin.to(end), _PAIR))
        (values, indices), (value, index) = targets, operands
        return ArgReduction(
            values.access,
            indices.access,
            Assignment(assignment),
            value.expression,
            index.expression,
            where,
            span_of(opening).to(where[-1].span if where else span_of(closing)),
            span_of(assignment),
        )

    def block(
        self,
        opening: Token,
        iterator: Token,
        _in: Token,
        begin: Measured,
        end: Measured,
        *rest: Statement | Token,
    ) -> Block:
        """``for iterator in begin:end { statements }``."""
        statements = tuple(part for part in rest if not isinstance(part, str))
        closing = rest[-1]
        assert not isinstance(closing, Statement)
        span, own = span_of(opening).to(span_of(closing)), span_of(iterator)
        found = Block(str(iterator), begin.expression, end.expression, statements, span, own)
        if _blocks_within(found) > MAXIMUM_BLOCKS:
            raise RefusedError(
                Diagnostic(
                    f"more than {MAXIMUM_BLOCKS} blocks stand inside each other",
                    span_of(opening).to(own),
                    "an iterator of a statement needs no block, unless a step needs those before it",
                )
            )
        return found

    def where(self, _keyword: Token, *clauses: WhereClause) -> tuple[WhereClause, ...]:
        """All clauses behind ``where``."""
        return clauses

    def range(self, subject: Measured, _keyword: Token, begin: Measured, end: Measured) -> RangeClause:
        """``subject in begin:end``."""
        return RangeClause(subject.expression, begin.expression, end.expression, subject.span.to(end.span))

    def let(self, name: Token, _assignment: Token, value: Measured) -> LetClause:
        """``name = value``."""
        name_span = span_of(name)
        return LetClause(str(name), value.expression, name_span.to(value.span), name_span)

    def exists(self, keyword: Token, name: Token, arguments: tuple[Measured, ...], closing: Token) -> ExistsClause:
        """``exists name(subscripts)``."""
        name_span, end = span_of(name), span_of(closing)
        access = Apply(str(name), _expressions(arguments), name_span.to(end), name_span)
        return ExistsClause(access, span_of(keyword).to(end))

    def distinct(self, keyword: Token, name: Token) -> DistinctClause:
        """``distinct name``."""
        name_span = span_of(name)
        return DistinctClause(str(name), span_of(keyword).to(name_span), name_span)

    def condition(self, condition: Measured) -> ConditionClause:
        """A condition on iterators."""
        return ConditionClause(condition.expression, condition.span)

    # Expressions

    def arguments(self, *arguments: Measured) -> tuple[Measured, ...]:
        """Arguments or subscripts, in their order."""
        return arguments

    def conditional(self, condition: Measured, then: Measured, otherwise: Measured) -> Measured:
        """``condition ? then : otherwise``."""
        span = condition.span.to(otherwise.span)
        node = Conditional(condition.expression, then.expression, otherwise.expression, span)
        return _measured(node, condition, then, otherwise)

    def binary(self, left: Measured, operator: Token, right: Measured) -> Measured:
        """An operator between two operands."""
        span = left.span.to(right.span)
        return _measured(Binary(BinaryOperator(operator), left.expression, right.expression, span), left, right)

    def unary(self, operator: Token, operand: Measured) -> Measured:
        """An operator before its operand."""
        span = span_of(operator).to(operand.span)
        return _measured(Unary(UnaryOperator(operator), operand.expression, span), operand)

    def integer(self, token: Token) -> Measured:
        """A number without a fraction."""
        return _measured(Number(_integer(token), span_of(token)))

    def floating(self, token: Token) -> Measured:
        """A number with a fraction or an exponent."""
        return _measured(Number(_floating(token), span_of(token)))

    def variable(self, name: Token) -> Measured:
        """A name that stands for a value."""
        return _measured(Name(str(name), span_of(name)))

    def extent(self, tensor: Token, dimension: Token) -> Measured:
        """``tensor.dimension``."""
        return _measured(Extent(str(tensor), _integer(dimension), span_of(tensor).to(span_of(dimension))))

    def application(self, name: Token, arguments: tuple[Measured, ...], closing: Token) -> Measured:
        """``name(arguments)``: an access or a call."""
        name_span = span_of(name)
        node = Apply(str(name), _expressions(arguments), name_span.to(span_of(closing)), name_span)
        return _measured(node, *arguments)

    def parenthesized(self, opening: Token, inner: Measured, closing: Token) -> Measured:
        """The same node, spanning its parentheses, so that a caret under a product covers all of ``(a + b) * c``."""
        return _measured(replace(inner.expression, span=span_of(opening).to(span_of(closing))), inner)
