"""Loops that say nothing new are not in the schedule, and what lies below them does not carry their values."""

from __future__ import annotations

import re

import islpy as isl
import pytest

import tc
from tc.polyhedral.gpu.mapping.drop_degenerate_loops import drop_degenerate_loops
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Leaf, Member, Node, ScheduleTree

CONTEXT = isl.Context()
DOMAIN = isl.UnionSet.read_from_str(CONTEXT, "{ S[i, j] : 0 <= i < 32 and 0 <= j < 5 }")


def member(function: str, kind: LoopKind = LoopKind.SEQUENTIAL) -> Member:
    return Member(isl.UnionPwAff.read_from_str(CONTEXT, f"{{ S[i, j] -> [{function}] }}"), coincident=True, kind=kind)


def band(*members: Member, child: Node | None = None) -> Band:
    return Band(members, permutable=True, child=Leaf() if child is None else child)


TILE, POINT = member("floor(i/8)"), member("i mod 8")
BLOCK, THREAD = member("floor(i/8)", LoopKind.BLOCK), member("i mod 8", LoopKind.THREAD)
COLUMN, ONE_TILE = member("j"), member("floor(j/5)")
LAST = band(COLUMN, child=band(POINT))


@pytest.mark.parametrize(
    ("root", "left"),
    [
        (band(BLOCK, THREAD, child=band(TILE, COLUMN)), band(BLOCK, THREAD, child=band(COLUMN))),
        (band(BLOCK, THREAD, child=band(COLUMN, child=band(POINT, POINT))), band(BLOCK, THREAD, child=LAST)),
        (band(BLOCK, THREAD, child=band(COLUMN, child=band(POINT))), band(BLOCK, THREAD, child=band(COLUMN))),
        (band(BLOCK, THREAD, child=band(COLUMN, POINT)), band(BLOCK, THREAD, child=band(COLUMN))),
        (band(ONE_TILE, TILE, child=band(COLUMN, POINT)), band(TILE, child=band(COLUMN, POINT))),
        (band(TILE, child=band(ONE_TILE, child=band(COLUMN))), None),
        (band(member("0", LoopKind.BLOCK), member("0", LoopKind.THREAD)), None),
        (band(TILE, member("2*floor(i/8)"), COLUMN), None),
    ],
    ids=[
        "a block's own tile",
        "the last loop of a nest stays",
        "but not that over rows",
        "a thread's own point",
        "one iteration",
        "a loop over tiles stays",
        "where things run",
        "other values",
    ],
)
def test_loops_that_are_settled_are_left_out(root: Band, left: Band | None) -> None:
    assert drop_degenerate_loops(ScheduleTree(DOMAIN, root)).root == (root if left is None else left)


def test_a_product_in_one_tile_still_goes_through_shared_memory() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 32)), block=(16, 16))
    source = mm.compile((64, 32), (32, 64), target="cuda:sm_90", options=options).source
    assert re.findall(r"t_shared\d_[AB]\b", source)
    assert source.count("__syncthreads") == 1


def test_tiles_are_said_once() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(16, 16), stages=1)
    schedule = mm.compile((64, 32), (32, 64), target="cuda:sm_90", options=options).schedule
    assert schedule.count("S0[m, n, k] -> [(floor((m)/16))]") == 1
    assert schedule.count("S0[m, n, k] -> [(floor((k)/8))]") == 1
