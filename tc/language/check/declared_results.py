"""Results that say their type and sizes: what is said must be what follows from the statements."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from tc.base.counted import counted
from tc.base.types import ScalarType, scalar_type
from tc.grammar import syntax
from tc.grammar.syntax import BinaryOperator
from tc.language.draft.draft import Draft
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    Expression,
    Literal,
    Precondition,
    Program,
    SizeReference,
    TextOrigin,
)
from tc.language.program.report import Report
from tc.language.program.written_elements import scatters
from tc.language.text.expression_text import expression_text


def with_declared_results(
    definition: syntax.Definition, program: Program, types: Mapping[str, ScalarType], report: Report
) -> Program:
    """The program, with a precondition for every declared size that is not plainly the inferred one.

    ``types``: what the statements write by promotion.  Reports types and numbers of dimensions that differ, and sizes
    that no parameter has.
    """
    conditions: list[Precondition] = []
    for result in definition.results:
        if isinstance(result, syntax.Parameter):
            conditions += _conditions(result, program, types[result.name], report)
    return replace(program, preconditions=(*program.preconditions, *conditions)) if conditions else program


def with_declared_extents(draft: Draft, definition: syntax.Definition, sizes: Collection[str]) -> Draft:
    """The draft with declared sizes of its target as the extents of dimensions in which it scatters."""
    found = (r for r in definition.results if isinstance(r, syntax.Parameter) and r.name == draft.target)
    declared = next((result.dimensions or () for result in found), ())
    extents: dict[int, Expression] = {}
    for dimension, (subscript, size) in enumerate(zip(draft.subscripts, declared, strict=False)):
        if scatters(subscript) and isinstance(size, syntax.Number):
            extents[dimension] = Literal(int(size.value), INDEX_TYPE)
        elif scatters(subscript) and isinstance(size, syntax.Name) and size.name in sizes:
            extents[dimension] = SizeReference(size.name)
    return replace(draft, extents={**extents, **draft.extents}) if extents else draft


def _conditions(declared: syntax.Parameter, program: Program, type: ScalarType, report: Report) -> list[Precondition]:
    tensor = program.tensor(declared.name)
    if scalar_type(declared.type_name) is not type:
        report.error(
            f"the result `{declared.name}` is declared {declared.type_name}, its statements write {type}",
            declared.type_span,
            f"cast what they write, `{declared.type_name}(...)`, or declare {type}",
        )
    sizes = declared.dimensions or ()
    if len(sizes) != len(tensor.shape):
        report.error(
            f"the result `{declared.name}` is declared with {counted(len(sizes), 'dimension')}, its statements give it "
            f"{len(tensor.shape)}",
            declared.span,
        )
        return []
    found = [
        _condition(declared.name, size, extent, program, report)
        for size, extent in zip(sizes, tensor.shape, strict=True)
    ]
    return [condition for condition in found if condition is not None]


def _condition(
    name: str, size: syntax.Name | syntax.Number, extent: Expression, program: Program, report: Report
) -> Precondition | None:
    if isinstance(size, syntax.Name):
        if size.name not in program.sizes:
            report.error(
                f"no parameter has the size `{size.name}`",
                size.span,
                "sizes of results follow from those of parameters",
            )
            return None
        declared: Expression = SizeReference(size.name)
    else:
        declared = Literal(int(size.value), INDEX_TYPE)
    if declared == extent:
        return None
    condition = Binary(BinaryOperator.EQUAL, declared, extent, ScalarType.BOOL)
    message = f"the result {name} is declared with the size {expression_text(declared)}"
    return Precondition(condition, message, TextOrigin(size.span))
