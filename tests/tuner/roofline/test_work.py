"""What cases ask of a machine, against counts by hand."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from benchmarks.problems.cases import GCONV, LUT1, MLP3, SOFTMAX, TMM
from benchmarks.problems.problem import Problem, Sizes
from tc.tuner.roofline.roofline import Work
from tc.tuner.roofline.work import operations, work

COUNTS: list[tuple[Problem, Sizes, int]] = [
    (TMM, {"M": 7, "K": 5, "N": 3}, 2 * 7 * 5 * 3),
    (
        GCONV,
        {"N": 2, "G": 3, "F": 4, "C": 5, "H": 7, "W": 6, "KH": 3, "KW": 3},
        2 * 3 * 4 * (7 - 2) * (6 - 2) * (2 * 5 * 3 * 3 + 1),
    ),
    (MLP3, {"B": 2, "N": 3, "O": 5, "P": 7, "Q": 11}, 2 * (5 * (6 + 2) + 7 * (10 + 2) + 11 * (14 + 2))),
    (SOFTMAX, {"N": 3, "D": 7}, 3 * 7 * (1 + 2 + 1 + 1)),
]


@pytest.mark.parametrize(("problem", "sizes", "count"), COUNTS, ids=lambda value: getattr(value, "name", ""))
def test_operations(problem: Problem, sizes: Sizes, count: int) -> None:
    arguments = problem.arguments(sizes)
    assert operations(problem.comprehension.specialize(*arguments.values()).program) == count


def test_arguments_and_results_are_moved_once() -> None:
    arguments = TMM.arguments({"M": 7, "K": 5, "N": 3})
    found = work(TMM.comprehension.specialize(*arguments.values()), arguments, {})
    assert found == Work(2 * 7 * 5 * 3, 4 * (7 * 5 + 3 * 5), 4 * 7 * 3)
    assert found.moved == 4 * (35 + 15 + 21)


def test_of_gathered_arguments_the_chosen_rows_are_moved() -> None:
    arguments = LUT1.arguments({"E": 100, "D": 3, "B": 2, "K": 2})
    arguments["I"][...] = [[5, 9], [9, 5]]
    found = work(LUT1.comprehension.specialize(*arguments.values()), arguments, LUT1.indices)
    assert found.read == 2 * 3 * 4 + 4 * 4
    assert found.operations == 2 * 3 * 2


# Texts of `f(float(N) x)`, and how many operations there are for four elements.
CONDITIONS: list[tuple[str, int]] = [
    ("y(i) +=! x(j) where i in 0:N, j in 0:N, j < i + 1", 4 + 3 + 2 + 1),
    ("y(i) +=! x(j) * i where i in 0:N, j in 0:i+1", 2 * (4 + 3 + 2 + 1)),
    ("y(i) +=! x(j) * x(k) where i in 0:N, j in 0:i+1, k in j:i+1", 2 * (1 + 3 + 6 + 10)),
    ("y(i) +=! x(i+j-1) where i in 0:N, j in 0:3, i + j >= 1, i + j <= N", 3 + 3 + 2 + 2),
    ("y(i) +=! x(j) where i in 0:N, j in 0:N, j % 2 == 1 || j - i == 2", 4 * 2 + 1),
    ("y(i) +=! x(j) where i in 0:N, j in 0:N, !(j / 2 != 1), -j < -2", 4),
    ("y(i) +=! x(j) where i in 0:N, j in 0:N, j > 9", 0),
]


@pytest.mark.parametrize(("text", "count"), CONDITIONS)
def test_conditions_leave_instances_out(text: str, count: int) -> None:
    program = tc.define(f"def f(float(N) x) -> (y) {{ {text} }}").single().specialize(np.zeros(4, np.float32)).program
    assert operations(program) == count


def test_what_data_decide_is_not_counted() -> None:
    text = "def f(float(N) x, int32(M) s) -> (y) { y(i) +=! x(j) where i in 0:M-1, j in s(i):s(i+1) }"
    program = tc.define(text).single().specialize(np.zeros(4, np.float32), np.zeros(3, np.int32)).program
    with pytest.raises(ValueError, match="data say what its ranges are"):
        operations(program)


def test_conditions_in_too_many_points_are_not_counted() -> None:
    text = "def f(float(M,N) x) -> (y) { y(i) +=! x(i,j) where i in 0:M, j in 0:N, i != j }"
    program = tc.define(text).single().specialize((1 << 15, 1 << 14)).program
    with pytest.raises(ValueError, match="there are too many values of i, j to try"):
        operations(program)


def test_running_totals_have_one_operation_for_each_element() -> None:
    text = "def f(float(M,N) x) -> (y) { y(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1 }"
    assert operations(tc.define(text).single().specialize((3, 5)).program) == 15
