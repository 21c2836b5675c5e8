"""How many threads of a block share a row that is read again, and that its elements stay in their registers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.language.program.program import Statement
from tc.polyhedral.gpu.mapping import join_reread_rows
from tc.polyhedral.gpu.mapping.split_plan import Group, plan_split
from tc.polyhedral.gpu.promotion.read_again import held
from tc.polyhedral.schedule.split import Walk
from tc.prediction.counts import counts_of
from tc.reference.compare import compare
from tc.targets.machine import GENERIC_GPU, GPUS, GpuMachine
from tc.targets.resolve import resolved
from tests.polyhedral.support import specialized
from tests.turns import one_in

Shapes = tuple[tuple[int, ...], ...]
# Enough for a large GPU: of fewer, several blocks would share each.
ROWS: Final = 2 * GENERIC_GPU.enough_blocks - 1
NORM: Final = """
def f(float(N,D) x) -> (y) {
    s(n) +=! x(n,d)
    y(n,d) = x(n,d) - s(n) / D
}"""
SUM: Final = "def f(float(N,D) x) -> (s) { s(n) +=! x(n,d) }"
GROUPS: Final = """
def f(float(N,D,H,W) x, float(D) g) -> (y) {
    s(n) +=! x(n,d,h,w)
    y(n,d,h,w) = g(d) * (x(n,d,h,w) - s(n) / (D * H * W))
}"""
TWO: Final = """
def f(float(N,D) x, float(N,E) z) -> (y, o) {
    s(n) +=! x(n,d)
    y(n,d) = x(n,d) - s(n) / D
    t(n) +=! z(n,e)
    o(n,e) = z(n,e) - t(n) / E
}"""


def groups(
    text: str, shapes: Shapes, asked: tc.GpuOptions | None = None, machine: GpuMachine = GPUS["sm_90"]
) -> tuple[Group, ...]:
    """How reductions are split."""
    options = asked or tc.GpuOptions()
    known: dict[str, Any] = {decision.option: decision.taken for decision in resolved(options, machine)}
    return plan_split(specialized(text, shapes), replace(options, **known), machine).groups


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (NORM, ((400, 8192),), [(256, 8)]),
        (NORM, ((400, 16384),), [(512, 16)]),
        (NORM, ((400, 32768),), [(1024, 32)]),
        (NORM, ((400, 49152),), [(1024, 32)]),
        # As many elements for each.
        (NORM, ((400, 20000),), [(800, 25)]),
        (NORM, ((400, 20001),), [(1024, 32)]),
        # All threads have the same element of what is read beside the row.
        (GROUPS, ((400, 16, 48, 48), (16,)), [(768, 24)]),
        (SUM, ((400, 32768),), [(256, 8)]),
        (TWO, ((400, 1024), (400, 32768)), [(256, 8), (1024, 32)]),
    ],
)
def test_threads_of_a_row(text: str, shapes: Shapes, expected: list[tuple[int, ...]]) -> None:
    assert [group.parts for group in groups(text, shapes)] == expected


def test_a_block_that_is_asked_for_is_kept() -> None:
    (group,) = groups(NORM, ((400, 32768),), tc.GpuOptions(block=(64,)))
    assert group.parts == (256, 8)


def test_threads_hold_what_their_registers_have_room_for() -> None:
    registers = GPUS["sm_90"].multiprocessor.registers
    assert held(256, registers) == 256 * 64
    assert held(1024, registers) == 1024 * 48


@pytest.mark.parametrize(
    ("text", "shapes", "threads"), [(NORM, ((200, 32768),), 1024), (GROUPS, ((200, 16, 48, 48), (16,)), 768)]
)
def test_each_element_is_read_from_memory_once(text: str, shapes: Shapes, threads: int) -> None:
    pytest.importorskip("cuda.bindings")
    kernel = tc.define(text).single().compile(*shapes, target="cuda:sm_90")
    (grid,) = kernel.resources.grids
    assert grid.block == (threads, 1, 1)
    assert not grid.spill_loads
    (count,) = counts_of(kernel.executable.asks)
    row = int(np.prod(shapes[0][1:]))
    assert sum(kind.count * kind.demand.near for kind in count.kinds) < 1.1 * shapes[0][0] * row / 8


@one_in(2)
@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (NORM, ((ROWS, 9001),)),
        (NORM, ((ROWS, 9600),)),
        (GROUPS, ((ROWS, 3, 48, 64), (3,))),
        (GROUPS, ((ROWS, 3, 53, 61), (3,))),
        (TWO, ((ROWS, 700), (ROWS, 9001))),
    ],
)
def test_values_are_those_of_the_definition(text: str, shapes: Shapes) -> None:
    machine = GENERIC_GPU
    assert any(group.parts[0] > machine.block_threads for group in groups(text, shapes, machine=machine))
    f, rng = tc.define(text).single(), np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
    found = f(*arrays, target="emulator")
    for expected, own in zip(f.oracle(*arrays).values(), found if isinstance(found, tuple) else (found,), strict=True):
        assert compare(expected, np.asarray(own)).ok


def test_a_row_that_is_joined_wrongly_is_refused() -> None:
    joined = join_reread_rows._joined

    def shorter(statement: Statement, walk: Walk) -> Any:
        (first, values), *others = walk.loops
        return joined(statement, Walk(((first, values[1:]), *others)))

    with patch.object(join_reread_rows, "_joined", shorter), pytest.raises(tc.VerificationError, match="rewriting"):
        tc.define(GROUPS).single().compile((2, 3, 48, 64), (3,), target="emulator")
