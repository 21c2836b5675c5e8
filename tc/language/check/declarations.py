"""Parameters, results and targets of a definition: what its names stand for."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tc.base.errors import Span, nearest
from tc.base.frozen import frozen
from tc.base.types import ScalarType, scalar_type, type_names
from tc.grammar import syntax
from tc.language.check.blocks import Simple, placed_statements
from tc.language.check.foreign import TYPES
from tc.language.check.scope import Scope
from tc.language.check.uses import walk_syntax
from tc.language.program.program import INDEX_TYPE, Expression, Literal, Role, Scalar, SizeReference, Tensor, TextOrigin
from tc.language.program.report import Report

# Casts in canonical texts are spelled with these; aliases such as `int` may name tensors.
_TYPE_NAMES = frozenset(type.value for type in ScalarType)


@frozen
class Declarations:
    """What the head of a definition declares, and every name that its text uses."""

    scope: Scope
    sizes: tuple[str, ...]
    scalars: tuple[Scalar, ...]
    inputs: dict[str, Tensor]
    arguments: tuple[str, ...]
    results: dict[str, Span]
    targets: frozenset[str]
    names: frozenset[str]


def declare(definition: syntax.Definition, definitions: Collection[str], report: Report) -> Declarations:
    """Checks the head of a definition and collects its names."""
    sizes: dict[str, Span] = {}
    scalars: dict[str, Scalar] = {}
    inputs: dict[str, Tensor] = {}
    for parameter in definition.parameters:
        type = _type(parameter, report)
        if parameter.name in inputs or parameter.name in scalars:
            report.error(f"two arguments are called `{parameter.name}`", parameter.name_span)
            continue
        origin = TextOrigin(parameter.span)
        if parameter.dimensions is None:
            scalars[parameter.name] = Scalar(parameter.name, type, origin)
        else:
            shape = tuple(_extent(dimension, sizes) for dimension in parameter.dimensions)
            inputs[parameter.name] = Tensor(parameter.name, type, shape, Role.INPUT, origin)
    for parameter in definition.parameters:
        # A tensor with dimensions may share its name with a size: `W(i)` is the tensor, `W` the size.
        if parameter.name in sizes and not parameter.dimensions:
            report.error(
                f"`{parameter.name}` is both an argument and a size", parameter.name_span, "rename one of them"
            )
            inputs.pop(parameter.name, None)
            scalars.pop(parameter.name, None)
    results = _results(definition, {*scalars, *inputs}, report)
    targets = {name: span for name, span in _targets(definition) if name not in scalars}
    places = {parameter.name: parameter.name_span for parameter in definition.parameters if parameter.name in inputs}
    for name, span in {**targets, **results, **places}.items():
        if name in _TYPE_NAMES:
            report.error(f"`{name}` names a type and cannot name a tensor", span, "rename the tensor")
    return Declarations(
        scope=Scope(
            frozenset(sizes),
            {name: scalar.type for name, scalar in scalars.items()},
            frozenset({*inputs, *results, *targets}),
            frozenset(definitions),
        ),
        sizes=tuple(sizes),
        scalars=tuple(scalars.values()),
        inputs=inputs,
        arguments=tuple(dict.fromkeys(p.name for p in definition.parameters if p.name in inputs or p.name in scalars)),
        results=results,
        targets=frozenset(targets),
        names=frozenset(_names(definition)),
    )


def _type(parameter: syntax.Parameter, report: Report) -> ScalarType:
    type = scalar_type(parameter.type_name)
    if type is None:
        guess = TYPES.get(parameter.type_name.lower()) or nearest(parameter.type_name, type_names())
        hint = f"known types: {', '.join(type_names())}" if guess is None else f"did you mean `{guess}`?"
        report.error(f"unknown type `{parameter.type_name}`", parameter.type_span, hint)
        return ScalarType.FLOAT32
    return type


def _extent(dimension: syntax.Name | syntax.Number, sizes: dict[str, Span]) -> Expression:
    if isinstance(dimension, syntax.Name):
        sizes.setdefault(dimension.name, dimension.span)
        return SizeReference(dimension.name)
    return Literal(int(dimension.value), INDEX_TYPE)


def _results(definition: syntax.Definition, declared: Collection[str], report: Report) -> dict[str, Span]:
    results: dict[str, Span] = {}
    for result in definition.results:
        if result.name in results:
            report.error(f"the result `{result.name}` is listed twice", result.span)
        elif result.name in declared:
            report.error(
                f"`{result.name}` is an argument, and arguments are never written",
                result.span,
                "drop the argument: a result that is read before it is written comes in through `out=`",
            )
        else:
            results[result.name] = result.span
    return results


def _targets(definition: syntax.Definition) -> Iterator[tuple[str, Span]]:
    """Every name that a statement writes."""
    for placed in placed_statements(definition):
        statement = placed.statement
        if isinstance(statement, syntax.Assign):
            yield statement.target, statement.target_span
        else:
            for result in statement.results:
                yield result.name, result.span


def _names(definition: syntax.Definition) -> Iterator[str]:
    """Every identifier of a definition: fresh names must differ from all of them."""
    for parameter in definition.parameters:
        yield parameter.name
        yield from (d.name for d in parameter.dimensions or () if isinstance(d, syntax.Name))
    yield from (result.name for result in definition.results)
    for placed in placed_statements(definition):
        statement = placed.statement
        yield from (around.block.iterator for around in placed.around)
        expressions: list[syntax.Expression] = [*placed.bounds]
        if isinstance(statement, syntax.CallStatement):
            yield from (result.name for result in statement.results)
            expressions.extend(statement.arguments)
        else:
            yield statement.target
            expressions.extend((*(statement.subscripts or ()), statement.value))
            for clause in statement.where:
                match clause:
                    case syntax.RangeClause(subject, begin, end):
                        expressions.extend((subject, begin, end))
                    case syntax.LetClause(name, value):
                        yield name
                        expressions.append(value)
                    case syntax.ExistsClause(access):
                        expressions.append(access)
                    case syntax.DistinctClause(name):
                        yield name
                    case syntax.ConditionClause(condition):
                        expressions.append(condition)
        for expression in expressions:
            for part in walk_syntax(expression):
                if isinstance(part, syntax.Name | syntax.Apply):
                    yield part.name


def as_call(statement: Simple, tensors: Collection[str], definitions: Collection[str]) -> syntax.CallStatement | None:
    """A statement that calls a definition, in either form; None for a comprehension.

    ``tensors``: the names that mean a tensor, whatever definitions there are.
    """
    if isinstance(statement, syntax.CallStatement):
        return statement
    value = statement.value
    if statement.subscripts is not None or statement.assignment is not syntax.Assignment.SET or statement.where:
        return None
    if not isinstance(value, syntax.Apply) or value.name not in definitions or value.name in tensors:
        return None
    return syntax.CallStatement(
        results=(syntax.Identifier(statement.target, statement.target_span),),
        callee=syntax.Identifier(value.name, value.name_span),
        arguments=value.arguments,
        span=statement.span,
    )


def called_names(definition: syntax.Definition, definitions: Collection[str]) -> dict[str, Span]:
    """The definitions of the same text that a definition calls, with their first places."""
    found: dict[str, Span] = {}
    tensors = {*(p.name for p in definition.parameters), *(name for name, _ in _targets(definition))}
    for placed in placed_statements(definition):
        call = as_call(placed.statement, tensors, definitions)
        if call is not None and call.callee.name in definitions:
            found.setdefault(call.callee.name, call.callee.span)
    return found
