"""Clamped subscripts on processors: lanes read rows wherever no clamp acts, and borders are as the definition says."""

from __future__ import annotations

import re
from random import Random
from typing import Final

import numpy as np
import pytest

import tc
from tc.polyhedral.analysis.ranges import Range, ranges_where
from tc.polyhedral.ir.loops import IndexExpression, IndexLiteral, IndexOperation, IndexOperator, IndexVariable
from tc.polyhedral.pipeline import map_program
from tc.reference.compare import compare
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import every, one_in

STEPS: Final = """
def heat(float(N) u0, float(T) f) -> (u) {
    u(0,i) = u0(i)
    for t in 0:T { u(t+1,i) = 0.5 * u(t,i) + 0.25 * u(t,max(i-1,0)) + 0.25 * u(t,min(i+1,N-1)) + f(t) }
}"""
ROWS: Final = """
def rows(float(H,W) x) -> (y) { y(i,j) = x(max(i-1,0),j) + x(i,max(j-1,0)) + x(i,min(j+1,W-1)) }"""
PRODUCT: Final = """
def product(float(H,W) x, float(K,L) w) -> (y) {
    y(i,j) +=! x(max(0,min(i+k-2,H-1)), max(0,min(j+l-2,W-1))) * w(k,l) where i in 0:H, j in 0:W
}"""
REVERSED: Final = "def reversed(float(N) x) -> (y) { y(i) = x(max(N-i-3,0)) + x(min(2*i,N-1)) where i in 0:N }"
SUM: Final = "def total(float(M,N) x) -> (y) { y(i) +=! x(i,max(j-2,0)) where j in 0:N }"
CHOSEN: Final = "def chosen(float(N) x) -> (y) { y(i) = x(i > 0 ? i - 1 : i) where i in 0:N }"

CASES: Final = (
    (STEPS, ((77,), (5,))),
    (STEPS, ((1,), (3,))),
    (STEPS, ((2,), (3,))),
    (ROWS, ((67, 131),)),
    (ROWS, ((1, 1),)),
    (ROWS, ((3, 5000),)),
    (PRODUCT, ((67, 131), (5, 5))),
    (PRODUCT, ((3, 4), (5, 7))),
    (REVERSED, ((101,),)),
    (REVERSED, ((2,),)),
    (SUM, ((5, 33),)),
    (SUM, ((70, 1000),)),
    (CHOSEN, ((65,),)),
)


def source(text: str, *shapes: tuple[int, ...], options: tc.CpuOptions | None = None) -> str:
    kernel = tc.define(text).single().compile(*shapes, target="cpu:x86-64-v4", options=options or tc.CpuOptions())
    return kernel.source[kernel.source.index("static __attribute__((noinline))") :]


@one_in(3)
@pytest.mark.parametrize(("text", "shapes"), CASES)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
def test_values_at_borders(text: str, shapes: tuple[tuple[int, ...], ...], target: str) -> None:
    random = np.random.default_rng(7)
    arrays = [random.standard_normal(shape).astype(np.float32) for shape in shapes]
    definition = tc.define(text).single()
    found = definition(*arrays, target=target)
    (bound,) = definition.oracle(*arrays).values()
    assert compare(bound, np.asarray(found)).ok


@pytest.mark.parametrize(("text", "shapes"), CASES)
def test_every_pass_is_proven(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    map_program(specialized(text, shapes), tc.CpuOptions(), MACHINE, verify_every_pass=True)


def test_rows_are_split_where_clamps_begin_and_end() -> None:
    text = source(STEPS, (77,), (5,))
    found = [(int(m[1]), int(m[2])) for m in re.finditer(r"c1 = (\d+); c1 < (\d+);", text)]
    assert found == [(0, 1), (1, 76), (76, 77)]
    assert "tc_max" not in text
    assert "tc_min" not in text


def test_tiles_inside_have_a_case_of_their_own() -> None:
    text = source(PRODUCT, (517, 1003), (5, 5))
    assert re.search(r"if \(c\d >= 1 && c\d <= \d+ && c\d >= 1 && c\d <= \d+\)", text)
    inside, outside = text.split("else", 1)
    assert "tc_max" not in inside[inside.index("if (") :]
    assert "tc_max" in outside


def test_long_texts_are_not_doubled() -> None:
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(16, 32), unroll=1024), vectorize=False)
    few = source(ROWS, (70, 131), options=tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(4, 32), unroll=32)))
    assert "if (" in few
    assert len(re.findall("// S0", source(ROWS, (64, 128), options=options))) <= 600


def test_clamps_that_rows_share_are_left() -> None:
    text = source("def f(float(H,W) x) -> (y) { y(i,j) = 2 * x(max(i-1,0),j) where i in 0:H }", (67, 131))
    assert "if (" not in text
    assert "tc_max" in text


def test_sums_stay_in_one_loop() -> None:
    text = source(SUM, (1, 33))
    assert len(re.findall("for ", text)) <= 2


@pytest.mark.parametrize("text", [ROWS, CHOSEN])
def test_proven_subscripts_are_not_checked(text: str) -> None:
    shapes = ((67, 131),) if text == ROWS else ((65,),)
    for target in ("cpu:x86-64-v4", "cuda:sm_90"):
        kernel = tc.define(text).single().compile(*shapes, target=target)
        assert "tc_checked_index(" not in kernel.source[kernel.source.index("// S0\n") :]


def _random(random: Random) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """A stencil of clamped reads in one or two dimensions."""
    names = ("i", "j")[: random.choice((1, 2))]
    extents = ("H", "W")[: len(names)]

    def subscript(name: str, extent: str) -> str:
        moved = random.choice(
            (f"{name} - {random.randint(0, 4)}", f"{name} + {random.randint(0, 4)}", f"{extent}-1-{name}")
        )
        least, most = f"max({moved}, 0)", f"min({moved}, {extent} - 1)"
        return random.choice((f"max({most}, 0)", f"min({least}, {extent} - 1)", f"min(max(0, {moved}), {extent}-1)"))

    def read() -> str:
        return f"x({', '.join(map(subscript, names, extents))})"

    ranges = ", ".join(f"{name} in 0:{extent}" for name, extent in zip(names, extents, strict=True))
    value = " + ".join(read() for _ in range(random.randint(1, 3)))
    text = f"def f(float({', '.join(extents)}) x) -> (y) {{ y({', '.join(names)}) = {value} where {ranges} }}"
    return text, (tuple(random.choice((1, 2, 7, 33, 64, 131)) for _ in names),)


@pytest.mark.parametrize("seed", every(5, range(60)))
def test_random_stencils(seed: int) -> None:
    random = Random(seed)
    text, shapes = _random(random)
    tile = tuple(random.choice((1, 4, 7, 32)) for _ in shapes[0]) if min(shapes[0]) > 1 else None
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(tile=tile, unroll=random.choice((1, 4))))
    x = np.random.default_rng(seed).standard_normal(shapes[0]).astype(np.float32)
    definition = tc.define(text).single()
    assert compare(definition.oracle(x)["y"], np.asarray(definition(x, options=options))).ok


def test_conditions_narrow_ranges() -> None:
    x, y = IndexVariable("x"), IndexVariable("y")

    def holds(operator: IndexOperator, variable: IndexExpression, value: int) -> IndexExpression:
        return IndexOperation(operator, (variable, IndexLiteral(value)))

    known = {"x": Range(0, 9)}
    both = IndexOperation(
        IndexOperator.AND, (holds(IndexOperator.GREATER_EQUAL, x, 2), holds(IndexOperator.LESS_EQUAL, x, 20))
    )
    assert ranges_where(both, known) == {"x": Range(2, 9)}
    assert ranges_where(holds(IndexOperator.LESS_EQUAL, y, 3), known)["y"].most == 3
    other = IndexOperation(IndexOperator.LESS_EQUAL, (x, y))
    assert ranges_where(other, known) is known
