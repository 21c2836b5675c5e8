"""Mistakes in matrix instructions: the proof refuses them, and the emulator computes something else."""

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
    BLOCK,
    ELEMENT,
    REGISTER,
    Allocation,
    Block,
    Fragment,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Lay,
    Leaf,
    Loop,
    LoopTree,
    Mma,
)
from tests.mutants.judge import Given, Verdict, judge
from tests.mutants.mistakes import Mistake
from tests.polyhedral.gpu.tensor.products import LAYOUTS, SMALL, operands
from tests.turns import every, one_in

Change: TypeAlias = "Callable[[Mma], Mma]"


def changed(tree: LoopTree, change: Change) -> LoopTree:
    match tree:
        case Mma():
            return change(tree)
        case Leaf():
            return tree
        case Block(children):
            return Block(tuple(changed(child, change) for child in children))
        case Guard(condition, then, otherwise):
            return Guard(condition, changed(then, change), otherwise and changed(otherwise, change))
        case Loop() | Allocation():
            return replace(tree, body=changed(tree.body, change))
        case _:
            assert_never(tree)


def mistake(name: str, change: Change) -> Mistake:
    @contextmanager
    def made() -> Iterator[None]:
        def wrong(*arguments: object, **more: object) -> LoopTree:
            return changed(matrix_instructions(*arguments, **more), change)  # type: ignore[arg-type]

        with patch("tc.polyhedral.passes.matrix_instructions", wrong):
            yield

    return Mistake(name, made)


def plus(value: IndexExpression, number: int) -> IndexExpression:
    return IndexOperation(IndexOperator.ADD, (value, IndexLiteral(number)))


def less(number: int, value: IndexExpression) -> IndexExpression:
    return IndexOperation(IndexOperator.SUBTRACT, (IndexLiteral(number), value))


def of_side(side: str, change: Callable[[Fragment, Mma], Fragment]) -> Change:
    def of(node: Mma) -> Mma:
        own = change(node.left if side == "left" else node.right, node)
        return replace(node, left=own) if side == "left" else replace(node, right=own)

    return of


def exchanged(name: str, by: Callable[[Mma], IndexExpression]) -> Callable[[Fragment, Mma], Fragment]:
    """What a register holds is that of another lane, another register or another half."""

    def change(own: Fragment, node: Mma) -> Fragment:
        values = {{"x": node.lanes[0], "y": node.lanes[1]}.get(name, name): by(node)}
        return replace(own, subscripts=tuple(substituted(subscript, values) for subscript in own.subscripts))

    return change


def shifted(dimension: int) -> Callable[[Fragment, Mma], Fragment]:
    def change(own: Fragment, _node: Mma) -> Fragment:
        subscripts = [plus(s, 1) if n == dimension else s for n, s in enumerate(own.subscripts)]
        return replace(own, subscripts=tuple(subscripts))

    return change


def turned(own: Fragment, _node: Mma) -> Fragment:
    return replace(own, lay=Lay.COLUMNS if own.lay is Lay.ROWS else Lay.ROWS)


def resized(nest: LoopTree, iterator: str, by: int) -> Loop:
    """The nest in which a loop has so many iterations less."""
    assert isinstance(nest, Loop)
    body = resized(nest.body, iterator, by) if isinstance(nest.body, Loop) else nest.body
    if nest.iterator != iterator:
        return replace(nest, body=body)
    assert isinstance(nest.upper, IndexLiteral)
    return replace(nest, body=body, upper=IndexLiteral(nest.upper.value - by))


CHANGES: dict[str, Change] = {
    **{
        f"{name} of the {side} factor": of_side(side, change)
        for side in ("left", "right")
        for name, change in {
            "halves exchanged": exchanged(ELEMENT, lambda _: less(1, IndexVariable(ELEMENT))),
            "lanes of a quad turned": exchanged("x", lambda node: less(3, IndexVariable(node.lanes[0]))),
            "another register": exchanged(REGISTER, lambda _: less(1, IndexVariable(REGISTER))),
            "another block": exchanged(BLOCK, lambda _: IndexLiteral(0)),
            "the next step": shifted(2),
            "the next row": shifted(1),
            "rows taken for columns": turned,
        }.items()
    },
    "rows of the left factor of another lane": of_side("left", exchanged("y", lambda node: IndexLiteral(0))),
    "columns of the right factor turned": of_side(
        "right", exchanged("y", lambda node: less(15, IndexVariable(node.lanes[1])))
    ),
    "factors exchanged": lambda node: replace(node, left=node.right, right=node.left),
    "the other type": lambda node: replace(node, shape=replace(node.shape, operands="bf16")),
    "pairs taken for columns": lambda node: replace(node, pair=node.columns or "", columns=node.pair),
    "rows taken for pairs": lambda node: replace(node, pair=node.rows, rows=node.pair),
    "threads along x taken for those along y": lambda node: replace(node, lanes=node.lanes[::-1]),
    "the last rows left out": lambda node: replace(node, nest=resized(node.nest, node.rows, 2)),
    "the last columns left out": lambda node: replace(node, nest=resized(node.nest, node.columns or "", 1)),
}


# Those of sizes that tiles do not divide.
AT_BORDERS: dict[str, Change] = {
    "a step too many": lambda node: replace(node, limit=node.limit and plus(node.limit, 1)),
    "a step too few": lambda node: replace(node, limit=node.limit and plus(node.limit, -1)),
    "all steps": lambda node: replace(node, limit=None),
    "sums of two rows in one place": lambda node: replace(
        node, nest=with_arguments(node.nest, lambda own: substituted(own, {node.rows: IndexLiteral(0)}))
    ),
}


def with_arguments(nest: Loop | Guard, change: Callable[[IndexExpression], IndexExpression]) -> Loop | Guard:
    """The nest whose instance has other subscripts of its sum."""

    def inside(tree: LoopTree) -> LoopTree:
        match tree:
            case Loop(body=body):
                return replace(tree, body=inside(body))
            case Guard(then=then):
                return replace(tree, then=inside(then))
            case Instance(arguments=arguments):
                own = (change(a) if 3 <= n < 5 else a for n, a in enumerate(arguments))
                return replace(tree, arguments=tuple(own))
            case _:
                raise AssertionError(tree)

    found = inside(nest)
    assert isinstance(found, Loop | Guard)
    return found


@one_in(3)
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("name", AT_BORDERS)
def test_mistakes_at_borders_are_refused_and_seen(name: str, layout: str) -> None:
    check(layout, (70, 66, 55), mistake(name, AT_BORDERS[name]))


@one_in(3)
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("name", CHANGES)
def test_mistakes_are_refused_and_seen(name: str, layout: str) -> None:
    check(layout, (64, 64, 64), mistake(name, CHANGES[name]))


def check(layout: str, sizes: tuple[int, int, int], made: Mistake) -> None:
    a, b = operands(layout, "float16", *sizes)
    first, second, term = LAYOUTS[layout]
    text = f"def f(float16{first}, float16{second}) -> (C) {{ C(m,n) +=! {term} }}"
    options = replace(SMALL, schedule=tc.ScheduleOptions(tile=(64, 32, 32)), block=(4, 16))
    verdict = judge(text, "f", Given({"A": a, "B": b}), options, made)
    assert verdict == Verdict(refused=True, wrong=True)
