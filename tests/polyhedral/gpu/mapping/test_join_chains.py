"""Layers of small networks in one kernel: a block takes a row through all of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral.gpu.barriers import pipelined_copies
from tc.polyhedral.gpu.mapping import join_chains
from tc.polyhedral.ir.scop import Await
from tc.polyhedral.transform import promotion
from tc.reference.compare import compare
from tests.polyhedral.gpu.mapping.chains import APART, OTHER_ROWS, PLAIN, TURNED, Shapes, shapes
from tests.turns import one_in


def kernels(text: str, sizes: Shapes, options: tc.GpuOptions | None = None) -> int:
    kernel = tc.define(text).single().compile(*sizes, target="cuda:sm_90", options=options)
    assert not any(grid.spill_loads for grid in kernel.resources.grids)
    return len(kernel.resources.grids)


@one_in(2)
@pytest.mark.parametrize(
    ("text", "sizes", "count"),
    [
        (TURNED, (128, 128, 64, 32), 1),
        (PLAIN, (128, 128, 64, 32), 1),
        (TURNED, (4096, 128, 64, 32), 2),  # blocks would come in waves
        (TURNED, (128, 1024, 512, 32), 2),  # a block would take long
        (TURNED, (128, 512, 64, 32), 2),  # no room for the matrices
        (OTHER_ROWS, (128, 128, 64, 32), 2),
    ],
)
def test_which_layers_are_one_kernel(text: str, sizes: tuple[int, int, int, int], count: int) -> None:
    pytest.importorskip("cuda.bindings")
    assert kernels(text, shapes(text, *sizes)) >= count
    assert (kernels(text, shapes(text, *sizes)) == 1) == (count == 1)


def test_sizes_that_were_given_are_for_nests_of_their_own() -> None:
    pytest.importorskip("cuda.bindings")
    sizes = shapes(TURNED, 128, 128, 64, 32)
    for options in (
        tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL)),
        tc.GpuOptions(block=(32, 4)),
        tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16))),
    ):
        assert kernels(TURNED, sizes, options) > 1


def test_layers_that_hand_over_nothing_keep_their_blocks() -> None:
    pytest.importorskip("cuda.bindings")
    source = tc.define(APART).single().compile(*shapes(APART, 128, 128, 64, 32), target="cuda:sm_90").source
    assert "thread_y" in source


def test_matrices_are_copied_at_once_and_rows_stay_in_shared_memory() -> None:
    pytest.importorskip("cuda.bindings")
    source = tc.define(TURNED).single().compile(*shapes(TURNED, 128, 128, 64, 32), target="cuda:sm_90").source
    body = source[source.index("tc_kernel_0_run(") : source.index('extern "C"')]
    before, behind = body.split("tc_arrived<0>();", 1)
    assert all(f"tc_copy_piece<aligned, true, 16>(&t_shared{n}_{name}[" in before for n, name in ((2, "I"), (3, "V")))
    assert "t_V[" not in behind
    assert "t_W[" not in behind
    assert "+= t_shared0_Y[" in behind


def test_what_a_thread_runs_again_copies_no_operands() -> None:
    """Between the steps of a network, each copy would take two barriers."""
    text = """
    def f(float(T,B,I) x, float(4,H,I) W, float(4,H,H) U, float(B,H) a) -> (h) {
        h(0,b,i) = a(b,i)
        for t in 0:T {
            z(b,g,i) +=! x(t,b,k) * W(g,i,k)
            z(b,g,i) += h(t,b,j) * U(g,i,j)
            h(t+1,b,i) = tanh(z(b,0,i)) * z(b,1,i) + z(b,2,i) * z(b,3,i)
        }
    }"""
    f = tc.define(text).single()
    assert "_pack" not in f.compile((4, 3, 64), (4, 64, 64), (4, 64, 64), (3, 64), target="emulator").source


@one_in(3)
@pytest.mark.parametrize("text", [TURNED, PLAIN, OTHER_ROWS, APART], ids=["turned", "plain", "other rows", "apart"])
@pytest.mark.parametrize("sizes", [(7, 13, 5, 3), (130, 33, 17, 9), (3, 200, 70, 1), (1, 64, 300, 33)])
def test_values_are_those_of_the_definition(text: str, sizes: tuple[int, int, int, int]) -> None:
    own = shapes(text, *sizes)
    f, rng = tc.define(text).single(), np.random.default_rng(0)
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in own]
    found = f(*arrays, target="emulator")
    every = found if isinstance(found, tuple) else (found,)
    for expected, values in zip(f.oracle(*arrays).values(), every, strict=True):
        assert compare(expected, np.asarray(values)).ok


def test_rows_that_others_need_are_refused() -> None:
    with patch.object(join_chains, "_meet_in_rows", lambda *_: True), pytest.raises(tc.VerificationError):
        tc.define(OTHER_ROWS).single().compile(*shapes(OTHER_ROWS, 128, 128, 64, 32), target="emulator")


def test_results_that_others_read_too_early_are_refused() -> None:
    """Without the barrier between a layer and the next one."""
    need = "tc.polyhedral.gpu.barriers.thread_conflicts.ThreadConflicts.need_barrier"
    with patch(need, lambda *_, **__: False), pytest.raises(tc.VerificationError):
        tc.define(PLAIN).single().compile(*shapes(PLAIN, 128, 128, 64, 32), target="emulator")


def test_results_that_are_not_stored_are_refused() -> None:
    promote = promotion.promote_accesses

    def forgotten(*arguments: Any, stored: bool) -> Any:
        found = promote(*arguments, stored=stored)
        if found.stores is None:
            return found
        less = replace(found.stores, domain=found.stores.domain.subtract(found.stores.domain.lexmin()))
        statements = tuple(less if own is found.stores else own for own in found.scop.statements)
        return replace(found, scop=replace(found.scop, statements=statements), stores=less)

    promoting = "tc.polyhedral.gpu.promotion.promote_temporaries.promote_accesses"
    with patch(promoting, forgotten), pytest.raises(tc.VerificationError):
        tc.define(TURNED).single().compile(*shapes(TURNED, 128, 128, 64, 32), target="emulator")


@pytest.mark.parametrize("mistake", ["no barrier", "too late", "not all"])
def test_copies_that_nobody_waits_for_are_refused(mistake: str) -> None:
    once = pipelined_copies.awaits_once

    def wrong(*arguments: Any) -> dict[str, Await]:
        found = once(*arguments)
        match mistake:
            case "no barrier":
                return {name: Await("barrier9", own.first, own.next, 0) for name, own in found.items()}
            case "too late":
                return {name: Await(own.barrier, own.first, own.next, 1) for name, own in found.items()}
            case _:
                first = {name: own.first.subtract(own.first.lexmin()) for name, own in found.items()}
                less = {name: own.subtract_domain(own.domain().lexmin()) for name, own in first.items()}
                return {name: Await(own.barrier, less[name], own.next, 0) for name, own in found.items()}

    with (
        patch("tc.polyhedral.gpu.barriers.place_barriers.awaits_once", wrong),
        pytest.raises(tc.VerificationError),
    ):
        tc.define(TURNED).single().compile(*shapes(TURNED, 128, 128, 64, 32), target="emulator")
