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


def test_conditions_are_not_counted() -> None:
    text = "def f(float(N) x) -> (y) { y(i) +=! x(j) where i in 0:N, j in 0:N, j < i + 1 }"
    program = tc.define(text).single().specialize(np.zeros(4, np.float32)).program
    with pytest.raises(ValueError, match="they depend on conditions"):
        operations(program)
    triangle = tc.define("def f(float(N) x) -> (y) { y(i) +=! x(j) * i where i in 0:N, j in 0:i+1 }").single()
    with pytest.raises(ValueError, match="the range of j is not made of numbers"):
        operations(triangle.specialize(np.zeros(4, np.float32)).program)


def test_running_totals_have_one_operation_for_each_element() -> None:
    text = "def f(float(M,N) x) -> (y) { y(m,i) +=! x(m,j) where i in 0:N, j in 0:i+1 }"
    assert operations(tc.define(text).single().specialize((3, 5)).program) == 15
