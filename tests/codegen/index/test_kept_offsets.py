"""Parts of offsets that a loop over tiles keeps."""

from __future__ import annotations

from tc.codegen.index.kept_offsets import KeptOffsets
from tc.polyhedral.analysis.offsets import LinearForm
from tc.polyhedral.ir.loops import (
    Barrier,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Loop,
    LoopKind,
)

TILE, THREAD, COPY = map(IndexVariable, ("tile", "thread", "copy"))
LOOP = Loop("copy", IndexLiteral(0), IndexLiteral(2), 1, LoopKind.UNROLLED, Barrier("b", ()))


def divided(value: IndexExpression, by: int) -> IndexExpression:
    return IndexOperation(IndexOperator.NONNEGATIVE_DIVIDE, (value, IndexLiteral(by)))


def numbered(by: int) -> IndexExpression:
    """What a thread divides for one of its copies."""
    turn = IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(64), COPY))
    return divided(IndexOperation(IndexOperator.ADD, (turn, THREAD)), by)


def test_what_threads_divide_is_kept_and_what_tiles_change_is_left() -> None:
    kept = KeptOffsets({"thread"})
    found = kept.split(LinearForm(5, {divided(THREAD, 7): 3, TILE: 16}), ())
    assert found is not None
    assert (found.name, found.loop, found.left) == ("kept0", None, LinearForm(5, {TILE: 16}))
    again = kept.split(LinearForm(8, {divided(THREAD, 7): 3}), ())
    assert again is not None
    assert (again.name, again.left) == ("kept0", LinearForm(8))
    assert [name for name, _, _ in kept.computed()] == ["kept0"]


def test_copies_of_a_loop_have_an_element_each() -> None:
    kept = KeptOffsets({"thread"})
    found = kept.split(LinearForm(0, {numbered(7): 1, COPY: 2, TILE: 4}), (LOOP,))
    assert found is not None
    assert (found.loop, found.left) == (LOOP, LinearForm(0, {TILE: 4}))


def test_nothing_is_kept_where_compilers_shift_or_the_loop_is_another_one() -> None:
    kept = KeptOffsets({"thread"})
    assert kept.split(LinearForm(0, {divided(THREAD, 8): 1, TILE: 4}), ()) is None
    assert kept.split(LinearForm(0, {THREAD: 3}), ()) is None
    assert kept.split(LinearForm(0, {divided(TILE, 7): 1, THREAD: 1}), ()) is None
    assert kept.split(LinearForm(0, {numbered(7): 1}), ()) is None
    moved = Loop("copy", IndexLiteral(1), IndexLiteral(2), 1, LoopKind.UNROLLED, Barrier("b", ()))
    assert kept.split(LinearForm(0, {numbered(7): 1}), (moved,)) is None
    assert not list(kept.computed())
