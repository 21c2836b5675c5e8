"""Prints copy loops as calls: transposes, non-temporal stores, fills, vector copies."""

from __future__ import annotations

from dataclasses import replace

from tc.codegen.index.indices import trip_count, values_of
from tc.codegen.printer.context import Context, Scope, TreePrinter
from tc.codegen.printer.fills import filling_call
from tc.codegen.printer.printed import ELSE, Printed, line
from tc.codegen.printer.routines import STREAM
from tc.codegen.printer.statements import is_asynchronous
from tc.codegen.printer.transpose import copied, transposed_nest, transposition, transposition_width
from tc.codegen.text.fragment import Fragment, call, filled, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.analysis.offsets import LinearForm, straightened
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import IndexVariable, Instance, Loop, LoopKind, variables


def copying_call(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """The loop as a call that does the same; None if there is no such call, or inside a reduction."""
    if scope.accumulation is not None:
        return None
    if scope.launch is not None:
        return _piece(printer, loop, scope)
    context = printer.context
    return transposing_call(context, loop, scope) or _stream(context, loop, scope) or filling_call(context, loop, scope)


def transposing_call(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """A call that transposes square blocks, if the loop and the one inside copy rows into columns."""
    nest = transposed_nest(loop)
    if nest is None:
        return None
    first, second, instance = nest
    body = context.bodies[instance.statement]
    value = copied(body, context.layouts)
    if value is None or any(first.iterator in variables(bound) for bound in (second.lower, second.upper)):
        return None
    site = context.site(instance, scope)
    source = context.expressions.offset(value.tensor, value.subscripts, site)
    target = context.expressions.offset(body.target, body.subscripts, site)
    if source is None or target is None:
        return None
    for node in nest[:2]:
        source, target = (straightened(form, node.iterator, values_of(node)) for form in (source, target))
    found = transposition(first, second, source, target)
    if found is None:
        return None
    to, from_ = _beginning(context, instance, value, (first, second), scope)
    rows, columns = (context.index(trip_count(node), scope) for node in (found.rows, found.columns))
    width = transposition_width(found, value.type, context.vector_bytes)
    steps = (context.index(step, scope) for step in (found.from_step, found.to_step))
    places = (part for place in zip((from_, to), steps, strict=True) for part in place)
    called = line("{};", call(f"tc_transpose_{value.type}x{width}", *places, rows, columns))
    return called.between([comment(body.name)])


def _stream(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """A call with non-temporal stores, if the loop copies a contiguous part of a buffer to a streamed result."""
    instance = loop.body
    if not isinstance(instance, Instance) or loop.step != 1:
        return None
    body = context.bodies[instance.statement]
    value = body.value
    if not instance.nontemporal or not isinstance(value, Read):
        return None
    site = context.site(instance, scope)
    for tensor, subscripts in ((value.tensor, value.subscripts), (body.target, body.subscripts)):
        form = context.expressions.offset(tensor, subscripts, site)
        if form is None or straightened(form, loop.iterator, values_of(loop)).slope(loop.iterator) != 1:
            return None
    to, from_ = _beginning(context, instance, value, (loop,), scope)
    count, type = context.index(trip_count(loop), scope), context.storage(context.layouts[body.target].type)
    called = line("{};", call(STREAM, to, from_, count, filled("sizeof({})", type)))
    return called.between([comment(body.name)])


def _piece(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """A vector copy of all that the loop copies, where the tensor is aligned to it; else the loop."""
    context = printer.context
    instance, lanes = loop.body, values_of(loop)
    if loop.kind is not LoopKind.VECTOR or not isinstance(instance, Instance):
        return None
    body = context.bodies[instance.statement]
    value = body.value
    if not isinstance(value, Read) or context.layouts[body.target].type is not context.layouts[value.tensor].type:
        return None
    bytes = len(lanes) * context.layouts[body.target].type.itemsize
    template = context.dialect.pieces.get(bytes)
    if template is not None and is_asynchronous(instance) and not context.dialect.watches:
        template = context.dialect.async_copy or template
    site = context.site(instance, scope.inside(loop))
    for tensor, subscripts in ((value.tensor, value.subscripts), (body.target, body.subscripts)):
        form = context.expressions.offset(tensor, subscripts, site)
        if template is None or form is None or not _begins_at_multiple(form, loop.iterator, lanes):
            return None
    assert template is not None
    to, from_ = _beginning(context, instance, value, (loop,), scope)
    printed = printer.loop(loop, scope, printer.tree(instance, scope.inside(loop)))
    whole = line(template, to=to, source=from_, bytes=bytes)
    if context.dialect.watches:  # which looks at every element
        whole += printed
    aligned = filled("((uintptr_t){} & {}) == 0", context.pointer(value.tensor), bytes - 1)
    copied_whole = whole.braced(filled("if ({})", aligned)).between([comment(body.name)])
    return copied_whole + printed.braced(ELSE)


def _begins_at_multiple(form: LinearForm, variable: str, values: range) -> bool:
    """Whether the offsets are consecutive, and the first of them is aligned to their number."""
    form = straightened(form, variable, values)
    if form.slope(variable) != 1 or len(values) < 2 or values.step != 1:
        return False
    others = [factor for term, factor in form.factors.items() if term != IndexVariable(variable)]
    return all(number % len(values) == 0 for number in (*others, form.constant + values[0]))


def _beginning(
    context: Context, instance: Instance, value: Read, loops: tuple[Loop, ...], scope: Scope
) -> tuple[Fragment, Fragment]:
    """The addresses of the first iterations of the loops: target and source."""
    lowest = {loop.iterator: loop.lower for loop in loops}
    arguments = tuple(substituted(argument, lowest) for argument in instance.arguments)
    body = context.bodies[instance.statement]
    start = context.site(replace(instance, arguments=arguments), scope)
    places = ((body.target, body.subscripts), (value.tensor, value.subscripts))
    to, from_ = (prefix("&", context.expressions.location(*place, start)) for place in places)
    return to, from_
