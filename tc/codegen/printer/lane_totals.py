"""Prints warp reductions: a butterfly of shuffles, which gives every lane the same total, bit for bit."""

from __future__ import annotations

from typing import Final

from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.printed import Facts, Printed
from tc.codegen.printer.routines import TEAM, braced
from tc.codegen.text.fragment import Fragment, names_in
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.ir.loops import LANES, Instance, Loop

_TOTAL: Final = "total"
_OTHER: Final = "other"
_DISTANCE: Final = "distance"


def lane_total(context: Context, loop: Loop, scope: Scope) -> Printed:
    """The lines for a loop over lanes, whose one statement adds up the partial results of the warp.

    ``tc.polyhedral.proof.verify_lanes`` proves that it does.
    """
    assert isinstance(loop.body, Instance), "lanes combine one thing at a time"
    body = context.bodies[loop.body.statement]
    assert isinstance(body.value, Read), "what lanes have was computed before"
    assert body.reduction is not None, "it is combined"
    site = context.site(loop.body, scope.inside(loop))
    expressions, layout = context.expressions, context.layouts[body.target]
    own = expressions.location(body.value.tensor, body.value.subscripts, site)
    type = context.layouts[body.value.tensor].type
    total, other = Fragment(_TOTAL), Fragment(_OTHER)
    words = context.dialect.exchange
    assert words is not None, "only languages that exchange have lanes"
    number = len(context.barriers) + scope.exchanges
    exchanged = words.format(
        type=context.dialect.values[type], number=number, other=other, value=total, distance=_DISTANCE
    )
    combined = f"{total} = {expressions.combine(body.reduction, total, other, type)};"
    index = context.dialect.index
    target = expressions.location(body.target, body.subscripts, site)
    value = expressions.combine(body.reduction, expressions.load(target, layout.type), total, layout.type)
    lines = [
        comment(body.name),
        f"{context.dialect.values[type]} {total} = {own};",
        *([context.dialect.unroll.format(count=LANES.bit_length() - 1)] if context.dialect.unroll else []),
        *braced(f"for ({index} {_DISTANCE} = {LANES // 2}; {_DISTANCE} > 0; {_DISTANCE} /= 2)", [exchanged, combined]),
        f"{target} = {expressions.store(value, layout.type)};",
    ]
    names = names_in(own, target, value) | {TEAM.name}
    return Printed(braced("", lines), Facts(exchanges=1, names=names))
