"""What a GPU runs badly or not at all is tried with fewer buffers."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import patch

import numpy as np

import tc
from tc.polyhedral.analysis.box import Box
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import OPTIONS, check, fitting

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
# Sixteen points of every other row of C belong to a thread.
ROWS = tc.GpuOptions(tc.ScheduleOptions(tile=(2, 128, 8)), block=(8, 2), register_accumulators=256)
(SGEMM,) = (case for case in CASES if case.name == "sgemm")
FEW_BLOCKS = replace(OPTIONS["runs of points, few blocks"], stages=1)


def source(options: tc.GpuOptions) -> str:
    return MM.compile((100, 64), (64, 1000), target="cuda:sm_90", options=options).source


def test_what_a_thread_keeps_has_no_loop_that_is_too_long_to_unroll() -> None:
    long = replace(ROWS, schedule=tc.ScheduleOptions(tile=(2, 1024, 8)))
    assert "float t_private" in source(ROWS)
    assert "float t_private" not in source(long)
    for options in (ROWS, long):
        (grid,) = MM.compile((100, 64), (64, 1000), target="cuda:sm_90", options=options).resources.grids
        assert grid.stack == 0


def test_an_array_whose_elements_a_loop_chooses_is_given_up() -> None:
    """As if the pass did not know how long loops may be."""
    long = replace(ROWS, schedule=tc.ScheduleOptions(tile=(2, 1024, 8)), register_operands=64)

    def fits(box: Box, most: int) -> bool:
        return max(box.extents) <= most

    with patch.object(Box, "fits_registers", fits):
        assert not re.search(r"float t_(private|fragment)", source(long))


def test_threads_that_would_meet_unequally_often_share_nothing() -> None:
    """Some threads have points in one more tile, in which there is nothing to wait for."""
    definition = tc.define(SGEMM.text).single()
    arrays = SGEMM.make_inputs(np.random.default_rng(0), SGEMM.large_ragged_sizes).values()

    def compiled(options: tc.GpuOptions) -> tc.Kernel:
        return fitting(lambda chosen: definition.compile(*arrays, target="cuda:sm_90", options=chosen), options)

    assert "__shared__" in compiled(replace(FEW_BLOCKS, distribution=tc.Distribution.CYCLIC)).source
    kernel = compiled(FEW_BLOCKS)
    assert "__syncthreads" not in kernel.source
    check(SGEMM, SGEMM.large_ragged_sizes, FEW_BLOCKS)
