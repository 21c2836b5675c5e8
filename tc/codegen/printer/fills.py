"""Prints nests that fill memory with a number past the caches as calls."""

from __future__ import annotations

from dataclasses import replace

from tc.codegen.index.indices import values_of
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.printed import Printed, line
from tc.codegen.printer.routines import FILL
from tc.codegen.printer.statements import statement
from tc.codegen.text.fragment import call, filled, named, prefix
from tc.language.program.program import reads_in
from tc.polyhedral.analysis.access_boxes import contiguous_elements, nest_of
from tc.polyhedral.analysis.offsets import LinearForm, index_form, straightened
from tc.polyhedral.analysis.ranges import Range, always_runs, iterator_range
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import IndexLiteral, IndexOperation, IndexOperator, IndexVariable, Instance, Loop

_BEGIN, _END = IndexVariable("begin"), IndexVariable("end")


def filling_piece(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """``filling_call`` of the iterations of a parallel loop from ``begin`` to ``end``, of which there are some."""
    values = iterator_range(loop, scope.ranges)
    names = {own.name: named(own.name) for own in (_BEGIN, _END)}
    ranges = {**scope.ranges, _BEGIN.name: values, _END.name: Range(values.least + 1, values.most + 1)}
    last = IndexOperation(IndexOperator.SUBTRACT, (_END, IndexLiteral(1)))
    inner = replace(scope, variables={**scope.variables, **names}, ranges=ranges)
    return _call(context, replace(loop, lower=_BEGIN, upper=last), inner)


def filling_call(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """A call for all that a nest fills, where it is side by side; None of other nests.

    The first element is set as always, and copied to the others.
    """
    printed = _call(context, loop, scope)
    if printed is None or always_runs(loop, scope.ranges):
        return printed
    return printed.braced(filled("if ({} > 0)", context.index(_iterations(loop).expression(), scope)))


def _call(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    nest, instance = nest_of(loop)
    if not isinstance(instance, Instance) or not instance.nontemporal or scope.accumulation is not None:
        return None
    body = context.bodies[instance.statement]
    place = context.expressions.offset(body.target, body.subscripts, context.site(instance, scope))
    if place is None or any(True for _ in reads_in(body.value)):
        return None
    for node in nest:
        place = straightened(place, node.iterator, values_of(node))
    elements = contiguous_elements(nest, place)
    if elements is None:
        return None
    lowest = {node.iterator: node.lower for node in nest}
    first = replace(instance, arguments=tuple(substituted(argument, lowest) for argument in instance.arguments))
    to = context.expressions.location(body.target, body.subscripts, context.site(first, scope))
    count = LinearForm().plus(_iterations(loop), elements).expression()
    size = filled("sizeof({})", context.storage(context.layouts[body.target].type))
    called = line("{};", call(FILL, prefix("&", to), context.index(count, scope), size))
    return statement(context, first, scope) + called


def _iterations(loop: Loop) -> LinearForm:
    """Of a loop with step 1; at most 0 where there are none."""
    return index_form(loop.upper).plus(index_form(loop.lower), -1).plus(LinearForm(1))
