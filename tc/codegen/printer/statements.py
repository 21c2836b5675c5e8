"""Prints the leaves of loops: assignments, reductions, asynchronous copies, barriers, prefetches."""

from __future__ import annotations

from typing import Final, assert_never

from tc.base.types import ScalarType, computation_type
from tc.codegen.index.indices import index_fragment
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Printed, line
from tc.codegen.printer.scatters import scattered
from tc.codegen.printer.storage import copied_element
from tc.codegen.text.fragment import Fragment, element, filled, infix, named, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.analysis.accumulate import accumulator_name, reached_name
from tc.polyhedral.analysis.scattered import is_scatter
from tc.polyhedral.ir.loops import LINE_BYTES, Barrier, Copy, Instance, Prefetch, StatementBody, Use

_LINE: Final = "line"
# Bytes of the smallest asynchronous copy.
_LEAST_ASYNCHRONOUS: Final = 4


def barrier(context: Context, node: Barrier) -> Printed:
    """Where the threads of a block wait for each other, and for asynchronous copies."""
    dialect = context.dialect
    waiting = line(dialect.barrier, number=context.barriers.index(node.statement))
    if node.fenced and dialect.matrices is not None:
        waiting = line(dialect.matrices.groups.fence) + waiting
    if node.pending is not None and dialect.commit_and_wait is not None:
        waiting = line(dialect.commit_and_wait, pending=node.pending) + waiting
    if node.fenced and dialect.matrices is not None:
        waiting = line(dialect.matrices.groups.end) + waiting
    return waiting


def prefetch(context: Context, node: Prefetch, scope: Scope) -> Printed:
    """What prefetches the lines, one by one; nothing in a language that cannot."""
    dialect = context.dialect
    match node.use:
        case Use.LATER:
            template = dialect.prefetch_later
        case Use.SOON:
            template = dialect.prefetch
        case Use.STORE:
            template = dialect.prefetch_to_store
        case _:
            assert_never(node.use)
    if template is None:
        return Printed(())
    size = Fragment(str(context.layouts[node.tensor].type.itemsize))
    begin = infix("*", index_fragment(node.offset, scope.variables, dialect), size)
    one = node.lines == 1
    place = begin if one else infix("+", begin, infix("*", Fragment(str(LINE_BYTES)), named(_LINE)))
    asked = line(template, tensor=context.pointer(node.tensor), bytes=place)
    if one:
        return asked
    return asked.braced(filled("for ({0} {1} = 0; {1} < {2}; {1} += 1)", dialect.index, named(_LINE), node.lines))


def statement(context: Context, instance: Instance, scope: Scope) -> Printed:
    """One instance, which writes its target, or reduces into the accumulator that stands for it."""
    body = context.bodies[instance.statement]
    own = context.body(instance)
    found = scope.accumulation
    site = context.site(instance, scope)
    heading = [comment(body.name)]
    type = context.layouts[body.target].type
    if is_scatter(body):
        return scattered(context, body, site, scope, lambda to: _assign(context, to, body, type, site)).between(heading)
    if found is None:
        copied = _asynchronous_copy(context, instance, scope, site)
        target = context.expressions.location(body.target, body.subscripts, site)
        return (copied or _assign(context, target, own, type, site)).between(heading)
    partial = next(p for p in found.partials if p.body is body)
    name, reached = accumulator_name(partial, found), reached_name(partial, found)
    accumulator = named(name)
    if found.lanes is not None:
        accumulator = element(name, index_fragment(scope.lane, scope.variables, context.dialect))
    assigned = _assign(context, accumulator, own, computation_type(type), site).between(heading)
    return assigned if partial.always_runs else assigned + line("{} = 1;", named(reached))


def is_asynchronous(instance: Instance) -> bool:
    """Whether it is a copy that may be complete later than it runs."""
    return isinstance(instance, Copy) and instance.group is not None


def _asynchronous_copy(context: Context, instance: Instance, scope: Scope, site: Site) -> Printed | None:
    """What starts an asynchronous copy; None of a synchronous one, and where the target has only such."""
    dialect, body = context.dialect, context.bodies[instance.statement]
    value = body.value
    if not is_asynchronous(instance) or dialect.async_copy is None or not isinstance(value, Read):
        return None
    bytes = context.layouts[body.target].type.itemsize
    if bytes < _LEAST_ASYNCHRONOUS and not dialect.watches:
        return None
    places = ((body.target, body.subscripts), (value.tensor, value.subscripts))
    to, source = (prefix("&", copied_element(context, scope, *place, site)) for place in places)
    return line(dialect.async_copy, to=to, source=source, bytes=bytes)


def _assign(context: Context, target: Fragment, body: StatementBody, type: ScalarType, site: Site) -> Printed:
    expressions = context.expressions
    if body.reduction is None:
        return line("{} = {};", target, expressions.stored(body.value, type, site))
    value = expressions.value(body.value, site)
    if body.atomic:
        return line("{};", expressions.atomic(body.reduction, target, value, type))
    return line("{}", expressions.reduced(body.reduction, target, value, type, type))
