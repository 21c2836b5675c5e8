"""Roofs are measured until they are stable, whoever else works meanwhile."""

from __future__ import annotations

from random import Random

import pytest

from tc.tuner.roofline.roofline import Bandwidth, Roofs, stable
from tc.tuner.roofline.stable import least


def test_the_least_is_measured_until_nothing_less_comes() -> None:
    measured = iter([5.0, 3.0, 4.0, 2.0, 2.0, 1.999, 2.5, 1.0])
    assert least(lambda: next(measured), 3, 100) == 1.999
    assert list(measured) == [1.0]


def test_a_machine_that_never_rests_is_not_measured_for_ever() -> None:
    measured = iter([1.0 / (1 + n) for n in range(100)])
    assert least(lambda: next(measured), 3, 10) == 1.0 / 10
    assert len(list(measured)) == 90


def roofs(operations: float, read: float = 1.0, launch: float = 0.0) -> Roofs:
    return Roofs(operations, (Bandwidth(1 << 14, read, 0.5),), 1.0, launch)


def test_roofs_are_the_best_of_measurements_until_another_adds_nothing() -> None:
    measured = iter([roofs(5.0, 1.0), roofs(9.0, 0.5), roofs(2.0, 3.0), roofs(9.1, 3.0), roofs(100.0)])
    assert stable(lambda: next(measured), 9) == roofs(9.1, 3.0)
    assert list(measured) == [roofs(100.0)]
    measured = iter([roofs(1.0), roofs(2.0), roofs(4.0), roofs(8.0)])
    assert stable(lambda: next(measured), 3) == roofs(4.0)
    measured = iter([roofs(1.0, launch=2.0), roofs(1.0, launch=1.0), roofs(1.0, launch=1.0), roofs(9.0)])
    assert stable(lambda: next(measured), 9) == roofs(1.0, launch=1.0)


@pytest.mark.parametrize("seed", range(5))
def test_starts_on_a_busy_machine_come_to_the_same_bound(seed: int) -> None:
    """Nine measurements of ten are disturbed, by up to a factor of six: all starts find what the machine can do."""
    random = Random(seed)

    def disturbed() -> float:
        return 1.0 + (5.0 * random.random() if random.random() < 0.9 else 0.01 * random.random())

    def measured() -> Roofs:
        return roofs(1.0 / least(disturbed, 12, 200))

    assert stable(measured, 6).operations >= 1.0 / 1.05
