"""Budgets are read from text, and spent by an injected clock."""

from __future__ import annotations

import pytest

from tc.base.errors import OptionsError
from tc.tuner.trial.budget import Budget


@pytest.mark.parametrize(
    ("text", "budget", "printed"),
    [
        ("8h", Budget(seconds=28800), "8h"),
        ("10m", Budget(seconds=600), "10m"),
        ("90s", Budget(seconds=90), "1m30s"),
        ("1h30m", Budget(seconds=5400), "1h30m"),
        ("1h 30m 2.5s", Budget(seconds=5402.5), "1h30m2.5s"),
        ("0.5h", Budget(seconds=1800), "30m"),
        ("1d", Budget(seconds=86400), "1d"),
        ("1 day 2 hours", Budget(seconds=93600), "1d2h"),
        ("10min", Budget(seconds=600), "10m"),
        ("1 hr 5 mins", Budget(seconds=3900), "1h5m"),
        ("90 sec", Budget(seconds=90), "1m30s"),
        ("2W", Budget(seconds=1209600), "14d"),
        (".5h", Budget(seconds=1800), "30m"),
        ("200 trials", Budget(trials=200), "200 trials"),
        ("1 trial", Budget(trials=1), "1 trial"),
        ("30 generations", Budget(generations=30), "30 generations"),
        ("10m, 200 trials, 1 generation", Budget(600, 200, 1), "10m, 200 trials, 1 generation"),
    ],
)
def test_budgets_are_read_and_written(text: str, budget: Budget, printed: str) -> None:
    assert Budget.parse(text) == budget
    assert str(budget) == printed
    assert Budget.parse(printed) == budget


@pytest.mark.parametrize(
    "text",
    [
        *("", "soon", "8", "8 moons", "10m 200 trials", "-5s", "0s", "0 trials", "1.5 trials", "1.2.3s", "30m1h"),
        *("5s, 6s", "3 trials, 4 trials", "1h,", "."),
    ],
)
def test_other_texts_are_refused_with_what_is_allowed(text: str) -> None:
    with pytest.raises(OptionsError, match=r"write a time as '8h', '1h30m' or '90s', a number as '200 trials'"):
        Budget.parse(text)


@pytest.mark.parametrize(("seconds", "trials"), [(None, None), (-1.0, None), (None, 0), (1.0, -1)])
def test_a_budget_has_positive_limits(seconds: float | None, trials: int | None) -> None:
    with pytest.raises(OptionsError, match="a budget needs a limit, and only positive ones"):
        Budget(seconds, trials)


def test_a_budget_is_spent() -> None:
    now = [100.0]
    allowance = Budget(seconds=10, trials=5, generations=2).start(lambda: now[0])
    assert allowance.allows(trials=0, generations=0)
    assert allowance.allows(trials=4, generations=1)
    assert not allowance.allows(trials=5, generations=1)
    assert not allowance.allows(trials=4, generations=2)
    assert (allowance.seconds_left(), allowance.trials_left(3), allowance.trials_left(9)) == (10, 2, 0)
    now[0] = 109.5
    assert allowance.allows(trials=0, generations=0)
    assert (allowance.spent(), allowance.seconds_left()) == (9.5, 0.5)
    now[0] = 110.0
    assert not allowance.allows(trials=0, generations=0)
    now[0] = 200.0
    assert allowance.seconds_left() == 0


def test_how_far_it_is_spent() -> None:
    now = [100.0]
    timed = Budget(seconds=100).start(lambda: now[0]).keeping(20)
    now[0] = 130.0
    assert timed.share(trials=7, generations=0) == 0.3
    assert timed.expected(trials=7, generations=0, busy=3.0) == 70.0
    now[0] = 250.0
    assert (timed.share(trials=7, generations=0), timed.expected(trials=7, generations=0, busy=3.0)) == (1.0, 0.0)
    counted = Budget(trials=40, generations=5).start(lambda: now[0])
    assert (counted.share(trials=0, generations=0), counted.expected(trials=0, generations=0, busy=9.0)) == (0.0, None)
    # At the pace of this search, whatever others do meanwhile.
    assert (counted.share(trials=10, generations=0), counted.expected(trials=10, generations=0, busy=6.0)) == (0.25, 18)
    assert counted.share(trials=10, generations=4) == 0.8
    both = Budget(seconds=100, trials=10).start(lambda: now[0])
    assert both.expected(trials=5, generations=0, busy=30.0) == 30.0
    assert both.expected(trials=1, generations=0, busy=30.0) == 100.0


def test_what_is_not_limited_goes_on() -> None:
    allowance = Budget(trials=3).start(lambda: 0.0)
    assert allowance.allows(trials=2, generations=1000)
    assert allowance.seconds_left() is None
    assert Budget(seconds=1).start(lambda: 0.0).trials_left(1000) is None


@pytest.mark.parametrize(
    ("spent", "wanted", "covers"),
    [
        ("20s", "1s", True),
        ("1s", "20s", False),
        ("20s", "20s", True),
        ("200 trials", "100 trials", True),
        ("200 trials", "20s", False),
        ("20s", "20s, 10 trials", True),
        ("20s, 10 trials", "20s", False),
        ("2 generations", "3 generations", False),
    ],
)
def test_a_search_goes_as_far_as_every_one_that_ends_before(spent: str, wanted: str, covers: bool) -> None:
    assert Budget.parse(spent).covers(Budget.parse(wanted)) is covers
