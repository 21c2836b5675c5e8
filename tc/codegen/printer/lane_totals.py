"""Prints warp reductions: a butterfly of shuffles, which gives every lane the same total, bit for bit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tc.codegen.printer.routines import braced
from tc.codegen.text.fragment import Fragment
from tc.codegen.text.names import comment
from tc.language.program.program import Read
from tc.polyhedral.ir.loops import LANES, Instance, Loop

if TYPE_CHECKING:
    from tc.codegen.printer.kernel import KernelPrinter, Scope

_TOTAL: Final = "total"
_OTHER: Final = "other"
_DISTANCE: Final = "distance"


def lane_total(kernel: KernelPrinter, loop: Loop, scope: Scope) -> list[str]:
    """The lines for a loop over lanes, whose one statement adds up the partial results of the warp.

    ``tc.polyhedral.proof.verify_lanes`` proves that it does.
    """
    assert isinstance(loop.body, Instance), "lanes combine one thing at a time"
    body = kernel.bodies[loop.body.statement]
    assert isinstance(body.value, Read), "what lanes have was computed before"
    assert body.reduction is not None, "it is combined"
    site = kernel.site(loop.body, scope.inside(loop))
    expressions, layout = kernel.expressions, kernel.layouts[body.target]
    own = expressions.location(body.value.tensor, body.value.subscripts, site)
    type = kernel.layouts[body.value.tensor].type
    total, other = Fragment(_TOTAL), Fragment(_OTHER)
    words = kernel.dialect.exchange
    assert words is not None, "only languages that exchange have lanes"
    number = kernel.next_exchange()
    exchanged = words.format(
        type=kernel.dialect.values[type], number=number, other=other, value=total, distance=_DISTANCE
    )
    combined = f"{total} = {expressions.combine(body.reduction, total, other, type)};"
    index = kernel.dialect.index
    target = expressions.location(body.target, body.subscripts, site)
    value = expressions.combine(body.reduction, expressions.load(target, layout.type), total, layout.type)
    return braced(
        "",
        [
            comment(body.name),
            f"{kernel.dialect.values[type]} {total} = {own};",
            *([kernel.dialect.unroll.format(count=LANES.bit_length() - 1)] if kernel.dialect.unroll else []),
            *braced(
                f"for ({index} {_DISTANCE} = {LANES // 2}; {_DISTANCE} > 0; {_DISTANCE} /= 2)", [exchanged, combined]
            ),
            f"{target} = {expressions.store(value, layout.type)};",
        ],
    )
