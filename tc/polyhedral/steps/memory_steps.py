"""Where values are kept while loops run: registers, shared memory, buffers of a thread."""

from __future__ import annotations

from collections.abc import Iterator
from typing import assert_never

from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import Promotion, Scop
from tc.polyhedral.steps.step import Rule, Step


def memory_steps(scop: Scop, *, grids: bool) -> Iterator[Step]:
    """A step for each buffer; ``grids``: of a GPU, whose threads have their own arrays in registers."""
    for promotion in scop.promotions:
        layout = promotion.buffer.layout
        box = f"{layout.type}[{', '.join(map(str, layout.shape))}] of {promotion.tensor}"
        rule, place = _place(promotion, grids=grids)
        slots = "" if promotion.rotation is None else f", {promotion.rotation.slots} of them in turn"
        yield Step(rule, f"{box} {place}{slots}")


def _place(promotion: Promotion, *, grids: bool) -> tuple[Rule, str]:
    match promotion.buffer.sharing:
        case Sharing.BLOCK:
            return Rule.TO_LOCAL, "in memory that the threads of a block share"
        case Sharing.LANES:
            return Rule.TO_PRIVATE, "in registers of the lanes of a warp"
        case Sharing.THREAD if grids or promotion.registers:
            return Rule.TO_PRIVATE, "in registers"
        case Sharing.THREAD if promotion.loads is not None:
            return Rule.TO_LOCAL, "packed, in a buffer of a core"
        case Sharing.THREAD:
            return Rule.TO_PRIVATE, "in a buffer of a core"
        case _:
            assert_never(promotion.buffer.sharing)
