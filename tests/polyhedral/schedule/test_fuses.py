"""Which statements share loops, where one has many more instances than the other."""

from __future__ import annotations

import re
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.ir.tree import tree_text
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.reference.compare import compare
from tc.targets.options import CpuOptions, Fusion
from tests.polyhedral.support import MACHINE, specialized

SCALE: Final = "s(c) = 1 / sqrt(v(c))"
ROWS: Final = f"def f(float(N,C) X, float(C) v) -> (O) {{ {SCALE}  O(n,c) = X(n,c) * s(c) }}"
CHANNELS: Final = f"def f(float(N,C,H,W) X, float(C) v) -> (O) {{ {SCALE}  O(n,c,h,w) = X(n,c,h,w) * s(c) }}"
SOFTMAX: Final = """
def f(float(N,C) X) -> (O) {
    M(c) max=! X(n,c)
    O(n,c) = exp(X(n,c) - M(c))
}"""
DIAGONAL: Final = "def f(float(N,N) X) -> (D, O) { D(i,j) = 2 * X(i,j)  O(i) = D(i,i) }"
ANTIDIAGONAL: Final = """
def f(float(N,N,N,N) X, float() s) -> (C) {
    C *= s
    D(i,j,k,2*l) = i
    D(i,j,k,2*l+1) = X(i,j,k,l)
    O(i) = D(i,D.1-1-i,i,i) + C
}"""
POOL: Final = """
def f(float(N,C,H,W) G, float(N,C,P,Q) X) -> (D) {
    D(n,c,p,q) = 0 where p in 0:P, q in 0:Q
    D(n,c,2*h+a,2*w+b) += G(n,c,h,w) where a in 0:2, b in 0:2, exists X(n,c,2*h+a,2*w+b)
}"""
PHASES: Final = """
def f(float(N,C) X, float(C) v) -> (Z) {
    A(n,c) +=! X(n,k) * v(c) where k in 0:2
    B(n,c) = X(n,c) + v(c)
    Y(n,2*c) = A(n,c) where n in 0:N, c in 0:C
    Y(n,2*c+1) = B(n,c) where n in 0:N, c in 0:C
    Z(n,c) = 2 * Y(n,c)
}"""
HALF_ROWS: Final = """
def f(float(N,C) X, float(N,C) V) -> (Z) {
    Y(2*n,c) = X(n,c) where n in 0:N, c in 0:C
    Y(2*n+1,c) = V(n,c) where n in 0:N, c in 0:C
    Z(n,c) = 2 * Y(n,c)
}"""
PATHS: Final = "def f(float(N,N) w) -> (d) { d(i,j) = w(i,j) for k in 0:N { d(i,j) min= d(i,k) + d(k,j) } }"


def nests(text: str, *shapes: tuple[int, ...]) -> list[str]:
    """The branches of the schedule's outermost sequence; none where all statements share loops."""
    with isl_context() as context:
        tree = schedule_scop(build_scop(specialized(text, shapes), context), Fusion.PRESERVE_PARALLEL)
        return re.findall(r"^    filter (.*)", tree_text(tree), re.MULTILINE)


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (ROWS, ((70, 40), (40,)), ["S0", "S1"]),
        (ROWS, ((60, 40), (40,)), []),  # about as many
        (CHANNELS, ((3, 5, 9, 9), (5,)), []),  # its rows are inside
        (SOFTMAX, ((70, 40),), []),  # the maxima are over as many instances
    ],
    ids=["rows", "few rows", "channels", "softmax"],
)
def test_few_instances_do_not_send_many_across_memory(
    text: str, shapes: tuple[tuple[int, ...], ...], expected: list[str]
) -> None:
    assert nests(text, *shapes) == expected


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (DIAGONAL, ((9, 9),), ["S0", "S1"]),  # not along diagonals of D
        (POOL, ((2, 3, 4, 5), (2, 3, 8, 10)), []),  # along rows and columns of D
    ],
    ids=["diagonal", "pool"],
)
def test_sums_of_iterators_are_loops_where_they_are_dimensions(
    text: str, shapes: tuple[tuple[int, ...], ...], expected: list[str]
) -> None:
    assert nests(text, *shapes) == expected


def test_loops_do_not_leave_every_second_iteration_out() -> None:
    """Phases of a transposed convolution, and what follows them: A is read along memory, and so is B."""
    every = nests(PHASES, (9, 40), (40,))
    assert [branch for branch in every if "S4" in branch] == ["S4"], every
    assert nests(HALF_ROWS, (9, 40), (9, 40)) == []  # rows may be left out


def test_loops_along_an_antidiagonal_are_proven() -> None:
    """Of loops that the two shared, isl ran some in the wrong order, and the proof refused them."""
    mapped = map_program(specialized(ANTIDIAGONAL, ((4, 4, 4, 4), ())), CpuOptions(), MACHINE)
    assert mapped.stage("verify code").text


def test_shortest_paths_go_along_rows_and_have_no_tile_for_one_term() -> None:
    mapped = map_program(specialized(PATHS, ((130, 130),)), CpuOptions(), MACHINE)
    text = mapped.stage("generate").text
    assert "register" not in text
    assert re.search(r"sequential c\d+ = .*\n +vector (c\d+) = 0 \.\. 129\n +S3\(c0, .*, \1\)", text), text


@pytest.mark.parametrize("size", [1, 7, 66])
def test_results_are_those_of_the_oracle(size: int) -> None:
    rng = np.random.default_rng(size)
    for text, shapes, result in (
        (PATHS, ((size, size),), "d"),
        (ROWS, ((65 * size, size), (size,)), "O"),
        (PHASES, ((size, size + 1), (size + 1,)), "Z"),
        (HALF_ROWS, ((size, size), (size, size)), "Z"),
    ):
        arrays = [(rng.random(shape) + 0.5).astype(np.float32) for shape in shapes]
        f = tc.define(text).single()
        assert compare(f.oracle(*arrays)[result], np.asarray(f(*arrays))).ok
