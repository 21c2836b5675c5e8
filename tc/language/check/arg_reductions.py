"""Reductions with an index, ``(m(i), k(i)) max=! (x(i,j), j)``, as two statements: the values, then their indices.

The second statement is ``k(i) min=! x(i,j) == m(i) || x(i,j) != x(i,j) ? int32(j) : 2147483647``: among equal values
the least index counts, and the first NaN counts where there is one, as in NumPy's ``argmax``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tc.base.types import ScalarType, scalar_type
from tc.grammar import syntax
from tc.grammar.syntax import Assignment, BinaryOperator
from tc.language.check.uses import walk_syntax
from tc.language.program.report import Report


def expand_arg_reductions(definition: syntax.Definition, report: Report) -> syntax.Definition:
    """The definition without reductions with an index.

    Indices are int32, or of the type of integers that the definition declares for them.  Reports those whose two
    targets have different subscripts, and those that read what they write.
    """
    types = {r.name: scalar_type(r.type_name) for r in definition.results if isinstance(r, syntax.Parameter)}

    def expanded(statements: Iterable[syntax.Statement]) -> Iterator[syntax.Statement]:
        for statement in statements:
            if isinstance(statement, syntax.Block):
                inside = tuple(expanded(statement.statements))
                if inside:
                    yield replace(statement, statements=inside)
            elif not isinstance(statement, syntax.ArgReduction):
                yield statement
            elif _is_sound(statement, report):
                type = types.get(statement.indices.name)
                yield from _expanded(statement, type if type is not None and type.is_integer else ScalarType.INT32)

    return replace(definition, statements=tuple(expanded(definition.statements)))


def _is_sound(statement: syntax.ArgReduction, report: Report) -> bool:
    values, indices = statement.values, statement.indices
    before = report.count
    if values.name == indices.name:
        report.error(f"`{values.name}` cannot hold both the values and their indices", indices.span, "rename one")
    elif _subscripts(values) != _subscripts(indices):
        report.error(
            f"`{values.name}` and `{indices.name}` have different subscripts",
            indices.span,
            "an index belongs to every value: write both with the same subscripts",
        )
    for part in (part for whole in (statement.value, statement.index) for part in walk_syntax(whole)):
        if isinstance(part, syntax.Name | syntax.Apply) and part.name in (values.name, indices.name):
            report.error(f"this reduction reads `{part.name}`, which it writes", part.span, "write to another name")
    return report.count == before


def _expanded(statement: syntax.ArgReduction, type: ScalarType) -> Iterator[syntax.Assign]:
    value, index, span = statement.value, statement.index, statement.value.span
    is_extreme = syntax.Binary(BinaryOperator.EQUAL, value, statement.values, span)
    is_nan = syntax.Binary(BinaryOperator.NOT_EQUAL, value, value, span)
    chosen = syntax.Conditional(
        syntax.Binary(BinaryOperator.OR, is_extreme, is_nan, span),
        syntax.Apply(type.value, (index,), index.span, index.span),
        syntax.Number(type.maximum, index.span),
        span,
    )
    for target, assignment, expression, part in (
        (statement.values, statement.assignment, value, syntax.ArgPart.VALUES),
        (statement.indices, Assignment.MINIMUM_INITIALIZED, chosen, syntax.ArgPart.INDICES),
    ):
        name_span = target.name_span if isinstance(target, syntax.Apply) else target.span
        yield syntax.Assign(
            target.name,
            _subscripts(target),
            assignment,
            expression,
            statement.where,
            statement.span,
            name_span,
            statement.assignment_span,
            arg_part=part,
        )


def _subscripts(target: syntax.Apply | syntax.Name) -> tuple[syntax.Expression, ...] | None:
    return target.arguments if isinstance(target, syntax.Apply) else None
