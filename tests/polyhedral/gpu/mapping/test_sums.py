"""Loops over sums of iterators, of which isl makes wrong ones where a remainder of the sum goes to threads."""

from __future__ import annotations

import pytest

from tc.base.errors import VerificationError
from tc.polyhedral.ir.tree import Member
from tc.polyhedral.pipeline import map_program
from tc.targets.machine import GENERIC_GPU
from tc.targets.options import CpuOptions, Distribution, GpuOptions, Options
from tests.polyhedral.support import machine_for, specialized
from tests.turns import one_in

LATTICE = """
def lattice(float(N,M) A) -> (y) {
    y(2*i+4*j+1) *=! A(i,j)
    y(2*i) = 0.5 where i in 0:N+2*M-2
}
"""
THREES = """
def threes(float(N,M) A) -> (y) {
    y(3*i+6*j+2) max=! A(i,j)
    y(3*i) = 1 where i in 0:N+2*M-2
    y(3*i+1) = 2 where i in 0:N+2*M-2
}
"""
OPTIONS: dict[str, Options] = {
    "default": GpuOptions(),
    "nothing promoted": GpuOptions(register_accumulators=0, shared_memory=0),
    "whole": GpuOptions(split_k_threads=()),
    "in runs": GpuOptions(distribution=Distribution.BLOCKED),
    "cpu": CpuOptions(),
}


@one_in(2)
@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize(("text", "sizes"), [(LATTICE, (33, 9)), (LATTICE, (65, 7)), (THREES, (25, 9))])
def test_loops_over_sums_are_proven(text: str, sizes: tuple[int, int], options: str) -> None:
    map_program(specialized(text, (sizes,)), OPTIONS[options], machine_for(OPTIONS[options]))


def without_change(member: Member, _domain: object) -> Member:
    return member


def test_sums_that_isl_divides_wrongly_are_not_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """Were it not for both, the proof would refuse what isl makes of them."""
    program = specialized(LATTICE, ((33, 9),))
    dealt = map_program(program, GpuOptions(), GENERIC_GPU).stage("map").text
    assert "(2i + 4j)" in dealt.split("# thread")[0]
    monkeypatch.setattr("tc.polyhedral.gpu.mapping.map_to_grid.sums_from_zero", without_change)
    whole = map_program(program, GpuOptions(), GENERIC_GPU).stage("map").text
    assert "S0[i, j] -> [(0)]" in whole.split("# block")[1].split("# thread")[0]
    monkeypatch.setattr("tc.polyhedral.pipeline.has_missing_instances", lambda *_: False)
    with pytest.raises(VerificationError, match=r"an instance never runs: S0\[i = 32, j = 8\]"):
        map_program(program, GpuOptions(), GENERIC_GPU)
