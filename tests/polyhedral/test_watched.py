"""What the emulator sees of kernels that no proof would let pass, and that the proof refuses them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.base.proof import Proof
from tc.polyhedral.analysis.box import Box, bounding_box
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
OPTIONS = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 16, 4)), block=(8, 4), stages=1)
A, B = np.ones((37, 19), np.float32), np.ones((19, 21), np.float32)


def missed_by_one_thread(tree: ScheduleTree, scop: Scop, **how: bool) -> tuple[ScheduleTree, Scop]:
    """Thread 0 does not come to the first barrier."""
    tree, scop = place_barriers(tree, scop, **how)
    barrier = min(scop.barriers, key=isl.Set.get_tuple_name)
    first = next(p for p in range(barrier.dim(isl.dim_type.set)) if barrier.dim_max_val(p) == 7)
    kept = barrier.lower_bound_val(isl.dim_type.set, first, isl.Val.one(barrier.get_ctx()))
    others = tree.domain.subtract(isl.UnionSet.from_set(barrier)).union(isl.UnionSet.from_set(kept))
    return replace(tree, domain=others), replace(scop, barriers=(kept, *(b for b in scop.barriers if b != barrier)))


def one_short(*arguments: object, **keywords: object) -> Box | None:
    """The buffer lacks its last column."""
    box = bounding_box(*arguments, **keywords)  # type: ignore[arg-type]
    return None if box is None else replace(box, extents=(*box.extents[:-1], box.extents[-1] - 1))


@pytest.mark.parametrize(
    ("mistake", "violation", "seen"),
    [
        (
            lambda: patch("tc.polyhedral.grid_passes.place_barriers", missed_by_one_thread),
            Violation.RACE,
            "mm: threads of a block wait at different barriers; the compiler made a mistake, please report it",
        ),
        (
            lambda: patch("tc.polyhedral.analysis.box.bounding_box", one_short),
            Violation.OUT_OF_BOUNDS,
            "mm: an access left its buffer; the compiler made a mistake, please report it",
        ),
    ],
)
def test_proof_and_emulator_both_see_it(
    mistake: Callable[[], AbstractContextManager[object]], violation: Violation, seen: str
) -> None:
    # Without the mistake, there is nothing to give up.
    with mistake(), patch("tc.polyhedral.pipeline.infeasible_buffers", return_value=None):
        with pytest.raises(tc.VerificationError, match=violation.value):
            fresh().compile(A, B, target="emulator", options=OPTIONS)
        with patch("tc.polyhedral.pipeline.prove", lambda *_: Proof(0, 0, 0, 0)):
            kernel = fresh().compile(A, B, target="emulator", options=OPTIONS)
    with pytest.raises(tc.DeviceError, match=f"^{seen} with the definition$"):
        kernel(A, B)


def fresh() -> tc.Comprehension:
    """Kernels are kept by definition."""
    return tc.define(str(MM)).single()
