"""Prints the leaves of loops: assignments, reductions, asynchronous copies, barriers, prefetches."""

from __future__ import annotations

from typing import Final

from tc.base.types import ScalarType, computation_type
from tc.codegen.index.indices import index_fragment
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Printed, naming
from tc.codegen.printer.routines import TEAM, braced
from tc.codegen.text.fragment import Fragment, element, infix, names_in, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.analysis.accumulate import accumulator_name, reached_name
from tc.polyhedral.ir.loops import LINE_BYTES, Barrier, Copy, Instance, Prefetch, StatementBody

_LINE: Final = "line"
# Bytes of the smallest asynchronous copy.
_LEAST_ASYNCHRONOUS: Final = 4
_TEAM: Final = frozenset({TEAM.name})


def barrier(context: Context, node: Barrier) -> Printed:
    """Where the threads of a block wait for each other, and for asynchronous copies."""
    dialect = context.dialect
    waiting = dialect.barrier.format(number=context.barriers.index(node.statement))
    if node.pending is None or dialect.commit_and_wait is None:
        return Printed([waiting], naming(_TEAM))
    return Printed([dialect.commit_and_wait.format(pending=node.pending), waiting], naming(_TEAM))


def prefetch(context: Context, node: Prefetch, scope: Scope) -> list[str]:
    """What prefetches the lines, one by one; nothing in a language that cannot."""
    dialect = context.dialect
    template = dialect.prefetch_to_store if node.stored else dialect.prefetch_later
    if template is None:
        return []
    size = Fragment(str(context.layouts[node.tensor].type.itemsize))
    begin = infix("*", index_fragment(node.offset, scope.variables, dialect), size)
    one = node.lines == 1
    place = begin if one else infix("+", begin, infix("*", Fragment(str(LINE_BYTES)), Fragment(_LINE)))
    line = template.format(tensor=context.pointer(node.tensor), bytes=place)
    if one:
        return [line]
    header = f"for ({dialect.index} {_LINE} = 0; {_LINE} < {node.lines}; {_LINE} += 1)"
    return braced(header, [line])


def statement(context: Context, instance: Instance, scope: Scope) -> Printed:
    """One instance, which writes its target, or reduces into the accumulator that stands for it."""
    body = context.bodies[instance.statement]
    found = scope.accumulation
    site = context.site(instance, scope)
    heading = [comment(body.name)]
    type = context.layouts[body.target].type
    if found is None:
        target = context.expressions.location(body.target, body.subscripts, site)
        copied = _asynchronous_copy(context, instance, target, site)
        return (copied or _assign(context, target, body, type, site)).between(heading)
    partial = next(p for p in found.partials if p.body is body)
    name, reached = accumulator_name(partial, found), reached_name(partial, found)
    accumulator = Fragment(name)
    if found.lanes is not None:
        accumulator = element(name, index_fragment(scope.lane, scope.variables, context.dialect))
    assigned = _assign(context, accumulator, body, computation_type(type), site).between(heading)
    if partial.always_runs:
        return assigned.with_facts(naming(frozenset({name})))
    return assigned.between((), [f"{reached} = 1;"]).with_facts(naming(frozenset({name, reached})))


def is_asynchronous(instance: Instance) -> bool:
    """Whether it is a copy that may be complete later than it runs."""
    return isinstance(instance, Copy) and instance.group is not None


def _asynchronous_copy(context: Context, instance: Instance, target: Fragment, site: Site) -> Printed | None:
    """What starts an asynchronous copy; None of a synchronous one, and where the target has only such."""
    dialect, body = context.dialect, context.bodies[instance.statement]
    value = body.value
    if not is_asynchronous(instance) or dialect.async_copy is None or not isinstance(value, Read):
        return None
    bytes = context.layouts[body.target].type.itemsize
    if bytes < _LEAST_ASYNCHRONOUS and not dialect.watches:
        return None
    source = context.expressions.location(value.tensor, value.subscripts, site)
    line = dialect.async_copy.format(to=prefix("&", target), source=prefix("&", source), bytes=bytes)
    return Printed([line], naming(names_in(target, source) | _TEAM))


def _assign(context: Context, target: Fragment, body: StatementBody, type: ScalarType, site: Site) -> Printed:
    expressions = context.expressions
    if body.reduction is None:
        stored = expressions.stored(body.value, type, site)
        return Printed([f"{target} = {stored};"], naming(names_in(target, stored)))
    value = expressions.value(body.value, site)
    operator = expressions.compound(body.reduction, type)
    if operator is not None:
        return Printed([f"{target} {operator} {value};"], naming(names_in(target, value)))
    combined = expressions.combine(body.reduction, expressions.load(target, type), value, type)
    stored = expressions.store(combined, type)
    return Printed([f"{target} = {stored};"], naming(names_in(target, stored)))
