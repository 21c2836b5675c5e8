"""Prints warp reductions: a butterfly of shuffles, which gives every lane the same total, bit for bit."""

from __future__ import annotations

from typing import Final

from tc.codegen.printer.context import Context, Scope
from tc.codegen.printer.printed import Facts, Printed, line
from tc.codegen.text.fragment import filled, named
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
    total, other, distance = named(_TOTAL), named(_OTHER), named(_DISTANCE)
    words = context.dialect.exchange
    assert words is not None, "only languages that exchange have lanes"
    number = len(context.barriers) + scope.exchanges
    value_type, unroll = context.dialect.values[type], context.dialect.unroll
    exchanged = line(words, type=value_type, number=number, other=other, value=total, distance=distance)
    combined = line("{}", expressions.reduced(body.reduction, total, other, type, type))
    header = filled("for ({0} {1} = {2}; {1} > 0; {1} /= 2)", context.dialect.index, distance, LANES // 2)
    repeated = (exchanged + combined).braced(header)
    target = expressions.location(body.target, body.subscripts, site)
    begun = line("{} {} = {};", value_type, total, own).declaring(total).between([comment(body.name)])
    stored = line("{}", expressions.reduced(body.reduction, target, total, layout.type, layout.type))
    unrolled = [unroll.format(count=LANES.bit_length() - 1)] if unroll else []
    return (begun + repeated.between(unrolled) + stored).with_facts(Facts(exchanges=1))
