"""Prints loops that copy or fill as calls: transposes, non-temporal stores, vector copies."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.codegen.index.indices import trip_count, values_of
from tc.codegen.index.transpose import copied, transposed_nest, transposition, transposition_width
from tc.codegen.printer.context import Context, Scope, TreePrinter
from tc.codegen.printer.printed import ALIGNED, ELSE, Facts, Printed, line
from tc.codegen.printer.routines import FILL, STREAM
from tc.codegen.printer.statements import is_asynchronous, statement
from tc.codegen.printer.storage import copied_element
from tc.codegen.printer.wide import packed_stores, wide_loop
from tc.codegen.text.fragment import Fragment, call, filled, named, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read, reads_in
from tc.polyhedral.analysis.access_boxes import contiguous_elements, nest_of
from tc.polyhedral.analysis.offsets import LinearForm, index_form, straightened
from tc.polyhedral.analysis.ranges import Range, always_runs, iterator_range
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.ir.loops import (
    Copy,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    variables,
)

# Of what a thread stores at once.
_STORED_BYTES: Final = 16


def copying_call(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """The loop as a call that does the same; None if there is no such call, or inside a reduction."""
    if scope.accumulation is not None:
        return None
    if scope.launch is not None:
        copied = _piece(printer, loop, scope) or _stored_pieces(printer, loop, scope)
        return copied or packed_stores(printer, loop, scope) or wide_loop(printer, loop, scope)
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
    if context.dialect.piece_in_versions is not None:
        ahead = "true" if is_asynchronous(instance) else "false"
        copied = line(context.dialect.piece_in_versions, to=to, source=from_, bytes=bytes, ahead=ahead)
        outside = {value.tensor, body.target} - context.promoted
        aligned = frozenset((context.names.tensors[tensor], bytes) for tensor in outside)
        return copied.between([comment(body.name)]).with_facts(Facts(aligned=aligned))
    if body.target not in context.promoted:
        return None  # templates without versions copy into buffers alone
    printed = printer.loop(loop, scope, printer.tree(instance, scope.inside(loop)))
    whole = line(template, to=to, source=from_, bytes=bytes)
    if context.dialect.watches:  # which looks at every element
        whole += printed
    begins = filled("(({}){} & {}) == 0", named("uintptr_t"), context.pointer(value.tensor), bytes - 1)
    copied_whole = whole.braced(filled("if ({})", begins)).between([comment(body.name)])
    return copied_whole + printed.braced(ELSE)


def _stored_pieces(printer: TreePrinter, loop: Loop, scope: Scope) -> Printed | None:
    """Vector stores of what an unrolled loop copies from an array of the thread; None where there are none."""
    context = printer.context
    instance, template, lanes = loop.body, context.dialect.store_in_versions, values_of(loop)
    if loop.kind is not LoopKind.UNROLLED or template is None or not isinstance(instance, Copy):
        return None
    body = context.bodies[instance.statement]
    value, layout = body.value, context.layouts[body.target]
    if not isinstance(value, Read) or value.tensor not in context.promoted or body.target in context.promoted:
        return None
    count = _STORED_BYTES // layout.type.itemsize
    if context.layouts[value.tensor].type is not layout.type or not lanes or lanes.start or lanes.step != 1:
        return None
    site = context.site(instance, scope.inside(loop))
    places = ((body.target, body.subscripts), (value.tensor, value.subscripts))
    to, source = (context.expressions.offset(*place, site) for place in places)
    if len(lanes) % count or to is None or source is None or source.slope(loop.iterator) != 1:
        return None
    if not _begins_at_multiple(to, loop.iterator, range(count)):
        return None
    pieces = replace(loop, step=count)
    inside = context.site(instance, scope.inside(pieces))
    at, from_ = (prefix("&", context.expressions.location(*place, inside)) for place in places)
    stored = line(template, to=at, source=from_, bytes=_STORED_BYTES, aligned=ALIGNED).between([comment(body.name)])
    aligned = frozenset({(context.names.tensors[body.target], _STORED_BYTES)})
    return printer.loop(pieces, scope, stored).with_facts(Facts(aligned=aligned))


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
    to, from_ = (prefix("&", copied_element(context, scope, *place, start)) for place in places)
    return to, from_


# --- fills

_BEGIN, _END = IndexVariable("begin"), IndexVariable("end")


def filling_piece(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """``filling_call`` of the iterations of a parallel loop from ``begin`` to ``end``, of which there are some."""
    values = iterator_range(loop, scope.ranges)
    names = {own.name: named(own.name) for own in (_BEGIN, _END)}
    ranges = {**scope.ranges, _BEGIN.name: values, _END.name: Range(values.least + 1, values.most + 1)}
    last = IndexOperation(IndexOperator.SUBTRACT, (_END, IndexLiteral(1)))
    inner = replace(scope, variables={**scope.variables, **names}, ranges=ranges)
    return _fill(context, replace(loop, lower=_BEGIN, upper=last), inner)


def filling_call(context: Context, loop: Loop, scope: Scope) -> Printed | None:
    """A call for all that a nest fills, where it is side by side; None of other nests.

    The first element is set as always, and copied to the others.
    """
    printed = _fill(context, loop, scope)
    if printed is None or always_runs(loop, scope.ranges):
        return printed
    return printed.braced(filled("if ({} > 0)", context.index(_iterations(loop).expression(), scope)))


def _fill(context: Context, loop: Loop, scope: Scope) -> Printed | None:
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
