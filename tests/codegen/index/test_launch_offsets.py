"""Sums over the numbers of a block and a thread have names, which accesses in loops share."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tc.codegen.index.indices import WideIndexError
from tc.codegen.index.launch_offsets import LaunchOffsets
from tc.codegen.text.dialect import CUDA
from tc.codegen.text.fragment import named
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.ir.loops import IndexLiteral, IndexOperation, IndexOperator, IndexVariable

BLOCK, THREAD, STEP = (IndexVariable(name) for name in ("c0", "c1", "c2"))
TEXTS = {"c0": named("block_x"), "c1": named("thread_x"), "c2": named("c2")}
RANGES = {"c0": Range(0, 3), "c1": Range(0, 31), "c2": Range(-2, 7)}


def offsets(blocks: int = 4) -> LaunchOffsets:
    return LaunchOffsets({"block_x": Range(0, blocks - 1), "thread_x": Range(0, 31)}, replace(CUDA, narrow=True))


def text(form: LinearForm, own: LaunchOffsets) -> str | None:
    found = own.text(form, TEXTS, RANGES)
    return None if found is None else found.text


def test_accesses_that_move_alike_share_a_name() -> None:
    own = offsets()
    quotient = IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (THREAD, IndexLiteral(4)))
    assert text(LinearForm(48, {BLOCK: 512, THREAD: 1, STEP: 64}), own) == "offset0 + 64 * c2 + 48"
    assert text(LinearForm(-3, {BLOCK: 512, THREAD: 1, STEP: -16}), own) == "offset0 - 16 * c2 - 3"
    assert text(LinearForm(0, {BLOCK: 512, quotient: 8, STEP: 1}), own) == "offset1 + c2"
    own.copies_with({"t_x", "offset1"})
    assert [(name, sum.text, copied) for name, sum, copied in own.computed()] == [
        ("offset0", "512 * block_x + thread_x", False),
        ("offset1", "512 * block_x + 8 * (thread_x / 4)", True),
    ]


@pytest.mark.parametrize(
    "form",
    [LinearForm(7), LinearForm(7, {BLOCK: 64, STEP: 1}), LinearForm(7, {BLOCK: 64, THREAD: 1})],
    ids=["a number", "one product", "no loop"],
)
def test_what_is_no_sum_or_in_no_loop_is_written_out(form: LinearForm) -> None:
    own = offsets()
    assert text(form, own) is None
    assert list(own.computed()) == []


def test_sums_fit_an_index_for_all_blocks_whatever_a_condition_says_of_this_one() -> None:
    form = LinearForm(0, {BLOCK: 1 << 20, THREAD: 1, STEP: 1})
    assert text(form, offsets()) == "offset0 + c2"
    with pytest.raises(WideIndexError):
        offsets(1 << 12).text(form, TEXTS, RANGES)
