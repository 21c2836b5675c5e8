"""Rows that gathers read some iterations later are prefetched, along the lanes of a register tile."""

from __future__ import annotations

import pytest

from tc.polyhedral.analysis.offsets import index_form
from tc.polyhedral.ir.loops import Instance, LoopProgram, leaves
from tc.polyhedral.pipeline import map_program
from tc.targets.options import CpuOptions, ScheduleOptions
from tests.polyhedral.support import MACHINE, MATMUL, specialized
from tests.turns import every

LOOKUP = "def lookup(float(E,D) W, int32(B,K) I) -> (O) { O(b,d) +=! W(I(b,k),d) }"
SHAPES = ((500, 64), (24, 40))


def mapped(options: CpuOptions, text: str = LOOKUP, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> LoopProgram:
    return map_program(specialized(text, shapes), options, MACHINE).loops


def prefetching(program: LoopProgram) -> list[Instance]:
    return [leaf for leaf in leaves(program.root) if isinstance(leaf, Instance) and leaf.prefetched]


@pytest.mark.parametrize("distance", every(2, [1, 16]))
@pytest.mark.parametrize("unroll", [1, 4])
def test_the_instance_is_so_many_iterations_of_the_loop_later(distance: int, unroll: int) -> None:
    found = prefetching(mapped(CpuOptions(ScheduleOptions(unroll=unroll), gather_prefetch=distance)))
    assert found
    for instance in found:
        assert instance.statement == "S0"
        moved = zip(instance.arguments, instance.prefetched, strict=True)
        distances = [index_form(later).plus(index_form(now), -1) for now, later in moved]
        assert max(form.constant for form in distances) in (distance, distance * unroll)
        assert not any(form.factors for form in distances)


@pytest.mark.parametrize(
    ("options", "text", "shapes", "why"),
    [
        (CpuOptions(gather_prefetch=0), LOOKUP, SHAPES, "none may be"),
        (CpuOptions(register_accumulators=0, local_temporaries=0), LOOKUP, SHAPES, "there is no tile"),
        (CpuOptions(), MATMUL, ((32, 9), (9, 64)), "nothing is gathered"),
    ],
    ids=["none", "no tile", "no gather"],
)
def test_nothing_is_prefetched_where(
    options: CpuOptions, text: str, shapes: tuple[tuple[int, ...], ...], why: str
) -> None:
    assert prefetching(mapped(options, text, shapes)) == [], why
