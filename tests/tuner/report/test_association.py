"""What options explain of the times: nothing, everything, and what chance explains too."""

from __future__ import annotations

import math
from random import Random

import pytest

from tc.tuner.report.association import association, associations


def test_an_option_that_decides_explains_everything() -> None:
    found = association("tile", [1e-3, 2e-3, 1e-3, 2e-3], ["8", "16", "8", "16"])
    assert found is not None
    assert found.share == pytest.approx(1.0)
    assert found.adjusted == pytest.approx(1.0)
    assert found.groups == {"8": (1e-3, 1e-3), "16": (2e-3, 2e-3)}


def test_an_option_that_does_not_matter_explains_nothing() -> None:
    found = association("tile", [1e-3, 2e-3, 1e-3, 2e-3], ["8", "8", "16", "16"])
    assert found is not None
    assert found.share == pytest.approx(0.0, abs=1e-12)
    assert found.adjusted == 0.0


def test_the_share_is_that_of_the_variance_between_groups() -> None:
    logarithms, values = [0.0, 2.0, 3.0, 5.0], ["a", "a", "b", "b"]
    found = association("tile", [math.exp(one) for one in logarithms], values)
    # Around their mean 2.5 they scatter by 13, around the means 1 and 4 of their groups by 4.
    assert found is not None
    assert found.share == pytest.approx(1 - 4 / 13)
    assert found.adjusted == pytest.approx(1 - 4 / 13 * 3 / 2)


@pytest.mark.parametrize(
    ("seconds", "values"),
    [
        ([1.0, 2.0, 3.0], ["8", "8", "8"]),
        ([1.0, 2.0, 3.0], ["8", "16", "32"]),
        ([1.0, 2.0, 3.0], ["8", "8", "16"]),
        ([2.0, 2.0, 2.0, 2.0], ["8", "8", "16", "16"]),
        ([], []),
        ([1.0], ["8"]),
    ],
    ids=["one value", "all distinct", "almost all distinct", "all as quick", "nothing", "one trial"],
)
def test_what_cannot_be_told_is_left_out(seconds: list[float], values: list[str]) -> None:
    assert association("tile", seconds, values) is None


def test_many_values_explain_nothing_by_chance() -> None:
    random = Random(1)
    shares, adjusted = [], []
    for _ in range(200):
        seconds = [math.exp(random.gauss(0, 1)) for _ in range(60)]
        found = association("tile", seconds, [str(random.randrange(20)) for _ in seconds])
        assert found is not None
        shares.append(found.share)
        adjusted.append(found.adjusted)
    assert sum(shares) / len(shares) > 0.25
    assert sum(adjusted) / len(adjusted) < 0.06


def test_the_strongest_comes_first() -> None:
    seconds = [1.0, 1.1, 2.0, 2.1, 1.0, 2.0]
    columns = {
        "noise": ["x", "y", "x", "y", "y", "x"],
        "tile": ["8", "8", "16", "16", "8", "16"],
        "same": ["1"] * 6,
    }
    assert [one.option for one in associations(seconds, columns)] == ["tile", "noise"]
