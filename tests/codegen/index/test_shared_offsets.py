"""Statements of a register tile share what their offsets have in common."""

from __future__ import annotations

import re
from itertools import count

import numpy as np
import pytest

import tc
from tc.codegen.index.shared_offsets import SharedOffsets
from tc.polyhedral.analysis.offsets import LinearForm, index_form
from tc.polyhedral.ir.loops import IndexLiteral, IndexOperation, IndexOperator, IndexVariable
from tests.translated import translated

ROW, COLUMN = IndexVariable("i"), IndexVariable("j")


def test_forms_that_differ_in_a_constant_share_a_name() -> None:
    offsets = SharedOffsets(count(3))
    near, far = LinearForm(1, {ROW: 64, COLUMN: 1}), LinearForm(65, {ROW: 64, COLUMN: 1})
    assert offsets.name(near) == offsets.name(far) == "offset3"
    assert offsets.name(LinearForm(0, {ROW: 32, COLUMN: 1})) == "offset4"
    assert list(offsets.computed()) == [
        ("offset3", LinearForm(0, near.factors).expression()),
        ("offset4", LinearForm(0, {ROW: 32, COLUMN: 1}).expression()),
    ]


@pytest.mark.parametrize("form", [LinearForm(7), LinearForm(7, {ROW: 64})], ids=["a number", "one product"])
def test_what_is_no_sum_gets_no_name(form: LinearForm) -> None:
    offsets = SharedOffsets(count())
    assert offsets.name(form) is None
    assert list(offsets.computed()) == []


def test_loops_of_a_tile_declare_the_offsets_that_their_statements_use() -> None:
    mm = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }")
    source = mm.compile(np.ones((64, 96), np.float32), np.ones((96, 64), np.float32)).source
    begin = source.index("tc_region_0_body(\n")
    body = source[begin : source.index("\n}\n", begin)]
    declared: dict[int, set[str]] = {}  # by depth of the braces, which the indentation shows
    shared = 0
    for line in body.splitlines():
        depth = len(line) - len(line.lstrip())
        declared = {around: names for around, names in declared.items() if around <= depth}
        if found := re.match(r" *const int64_t (offset\d+) = ", line):
            declared.setdefault(depth, set()).add(found[1])
        for name in re.findall(r"\[(offset\d+)( [+-] \d+)?\]", line):
            assert any(name[0] in names for names in declared.values()), line
            shared += 1
    assert shared > 8
    assert not re.search(r"tile\d+_C_\d+_\d+ .*\[[^]]*c\d+ [+-] [^]]*c\d", body), "an offset written out"


def test_an_index_of_a_gather_is_at_a_shared_offset() -> None:
    rng = np.random.default_rng(0)
    table, index = rng.standard_normal((50, 37)).astype(np.float32), rng.integers(0, 50, (11, 23)).astype(np.int32)
    lut = tc.define("def lut(float(E,D) W, int(B,L) I) -> (O) { O(b,d) +=! W(I(b,l), d) }").lut
    printed = translated(lut, table, index, target="cpu:x86-64-v4").source.text
    assert len(re.findall(r"t_I\[offset0\], 50,", printed)) > 1
    kernel = lut.compile(table, index)
    result = kernel(table, index)
    assert isinstance(result, np.ndarray)
    np.testing.assert_allclose(result, table[index].sum(1), rtol=1e-5, atol=1e-5)


def test_arithmetic_on_numbers_is_done() -> None:
    # (2 * 0 + 2) / 3, which isl leaves where a loop runs once.
    product = IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(2), IndexLiteral(0)))
    total = IndexOperation(IndexOperator.ADD, (product, IndexLiteral(2)))
    quotient = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (total, IndexLiteral(3)))
    remainder = IndexOperation(IndexOperator.NONNEGATIVE_REMAINDER, (IndexLiteral(7), IndexLiteral(3)))
    both = IndexOperation(IndexOperator.ADD, (IndexOperation(IndexOperator.ADD, (quotient, ROW)), remainder))
    assert index_form(both) == LinearForm(1, {ROW: 1})
