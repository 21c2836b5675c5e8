"""Register tiles at borders are written out with the steps that have other rows; those inside stay in loops."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.base.errors import VerificationError
from tc.polyhedral.analysis.ranges import Ranges
from tc.polyhedral.ir.loops import IndexLiteral, IndexOperation, IndexOperator, Loop, LoopKind, LoopTree
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.separate import unroll_borders as separating
from tc.reference.compare import compare
from tests.polyhedral.generate.sums import changed
from tests.polyhedral.support import MACHINE, specialized

Shapes = tuple[tuple[int, ...], ...]
SAME: Final = """
def same(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
    O(n,f,h,w) +=! I(n,c,h+i-1,w+j-1) * K(f,c,i,j) where h in 0:H, w in 0:W, h+i-1 in 0:H, w+j-1 in 0:W
}"""
BIASED: Final = SAME.replace("float(F,C,3,3) K", "float(F,C,3,3) K, float(F) B").replace(
    "0:W\n}", "0:W\n    O(n,f,h,w) = O(n,f,h,w) + B(f)\n}"
)
FULL: Final = """
def full(float(N,C,D,W) I, float(C,F,3,7) K) -> (O) {
    O(n,f,d,w) +=! I(n,c,d-i,w-j) * K(c,f,i,j) where d in 0:D+2, w in 0:W+6, d-i in 0:D, w-j in 0:W
}"""
HALVED: Final = """
def halved(float(N,C,W) I, float(F,C,5) K) -> (O) {
    O(n,f,w) +=! I(n,c,2*w+j-2) * K(f,c,j) where w in 0:W/2, 2*w+j-2 in 0:W
}"""
LONG: Final = """
def long(float(N,C,W) I, float(F,C,41) K) -> (O) {
    O(n,f,w) +=! I(n,c,w+j-20) * K(f,c,j) where w in 0:W, w+j-20 in 0:W
}"""
IN_ROWS: Final = tc.CpuOptions(register_tile=(16, 1, 8), vector_axis=0)
CASES: Final[dict[str, tuple[str, Shapes, tc.CpuOptions]]] = {
    "same": (SAME, ((4, 5, 4, 40), (16, 5, 3, 3)), IN_ROWS),
    "a rest": (SAME, ((4, 5, 4, 37), (16, 5, 3, 3)), IN_ROWS),
    "one tile": (SAME, ((4, 5, 4, 8), (16, 5, 3, 3)), IN_ROWS),
    "two tiles": (SAME, ((4, 5, 4, 16), (16, 5, 3, 3)), IN_ROWS),
    "biased": (BIASED, ((4, 9, 4, 40), (16, 9, 3, 3), (16,)), IN_ROWS),
    "full": (FULL, ((2, 3, 4, 16), (3, 16, 3, 7)), replace(IN_ROWS, register_tile=(16, 1, 11))),
    "halved": (HALVED, ((2, 5, 80), (16, 5, 5)), replace(IN_ROWS, register_tile=(16, 8))),
    "in lanes": (SAME, ((4, 5, 4, 64), (4, 5, 3, 3)), tc.CpuOptions(register_tile=(4, 1, 16))),
    "long": (LONG, ((4, 3, 60), (16, 3, 41)), replace(IN_ROWS, register_tile=(16, 8))),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str) -> None:
    text, shapes, options = CASES[name]
    f, rng = tc.define(text).single(), np.random.default_rng(0)
    arrays: list[Any] = [rng.standard_normal(shape).astype("f") for shape in shapes]
    (own,) = f.oracle(*arrays).values()
    assert compare(own, np.asarray(f(*arrays, options=options))).ok


@pytest.mark.parametrize("name", CASES)
def test_every_pass_is_proven(name: str) -> None:
    text, shapes, options = CASES[name]
    map_program(specialized(text, shapes), options, MACHINE, verify_every_pass=True)


def printed(name: str) -> str:
    text, shapes, options = CASES[name]
    return tc.define(text).single().compile(*shapes, options=options, target="cpu:x86-64-v4").source


@pytest.mark.parametrize("name", ["same", "one tile", "two tiles", "full", "biased"])
def test_rows_have_no_conditions(name: str) -> None:
    text = printed(name).partition("tc_region_0_body")[2]
    assert not re.search(r"if \([^\n]*\n *t_tile", text)


def test_tiles_inside_have_one_branch() -> None:
    """Of five, the first and the last are written out, each with three taps."""
    text = printed("same")
    assert re.search(r"if \((c\d) >= 1 && \1 <= 3\) \{", text)
    counts = [len(re.findall(rf"t_tile\d_O_{row}_0 \+= t_I", text)) for row in range(8)]
    assert counts == [6, *[7] * 6, 6]


def test_copies_add_no_more_to_a_sum() -> None:
    """Else it would be in float64."""
    assert "double" not in printed("biased").partition("tc_region_0_body")[2]


def test_many_copies_are_not_written() -> None:
    assert re.search(r"if \([^\n]*\n *t_tile", printed("long"))


def with_one_row_less(loop: Loop) -> LoopTree:
    if loop.kind is LoopKind.REGISTER and not isinstance(loop.lower, IndexLiteral):
        return replace(loop, lower=IndexOperation(IndexOperator.ADD, (loop.lower, IndexLiteral(1))))
    return loop


def with_all_rows(loop: Loop) -> LoopTree:
    if loop.kind is LoopKind.REGISTER and not isinstance(loop.lower, IndexLiteral):
        return replace(loop, lower=IndexLiteral(0))
    return loop


@pytest.mark.parametrize("change", [with_one_row_less, with_all_rows])
def test_other_rows_are_refused(change: Callable[[Loop], LoopTree]) -> None:
    text, shapes, options = CASES["same"]

    def mistaken(tree: LoopTree, ranges: Ranges) -> LoopTree:
        return changed(separating.unroll_borders(tree, ranges), change)

    with patch("tc.polyhedral.processor_passes.unroll_borders", mistaken), pytest.raises(VerificationError):
        map_program(specialized(text, shapes), options, MACHINE)


def test_copies_at_other_places_are_refused() -> None:
    text, shapes, options = CASES["same"]
    at = separating._at

    def misplaced(loop: Loop, place: int) -> LoopTree:
        return at(loop, min(place + 1, 4))

    with patch.object(separating, "_at", misplaced), pytest.raises(VerificationError):
        map_program(specialized(text, shapes), options, MACHINE)
