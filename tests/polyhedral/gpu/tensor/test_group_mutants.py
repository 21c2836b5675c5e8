"""Mistakes in matrix instructions of four warps: the proof refuses them, and the emulator computes something else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeAlias, assert_never
from unittest.mock import patch

import pytest

import tc
from tc.polyhedral.analysis.substitute import substituted
from tc.polyhedral.gpu.tensor.instructions import matrix_instructions
from tc.polyhedral.ir.loops import (
    Allocation,
    Barrier,
    Block,
    GroupMma,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Leaf,
    Loop,
    LoopTree,
    SharedMatrix,
)
from tests.mutants.judge import Given, Verdict, judge
from tests.mutants.mistakes import Mistake
from tests.polyhedral.gpu.tensor.products import LAYOUTS, operands, product
from tests.turns import every, one_in

Change: TypeAlias = "Callable[[GroupMma], GroupMma]"
Matrix: TypeAlias = "Callable[[SharedMatrix, GroupMma], SharedMatrix]"


def changed(tree: LoopTree, change: Change, *, fenced: bool = True) -> LoopTree:
    match tree:
        case GroupMma():
            return change(tree)
        case Barrier():
            return replace(tree, fenced=fenced)
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(changed(child, change, fenced=fenced) for child in children))
        case Guard(condition, then, otherwise):
            other = otherwise and changed(otherwise, change, fenced=fenced)
            return Guard(condition, changed(then, change, fenced=fenced), other)
        case Loop() | Allocation():
            return replace(tree, body=changed(tree.body, change, fenced=fenced))
        case _:
            assert_never(tree)


def mistake(name: str, change: Change, *, fenced: bool = True) -> Mistake:
    @contextmanager
    def made() -> Iterator[None]:
        def wrong(*arguments: object, **more: object) -> LoopTree:
            found = matrix_instructions(*arguments, **more)  # type: ignore[arg-type]
            return changed(found, change, fenced=fenced)

        with patch("tc.polyhedral.grid_passes.matrix_instructions", wrong):
            yield

    return Mistake(name, made)


def plus(value: IndexExpression, number: int) -> IndexExpression:
    return IndexOperation(IndexOperator.ADD, (value, IndexLiteral(number)))


def of_side(side: str, change: Matrix) -> Change:
    def of(node: GroupMma) -> GroupMma:
        own = change(node.left if side == "left" else node.right, node)
        return replace(node, left=own) if side == "left" else replace(node, right=own)

    return of


def at(values: Callable[[GroupMma], dict[str, IndexExpression]]) -> Matrix:
    """The operand with other values of iterators."""

    def change(own: SharedMatrix, node: GroupMma) -> SharedMatrix:
        return replace(own, subscripts=tuple(substituted(subscript, values(node)) for subscript in own.subscripts))

    return change


def moved(dimension: int, number: int) -> Matrix:
    """The operand from another element on."""

    def change(own: SharedMatrix, _node: GroupMma) -> SharedMatrix:
        subscripts = [plus(s, number) if n == dimension else s for n, s in enumerate(own.subscripts)]
        return replace(own, subscripts=tuple(subscripts))

    return change


def resized(nest: LoopTree, iterator: str, by: int) -> Loop:
    """The nest in which a loop has so many iterations less."""
    assert isinstance(nest, Loop)
    body = resized(nest.body, iterator, by) if isinstance(nest.body, Loop) else nest.body
    if nest.iterator != iterator:
        return replace(nest, body=body)
    assert isinstance(nest.upper, IndexLiteral)
    return replace(nest, body=body, upper=IndexLiteral(nest.upper.value - by))


def with_sums(nest: LoopTree, change: Callable[[IndexExpression], IndexExpression]) -> Loop:
    """The nest whose instance has other subscripts of its sum."""
    assert isinstance(nest, Loop)
    if isinstance(nest.body, Loop):
        return replace(nest, body=with_sums(nest.body, change))
    assert isinstance(nest.body, Instance)
    own = (change(a) if 3 <= n < 6 else a for n, a in enumerate(nest.body.arguments))
    return replace(nest, body=replace(nest.body, arguments=tuple(own)))


SIDES: dict[str, Matrix] = {
    "half a stride": lambda own, _: replace(own, stride=own.stride // 2),
    "twice the stride": lambda own, _: replace(own, stride=2 * own.stride),
    "no stride": lambda own, _: replace(own, stride=0),
    "turned": lambda own, _: replace(own, turned=not own.turned),
    "the next piece": moved(2, 8),
    "the next row": moved(1, 1),
    "eight rows further": moved(1, 8),
    "the same chunk every time": at(lambda node: {node.chunks: IndexLiteral(0)}),
    "chunks backwards": at(
        lambda node: {
            node.chunks: IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(3), IndexVariable(node.chunks)))
        }
    ),
    "the other slot": lambda own, _: replace(
        own,
        subscripts=(IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(1), own.subscripts[0])), *own.subscripts[1:]),
    ),
}
CHANGES: dict[str, Change] = {
    **{
        f"{name} of the {side} factor": of_side(side, change)
        for side in ("left", "right")
        for name, change in SIDES.items()
    },
    "the rows of the first group for all": of_side("left", at(lambda node: {node.lanes[2]: IndexLiteral(0)})),
    "rows of each warp": of_side(
        "left",
        lambda own, node: replace(
            own,
            subscripts=(
                own.subscripts[0],
                IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(16), IndexVariable(node.lanes[2]))),
                own.subscripts[2],
            ),
        ),
    ),
    "factors exchanged": lambda node: replace(node, left=node.right, right=node.left),
    "the other type": lambda node: replace(
        node,
        shape=replace(node.shape, operands="bf16"),
        left=replace(node.left, type="bf16"),
        right=replace(node.right, type="bf16"),
    ),
    "fewer columns": lambda node: replace(node, shape=replace(node.shape, n=64)),
    "rows taken for pairs": lambda node: replace(node, rows=node.pair, pair=node.rows),
    "the last chunk left out": lambda node: replace(node, nest=resized(node.nest, node.chunks, 1)),
    "sums of two rows in one place": lambda node: replace(
        node, nest=with_sums(node.nest, lambda own: substituted(own, {node.rows: IndexLiteral(0)}))
    ),
    "sums in another order": lambda node: replace(
        node,
        nest=with_sums(
            node.nest,
            lambda own: substituted(
                own,
                {node.pair: IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(1), IndexVariable(node.pair)))},
            ),
        ),
    ),
}


# What says something else of the same instructions.
UNSEEN: dict[str, Change] = {
    "threads along x taken for those along y": lambda node: replace(
        node, lanes=(node.lanes[1], node.lanes[0], node.lanes[2])
    ),
    "the last columns left out": lambda node: replace(node, nest=resized(node.nest, node.columns or "", 1)),
    "half a piece further": of_side("left", moved(2, 4)),
    "the type of the first factor only": lambda node: replace(node, right=replace(node.right, type="bf16")),
}


@one_in(4)
@pytest.mark.parametrize("name", UNSEEN)
def test_what_is_not_as_it_is_said_is_refused(name: str) -> None:
    assert judged(mistake(name, UNSEEN[name])).refused


@one_in(10)
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("name", CHANGES)
def test_mistakes_are_refused_and_seen(name: str, layout: str) -> None:
    assert judged(mistake(name, CHANGES[name]), layout) == Verdict(refused=True, wrong=True)


def test_a_missing_fence_is_refused_and_seen() -> None:
    verdict = judged(mistake("no fence", lambda node: node, fenced=False))
    assert verdict == Verdict(refused=True, wrong=True)


@pytest.mark.parametrize("steps", every(2, [64, 192]))
def test_sums_that_are_read_before_products_have_ended_are_refused_and_seen(steps: int) -> None:
    """Of one tile, behind which no barrier stands, and of several, where the barrier does not wait for instructions."""
    wrong = mistake("not awaited", lambda node: replace(node, awaited=False), fenced=steps == 64)
    assert judged(wrong, steps=steps) == Verdict(refused=True, wrong=True)


def test_instructions_are_begun_before_copies_and_awaited_behind() -> None:
    f, arrays = product("AB", "float16"), operands("AB", "float16", 64, 64, 256)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 64)), tensor_cores=tc.TensorCores.WARPGROUPS)
    kernel = f.compile(*arrays, target="emulator", options=options)
    names = ("tc_begin_products", "tc_copy_later", "tc_end_products")
    begun, copied, ended = (kernel.source.rindex(f" {name}(team") for name in names)
    assert begun < copied < ended


def judged(made: Mistake, layout: str = "AB'", steps: int = 128) -> Verdict:
    a, b = operands(layout, "float16", 128, 128, steps)
    first, second, term = LAYOUTS[layout]
    text = f"def f(float16{first}, float16{second}) -> (C) {{ C(m,n) +=! {term} }}"
    options = tc.GpuOptions(
        tc.ScheduleOptions(tile=(128, 128, 64)),
        stages=2,
        shared_memory=64 << 10,
        tensor_cores=tc.TensorCores.WARPGROUPS,
    )
    return judge(text, "f", Given({"A": a, "B": b}), options, made)
