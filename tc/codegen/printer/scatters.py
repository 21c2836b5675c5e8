"""Prints what writes where data say: the indices, what checks them, and the statement behind it.

In a loop along which neither the indices nor what an instance owns change, they are looked at once, around the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from tc.base.faults import TWICE, Check
from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.expressions import FAULTED, Site
from tc.codegen.printer.printed import Printed, line
from tc.codegen.text.fragment import Fragment, call, infix, named, prefix
from tc.language.program.program import INDEX_TYPE
from tc.language.program.written_elements import index_read, scatters
from tc.polyhedral.analysis.ranges import always_runs
from tc.polyhedral.analysis.scattered import is_scatter, placing
from tc.polyhedral.ir.loops import (
    Block,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
    StatementBody,
    variables,
)

_PLACE: Final = "place"
_SERIAL: Final = (LoopKind.SEQUENTIAL, LoopKind.VECTOR, LoopKind.UNROLLED)


def scattered(
    context: Context, body: StatementBody, site: Site, scope: Scope, assign: Callable[[Fragment], Printed]
) -> Printed:
    """The statement, which ``assign`` prints for a place in memory, behind what says where that is."""
    indices = {d: named(_place(d)) for d, subscript in enumerate(body.subscripts) if scatters(subscript)}
    assigned = assign(context.expressions.location(body.target, body.subscripts, site, indices))
    return assigned if body.name in scope.placed else _placed(context, body, site, assigned).braced()


def hoisted(context: Context, loop: Loop, scope: Scope) -> tuple[StatementBody, Site] | None:
    """The scatter that a loop runs, and nothing else, at one place; None where there is none."""
    found = list(_instances(loop, scope))
    if len(found) != 1 or found[0] is None:
        return None
    instance, inside = found[0]
    body = context.bodies[instance.statement]
    if not is_scatter(body) or body.name in scope.placed:
        return None
    site = context.site(instance, scope)
    return None if any(variables(site.arguments[name]) & inside for name in placing(body)) else (body, site)


def around(context: Context, body: StatementBody, site: Site, printed: Printed) -> Printed:
    """A loop, printed in a scope with the statement among the ``placed``, behind what says where it writes."""
    return _placed(context, body, site, printed).braced()


def _placed(context: Context, body: StatementBody, site: Site, inner: Printed) -> Printed:
    """The indices as variables, and what runs where they are inside of the target and owned."""
    expressions = context.expressions
    declared, conditions = Printed(()), list[Fragment]()
    for dimension, subscript in enumerate(body.subscripts):
        if not scatters(subscript):
            continue
        place, extent = named(_place(dimension)), expressions.extent(body.target, dimension, site)
        declared += line(
            "const {} {} = {};", context.dialect.values[INDEX_TYPE], place, expressions.value(subscript, site)
        )
        if context.program.checked:
            number = expressions.number(expressions.check(body.name, body.target, dimension))
            faulted = prefix("&", named(FAULTED))
            conditions.append(call("tc_is_inside", place, extent, faulted, Fragment(str(number))))
        if body.owned is not None and body.owned.dimension == dimension:
            first, end = (expressions.value(bound, site) for bound in (body.owned.begin, body.owned.end))
            conditions += [infix(">=", place, first), infix("<", place, end)]
    for count in body.counts:
        index = index_read(count.subscripts[0])
        assert index is not None, "what is distinct is read"
        number = expressions.number(Check(body.name, index.tensor, TWICE, 1))
        once = infix("==", expressions.value(count, site), Fragment("1"))
        conditions.append(call("tc_holds", once, prefix("&", named(FAULTED)), Fragment(str(number))))
    if not conditions:
        return declared + inner
    condition = conditions[0]
    for other in conditions[1:]:
        condition = infix("&&", condition, other)
    return declared + inner.braced(Fragment(f"if ({condition.text})", names=condition.names))


def _place(dimension: int) -> str:
    return f"{_PLACE}{dimension}"


def _instances(tree: LoopTree, scope: Scope) -> Iterator[tuple[Instance, frozenset[str]] | None]:
    """The instances below, with the iterators of the loops around them; None for what may not run each time."""
    match tree:
        case Loop(kind=kind, body=body) if kind in _SERIAL and always_runs(tree, scope.ranges):
            for found in _instances(body, scope.inside(tree)):
                yield None if found is None else (found[0], found[1] | {tree.iterator})
        case Block(children):
            for child in children:
                yield from _instances(child, scope)
        case Instance():
            yield tree, frozenset()
        case _:
            yield None
