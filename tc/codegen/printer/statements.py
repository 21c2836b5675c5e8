"""Prints instances of statements: assignments, reductions, copies that end later, barriers."""

from __future__ import annotations

from typing import Final

from tc.base.types import ScalarType, computation_type
from tc.codegen.index.indices import index_fragment
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.text.fragment import Fragment, element, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.analysis.accumulate import accumulator_name, reached_name
from tc.polyhedral.ir.loops import Instance, StatementBody

# Bytes of the smallest copy that ends by itself.
_LEAST_AHEAD: Final = 4


def barrier(context: Context, name: str) -> list[str]:
    """Where the threads of a block wait for each other, and for what they copy ahead."""
    dialect, program = context.dialect, context.program
    waiting = dialect.barrier.format(number=context.barriers.index(name))
    if not program.copied_ahead or dialect.arrived is None:
        return [waiting]
    return [dialect.arrived.format(pending=program.pending.get(name, 0)), waiting]


def statement(context: Context, instance: Instance, scope: Scope) -> list[str]:
    """One instance, which writes its target, or reduces into the accumulator that stands for it."""
    body = context.bodies[instance.statement]
    found = scope.accumulation
    site = context.site(instance, scope)
    heading = comment(body.name)
    type = context.layouts[body.target].type
    if found is None:
        target = context.expressions.location(body.target, body.subscripts, site)
        ahead = _copied_ahead(context, body, target, site)
        return [heading, *(_assign(context, target, body, type, site) if ahead is None else [ahead])]
    partial = next(p for p in found.partials if p.body is body)
    accumulator = Fragment(accumulator_name(partial, found))
    if found.lanes is not None:
        accumulator = element(str(accumulator), index_fragment(scope.lane, scope.variables, context.dialect))
    reached = [] if partial.always_runs else [f"{reached_name(partial, found)} = 1;"]
    return [heading, *_assign(context, accumulator, body, computation_type(type), site), *reached]


def _copied_ahead(context: Context, body: StatementBody, target: Fragment, site: Site) -> str | None:
    """The statement that begins to copy an element; None where it is copied at once."""
    dialect, program, value = context.dialect, context.program, body.value
    if body.name not in program.copied_ahead or dialect.ahead is None or not isinstance(value, Read):
        return None
    if body.name in program.copied_for:  # an index is read and checked first, and waited for
        return None
    bytes = context.layouts[body.target].type.itemsize
    if bytes < _LEAST_AHEAD and not dialect.watches:
        return None
    source = context.expressions.location(value.tensor, value.subscripts, site)
    return dialect.ahead.format(to=prefix("&", target), source=prefix("&", source), bytes=bytes)


def _assign(context: Context, target: Fragment, body: StatementBody, type: ScalarType, site: Site) -> list[str]:
    expressions = context.expressions
    if body.reduction is None:
        return [f"{target} = {expressions.stored(body.value, type, site)};"]
    value = expressions.value(body.value, site)
    operator = expressions.compound(body.reduction, type)
    if operator is not None:
        return [f"{target} {operator} {value};"]
    combined = expressions.combine(body.reduction, expressions.load(target, type), value, type)
    return [f"{target} = {expressions.store(combined, type)};"]
