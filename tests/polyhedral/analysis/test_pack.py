"""Which operands of a reduction are worth a copy."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.analysis.pack import worth_packing
from tc.polyhedral.ir.scop import build_scop, layouts_of
from tc.reference.compare import compare
from tests.polyhedral.support import specialized

PRODUCT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"


@pytest.mark.parametrize(
    ("rows", "steps", "columns", "packed"),
    [
        pytest.param(256, 512, 49, True, id="rows begin anywhere in a line"),
        pytest.param(256, 512, 100, True, id="and are as long as two register tiles"),
        pytest.param(256, 512, 64, False, id="whole lines"),
        pytest.param(256, 512, 24, False, id="one register tile reads all of a row"),
        pytest.param(64, 512, 49, False, id="few results read an element"),
        pytest.param(256, 64, 49, False, id="all stays in the first cache"),
        pytest.param(15, 512, 1024, True, id="rows lie pages apart"),
        pytest.param(14, 512, 1024, False, id="and one register tile reads all of them"),
        pytest.param(31, 511, 1024, False, id="fewer rows that lie pages apart stay in the second cache"),
        pytest.param(32, 511, 1024, True, id="but not in the first one"),
    ],
)
def test_rows_that_lanes_read_in_pieces(rows: int, steps: int, columns: int, packed: bool) -> None:
    with isl_context() as context:
        scop = build_scop(specialized(PRODUCT, ((rows, steps), (steps, columns))), context)
        update = next(own for own in scop.statements if own.body.reduction is not None)
        assert worth_packing(update, layouts_of(scop), "n", 32) == ((1,) if packed else ())


def test_a_register_tile_of_few_registers_has_fewer_rows() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(PRODUCT, ((7, 512), (512, 1024))), context)
        update = next(own for own in scop.statements if own.body.reduction is not None)
        assert [worth_packing(update, layouts_of(scop), "n", registers) for registers in (16, 32)] == [(1,), ()]


@pytest.mark.parametrize("columns", [49, 75])
def test_packed_rows_give_the_results_of_the_oracle(columns: int) -> None:
    rng = np.random.default_rng(columns)
    f = tc.define(PRODUCT).single()
    arrays = [rng.standard_normal(shape).astype(np.float32) for shape in ((195, 261), (261, columns))]
    kernel = f.compile(*arrays, target="cpu")
    assert "_B[" in kernel.source
    assert compare(f.oracle(*arrays)["C"], np.asarray(kernel(*arrays))).ok
