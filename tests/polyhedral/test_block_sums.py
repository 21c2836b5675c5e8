"""Loops whose sums are blocked, and the proof that they are the same loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

import tc
from tc.errors import VerificationError
from tc.polyhedral.loops import (
    Fold,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
)
from tc.polyhedral.verify_blocks import prove_blocks

ITERATOR, BEGIN = IndexVariable("c0"), IndexVariable("run")
WHOLE = Loop("c0", IndexLiteral(0), IndexLiteral(99), 1, LoopKind.REDUCTION, Instance("S", (ITERATOR,)))


def runs(length: int, upper: IndexOperation | IndexLiteral, step: int = 16) -> Loop:
    end = IndexOperation(IndexOperator.ADD, (BEGIN, IndexLiteral(length - 1)))
    last = IndexOperation(IndexOperator.MINIMUM, (end, upper))
    inner = replace(WHOLE, lower=BEGIN, upper=last)
    return Loop("run", IndexLiteral(0), IndexLiteral(99), step, LoopKind.SEQUENTIAL, inner, folds=(Fold("S"),))


def test_runs_one_behind_the_other_are_the_loop() -> None:
    prove_blocks(WHOLE, runs(16, IndexLiteral(99)))


@pytest.mark.parametrize(
    "wrong",
    [
        runs(15, IndexLiteral(99)),
        runs(16, IndexLiteral(98)),
        runs(16, IndexLiteral(99), step=17),
        replace(runs(16, IndexLiteral(99)), upper=IndexLiteral(98)),
        replace(runs(16, IndexLiteral(99)), body=replace(WHOLE, lower=BEGIN)),
    ],
    ids=["short", "end", "gap", "last", "again"],
)
def test_other_runs_are_refused(wrong: Loop) -> None:
    with pytest.raises(VerificationError, match="the blocks of sums are not proven correct"):
        prove_blocks(WHOLE, wrong)


def test_elements_that_are_too_many_are_accumulated_in_float64() -> None:
    columns = tc.define("def f(float(M,N) x) -> (s) { s(n) +=! x(m,n) }").f
    assert "double t_local" in columns.compile((40_000, 500)).source
    assert "double t_" not in columns.compile((30, 500)).source
