"""``Program`` to text: canonical, with every range explicit; lowering the text gives an equal program."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tc.grammar import syntax
from tc.grammar.printer import print_definition
from tc.grammar.syntax import Assignment
from tc.language.algebra.extents import named_extent
from tc.language.algebra.rewriting import map_statement
from tc.language.program.functions import FUNCTIONS
from tc.language.program.program import (
    INDEX_TYPE,
    Call,
    Expression,
    InRange,
    Literal,
    Precondition,
    Program,
    Reduction,
    Scalar,
    SizeReference,
    Statement,
    Tensor,
    rebuild,
    walk,
)
from tc.language.program.within import without_ranges
from tc.language.program.written_elements import scatters
from tc.language.text.expression_text import NOWHERE, index_syntax, value_syntax

_ASSIGNMENTS = {
    (None, False): Assignment.SET,
    (Reduction.ADD, False): Assignment.ADD,
    (Reduction.ADD, True): Assignment.ADD_INITIALIZED,
    (Reduction.MULTIPLY, False): Assignment.MULTIPLY,
    (Reduction.MULTIPLY, True): Assignment.MULTIPLY_INITIALIZED,
    (Reduction.MINIMUM, False): Assignment.MINIMUM,
    (Reduction.MINIMUM, True): Assignment.MINIMUM_INITIALIZED,
    (Reduction.MAXIMUM, False): Assignment.MAXIMUM,
    (Reduction.MAXIMUM, True): Assignment.MAXIMUM_INITIALIZED,
}


def program_text(program: Program) -> str:
    """The definition that means the program: calls inlined, values named, ranges and conversions explicit."""
    return print_definition(program_syntax(program)) + "\n"


def program_syntax(program: Program) -> syntax.Definition:
    """As ``program_text``, as a syntax tree without places."""
    program = _without_hidden_functions(program)
    declared: dict[str, Tensor | Scalar] = {tensor.name: tensor for tensor in program.tensors}
    declared.update((scalar.name, scalar) for scalar in program.scalars)
    statements = [_statement(s, program.tensor(s.target).shape) for s in program.statements]
    for precondition, place in _places(program):
        # A condition without iterators is a precondition of the call, wherever it stands.
        condition = syntax.ConditionClause(value_syntax(precondition.condition), NOWHERE)
        statements[place] = replace(statements[place], where=(*statements[place].where, condition))
    return syntax.Definition(
        name=program.name,
        parameters=tuple(_parameter(declared[name]) for name in program.arguments),
        results=tuple(syntax.Identifier(name, NOWHERE) for name in program.results),
        statements=tuple(_in_blocks(program.statements, statements, 0)),
        span=NOWHERE,
        name_span=NOWHERE,
    )


def _in_blocks(
    statements: Sequence[Statement], printed: Sequence[syntax.Statement], depth: int
) -> Iterator[syntax.Statement]:
    """Statements in so many common blocks, with further blocks around those that stand in them."""
    numbered = list(zip(statements, printed, strict=True))
    for block, group in itertools.groupby(numbered, lambda pair: pair[0].blocks[depth : depth + 1]):
        own, inside = zip(*group, strict=True)
        if not block:
            yield from inside
            continue
        steps = own[0].iterators[depth]
        yield syntax.Block(
            iterator=steps.name,
            begin=index_syntax(steps.begin),
            end=index_syntax(steps.end),
            statements=tuple(_in_blocks(own, inside, depth + 1)),
            span=NOWHERE,
            iterator_span=NOWHERE,
        )


def _places(program: Program) -> Iterator[tuple[Precondition, int]]:
    """The preconditions in order, and the statements that they stand at.

    An extent that only a call knows is there behind the last statement that writes its tensor.
    """
    place = 0
    for precondition in program.preconditions:
        sizes = (e for e in walk(precondition.condition) if isinstance(e, SizeReference))
        tensors = {found[0] for found in map(named_extent, sizes) if found is not None}
        written = [n for n, statement in enumerate(program.statements) if statement.target in tensors]
        place = min(max([place, *(n + 1 for n in written)]), len(program.statements) - 1)
        yield precondition, place


def _without_hidden_functions(program: Program) -> Program:
    """Functions that a tensor of the same name would hide (after inlining) get their single-precision spelling."""
    tensors = {tensor.name for tensor in program.tensors}
    if tensors.isdisjoint(FUNCTIONS):
        return program

    def respell(expression: Expression) -> Expression:
        respelled = rebuild(expression, respell)
        if isinstance(respelled, Call) and respelled.function in tensors:
            return replace(respelled, function=respelled.function + "f")
        return respelled

    return replace(program, statements=tuple(map_statement(s, respell) for s in program.statements))


def _parameter(declaration: Tensor | Scalar) -> syntax.Parameter:
    dimensions: tuple[syntax.Name | syntax.Number, ...] | None = None
    if isinstance(declaration, Tensor):
        extents = (index_syntax(extent) for extent in declaration.shape)
        dimensions = tuple(extent for extent in extents if isinstance(extent, syntax.Name | syntax.Number))
    return syntax.Parameter(declaration.type.value, dimensions, declaration.name, NOWHERE, NOWHERE, NOWHERE)


def _statement(statement: Statement, shape: Sequence[Expression]) -> syntax.Assign:
    value, ranges = without_ranges(statement.value, statement.reduction)
    return syntax.Assign(
        target=statement.target,
        subscripts=tuple(map(index_syntax, statement.subscripts)),
        assignment=_ASSIGNMENTS[statement.reduction, statement.initialize],
        value=value_syntax(value),
        where=(*_where(statement, shape), *map(_data_range, ranges)),
        span=NOWHERE,
        target_span=NOWHERE,
        assignment_span=NOWHERE,
    )


def _data_range(inside: InRange) -> syntax.RangeClause:
    return syntax.RangeClause(index_syntax(inside.index), index_syntax(inside.begin), index_syntax(inside.end), NOWHERE)


def _where(statement: Statement, shape: Sequence[Expression]) -> Iterator[syntax.WhereClause]:
    for iterator in statement.iterators[len(statement.blocks) :]:
        subject = syntax.Name(iterator.name, NOWHERE)
        yield syntax.RangeClause(subject, index_syntax(iterator.begin), index_syntax(iterator.end), NOWHERE)
    for subscript, extent in zip(statement.subscripts, shape, strict=True):
        # What has a name only, other statements give.
        named = any(isinstance(e, SizeReference) and named_extent(e) is not None for e in walk(extent))
        if scatters(subscript) and not named:
            begin, end = index_syntax(Literal(0, INDEX_TYPE)), index_syntax(extent)
            yield syntax.RangeClause(index_syntax(subscript), begin, end, NOWHERE)
    for condition in statement.conditions:
        yield syntax.ConditionClause(value_syntax(condition), NOWHERE)
    for name in dict.fromkeys(read.tensor for read in statement.distinct):
        yield syntax.DistinctClause(name, NOWHERE, NOWHERE)
    for read in statement.required:
        access = syntax.Apply(read.tensor, tuple(map(index_syntax, read.subscripts)), NOWHERE, NOWHERE)
        yield syntax.ExistsClause(access, NOWHERE)
