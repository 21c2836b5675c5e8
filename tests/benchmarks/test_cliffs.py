"""Sizes at which kernels are much slower than beside them."""

from __future__ import annotations

import math
import random

import pytest

from benchmarks.__main__ import UsageError, main
from benchmarks.cliffs import HEADER, MOST_RATIO, OPERATORS, Found, Point, draw, line, measure_point, steepest
from benchmarks.problems.cases import case_called
from tc.tuner.roofline.roofline import Bandwidth, Roofs

ROOFS = Roofs(1e11, (Bandwidth(1 << 20, 1e10, 1e10),), 1e9, 0.0)


def test_sizes_are_drawn_around_those_of_the_case() -> None:
    for name in OPERATORS:
        case, generator = case_called(name), random.Random(0)
        for _ in range(20):
            sizes = draw(case, generator)
            assert set(sizes) == set(case.sizes)
            assert math.prod(sizes.values()) <= 2 * math.prod(case.sizes.values())
            assert all(sizes[own] == size for own, size in case.sizes.items() if size < 8)


def test_a_point_is_measured_beside_what_the_machine_needs() -> None:
    found = measure_point(case_called("matmul_left"), {"M": 5, "K": 7, "N": 9}, ROOFS, calls=2)
    assert found.seconds > 0
    assert found.bound > 0
    assert found.cost > 0


def points(slow: int) -> list[Point]:
    return [Point({"N": size}, (50e-6 if size == slow else 10e-6) * size, 1e-6 * size) for size in range(10, 60)]


def test_the_steepest_cliff_is_the_one_that_costs_the_most_beside_its_neighbours() -> None:
    found = steepest("matmul", points(32))
    assert found.worst.sizes == {"N": 32}
    assert found.ratio == pytest.approx(5, rel=0.1)
    assert line(found).split()[-1] == "N=32"
    assert steepest("matmul", points(0)).ratio < 1.2


def test_the_command_names_cliffs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    found = [steepest("matmul", points(32)), steepest("gelu", points(0))]

    def measured(names: tuple[str, ...], shapes: int, seed: int) -> list[Found]:
        assert (names, shapes, seed) == (OPERATORS, 300, 0)
        return found

    monkeypatch.setattr("benchmarks.cliffs.measure_operators", measured)
    with pytest.raises(SystemExit, match=rf"^more than {MOST_RATIO:g} times what is beside: matmul at N=32$"):
        main(["cliffs"])
    assert capsys.readouterr().out.splitlines() == [HEADER, *map(line, found)]


@pytest.mark.parametrize("arguments", [["--shapes", "1"], ["--kernels", "matmul"]])
def test_what_cannot_be_measured_is_refused(arguments: list[str]) -> None:
    with pytest.raises(SystemExit):
        main(["cliffs", *arguments])
    assert issubclass(UsageError, Exception)
