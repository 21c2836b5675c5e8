"""Prints instances of statements: assignments, reductions, copies that end later, barriers."""

from __future__ import annotations

from typing import Final

from tc.base.types import ScalarType, computation_type
from tc.codegen.index.indices import index_fragment
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import Site
from tc.codegen.printer.printed import Printed, naming
from tc.codegen.printer.routines import TEAM
from tc.codegen.text.fragment import Fragment, element, names_in, prefix
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.analysis.accumulate import accumulator_name, reached_name
from tc.polyhedral.ir.loops import Instance, StatementBody

# Bytes of the smallest copy that ends by itself.
_LEAST_AHEAD: Final = 4
_TEAM: Final = frozenset({TEAM.name})


def barrier(context: Context, name: str) -> Printed:
    """Where the threads of a block wait for each other, and for what they copy ahead."""
    dialect, program = context.dialect, context.program
    waiting = dialect.barrier.format(number=context.barriers.index(name))
    if not program.copied_ahead or dialect.arrived is None:
        return Printed([waiting], naming(_TEAM))
    return Printed([dialect.arrived.format(pending=program.pending.get(name, 0)), waiting], naming(_TEAM))


def statement(context: Context, instance: Instance, scope: Scope) -> Printed:
    """One instance, which writes its target, or reduces into the accumulator that stands for it."""
    body = context.bodies[instance.statement]
    found = scope.accumulation
    site = context.site(instance, scope)
    heading = [comment(body.name)]
    type = context.layouts[body.target].type
    if found is None:
        target = context.expressions.location(body.target, body.subscripts, site)
        ahead = _copied_ahead(context, body, target, site)
        return (ahead or _assign(context, target, body, type, site)).between(heading)
    partial = next(p for p in found.partials if p.body is body)
    name, reached = accumulator_name(partial, found), reached_name(partial, found)
    accumulator = Fragment(name)
    if found.lanes is not None:
        accumulator = element(name, index_fragment(scope.lane, scope.variables, context.dialect))
    assigned = _assign(context, accumulator, body, computation_type(type), site).between(heading)
    if partial.always_runs:
        return assigned.with_facts(naming(frozenset({name})))
    return assigned.between((), [f"{reached} = 1;"]).with_facts(naming(frozenset({name, reached})))


def _copied_ahead(context: Context, body: StatementBody, target: Fragment, site: Site) -> Printed | None:
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
    line = dialect.ahead.format(to=prefix("&", target), source=prefix("&", source), bytes=bytes)
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
