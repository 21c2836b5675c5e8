"""Options that took isl too many operations to prove: the same number on every machine, unlike seconds."""

from __future__ import annotations

import pytest

from benchmarks.problems.cases import case_called
from tc.language.program.specialization import Specialization
from tc.polyhedral.pipeline import map_program
from tc.targets.options import Fusion, GpuOptions, ScheduleOptions, TileLayout
from tc.targets.target import CudaTarget
from tests.polyhedral.support import machine_for, specialized

H100 = CudaTarget("sm_90").gpu


def suite(name: str) -> Specialization:
    case = case_called(name)
    return case.problem.comprehension.specialize(*case.problem.shapes(case.sizes).values())


def test_copies_made_ahead_are_generated_with_little_work() -> None:
    """isl projected them out of every loop around the one that they are ahead in: 4,700,000 operations."""
    options = GpuOptions(
        ScheduleOptions(tile=(8, 16, 7, 4, 1, 3), unroll=2, fusion=Fusion.MINIMAL),
        grid=(13, 4),
        stages=3,
        layout=TileLayout.POINTS,
    )
    found = map_program(suite("gconv-8"), options, H100, max_operations=3_000_000)
    assert {buffer.layout.shape[0] for buffer in found.loops.promoted if buffer.shared} == {3}


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("def product(float(N) a, float(M) b) -> (y) { y(i+j) +=! a(i) * b(j) }", ((129,), (17,))),
        ("def diagonals(half(N,M) A) -> (y) { y(i-j+M-1) +=! A(i,j) }", ((31, 17),)),
    ],
)
def test_bounds_of_several_parts_are_proven_with_little_work(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    """As functions of many pieces, minima and maxima of bounds took 8,400,000 operations and 4,100,000."""
    options = GpuOptions(ScheduleOptions(tile=(4, 4, 3)), block=(2,), stages=3, register_accumulators=0)
    found = map_program(specialized(text, shapes), options, machine_for(options), max_operations=400_000)
    assert found.proof.leaves > 1
