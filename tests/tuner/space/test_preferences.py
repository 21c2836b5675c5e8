"""What users want of a winner instead of the least time: objectives, constraints, and how much is done to find it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any, Final

import numpy as np
import pytest

import tc
from tc.api.tuning import TuningRequest
from tc.tuner.search.combined import combined_search
from tc.tuner.search.genetic import GeneticParameters
from tc.tuner.session.confirm import Contender
from tc.tuner.session.effort import EFFORTS, effort_of
from tc.tuner.session.final_comparison import DEFAULT, INCUMBENT, winner_of
from tc.tuner.space.preferences import Preferences, TrialRecord
from tc.tuner.space.space import Space
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.trial_outcome import Failed, Measured
from tests.commands.caches import summary
from tests.tuner.landscapes import SPACE

TEXT: Final = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
SHAPES: Final = ((33, 17), (17, 29))
OPTIONS: Final = tc.CpuOptions(threads=3)


def test_records_tell_options_and_times() -> None:
    seen: list[TrialRecord] = []

    def objective(record: TrialRecord) -> float:
        seen.append(record)
        return record.seconds * max(1, record.options.threads)  # type: ignore[union-attr]

    prefer = Preferences(objective)
    assert prefer.priced(OPTIONS, Measured(2.0, (2.0, 3.0))).cost == 6.0
    assert seen == [TrialRecord(OPTIONS, 2.0, (2.0, 3.0))]
    assert prefer.costs(OPTIONS, (1.0, 2.0)) == (3.0, 6.0)
    assert Preferences(constraint=lambda options: options != OPTIONS).priced(OPTIONS, Measured(2.0, (2.0,))).cost == (
        math.inf
    )
    assert Preferences().priced(OPTIONS, Measured(2.0, (2.0,))).cost is None


def boom(_given: object) -> Any:
    raise KeyError("joules")


WRONG: Final[list[tuple[Callable[[], object], str]]] = [
    (lambda: boom, "the objective failed with KeyError: 'joules'; it was given TrialRecord(options=CpuOptions("),
    (lambda: lambda _record: None, "the objective must return a finite number, got None for TrialRecord("),
    (lambda: lambda _record: math.nan, "the objective must return a finite number, got nan for "),
    (lambda: lambda _record: "7", "the objective must return a finite number, got '7' for "),
    (lambda: lambda _record: True, "the objective must return a finite number, got True for "),
]


@pytest.mark.parametrize(("make", "message"), WRONG)
def test_objectives_that_say_nothing_are_errors(make: Callable[[], Any], message: str) -> None:
    with pytest.raises(tc.TuningError, match=f"^{re.escape(message)}"):
        Preferences(make()).priced(OPTIONS, Measured(1.0, (1.0,)))


def test_constraints_that_say_nothing_are_errors() -> None:
    with pytest.raises(tc.TuningError, match=r"^the constraint failed with KeyError: 'joules'; it was given Cpu"):
        Preferences(constraint=boom).allow(OPTIONS)
    neither: Any = lambda _options: None  # noqa: E731
    with pytest.raises(tc.TuningError, match=r"^the constraint must return True or False, got None for CpuOptions\("):
        Preferences(constraint=neither).allow(OPTIONS)
    numpys: Any = lambda options: np.bool_(options.threads == 3)  # noqa: E731
    assert Preferences(constraint=numpys).allow(OPTIONS)


@pytest.mark.parametrize("name", ["objective", "constraint"])
def test_what_cannot_be_called_is_refused_at_once(name: str) -> None:
    wrong: Any = {name: "energy"}
    with pytest.raises(tc.OptionsError, match=rf"^{name} must be a callable that takes .*, or None, got 'energy'$"):
        tc.define(TEXT).tune(*SHAPES, progress=False, **wrong)


def test_no_candidate_breaks_the_constraint() -> None:
    space = Space(SPACE.defaults, SPACE.nest, SPACE.genes, Preferences(constraint=lambda o: o.schedule.unroll >= 8))
    assert isinstance(space.decode(space.encode(tc.CpuOptions())), Failed)
    search = combined_search(space, Random(0))
    for _ in range(4):
        asked = search.ask()
        assert all(candidate.options.schedule.unroll >= 8 for candidate in asked if candidate.number)
        search.tell([Measured(1.0, (1.0,)) for _ in asked])


def test_costs_decide_whatever_their_sign() -> None:
    found = {name: Contender((1.0,) * 6, "") for name in (DEFAULT, INCUMBENT, "7")}
    costs = {DEFAULT: (-1.0,) * 6, INCUMBENT: (-3.0,) * 6, "7": (-2.0,) * 6}
    assert winner_of(found, bitwise=False, costs=costs) == INCUMBENT
    # Less is not worth a change.
    assert winner_of(found, bitwise=False, costs={**costs, "7": (-3.01,) * 6}) == INCUMBENT
    assert winner_of(found, bitwise=False, costs={**costs, "7": (-4.0,) * 6}) == "7"
    # Who is not named may not win.
    assert winner_of(found, bitwise=False, costs={"7": (5.0,) * 6}) == "7"
    assert winner_of(found, bitwise=False, costs={}) is None
    assert winner_of(found, bitwise=False) == DEFAULT


@pytest.fixture
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine allows takes long to measure, and decides nothing here."""
    monkeypatch.setattr("tc.tuner.session.search_setup._bound", lambda _work, _target, _device: None)


@pytest.mark.usefixtures("_quick")
def test_the_winner_is_what_was_wanted_and_what_calls_run(tmp_path: Path) -> None:
    """The more copies the better, be they slow; the default may not win, though it does well."""
    cache = tmp_path / "tuned.db"
    found = tc.define(TEXT).mm.tune(
        *SHAPES,
        start=[tc.CpuOptions(tc.ScheduleOptions(unroll=n), vectorize=False) for n in (2, 16, 4)] + [tc.CpuOptions()],
        objective=lambda record: -record.options.schedule.unroll,
        constraint=lambda options: isinstance(options, tc.CpuOptions) and not options.vectorize,
        budget="4 trials",
        effort="quick",
        cache=cache,
        seed=1,
        jobs=1,
        progress=False,
    )
    assert not found.best.vectorize  # type: ignore[union-attr]
    assert found.best.schedule.unroll == 16
    chosen = summary(cache, "mm").chosen
    assert chosen is not None
    assert chosen.options == found.best.to_json()


@pytest.mark.slow
@pytest.mark.usefixtures("_quick")
def test_nothing_wins_where_nothing_is_allowed(tmp_path: Path) -> None:
    with pytest.raises(tc.TuningError, match=r"^mm: nothing wins, because the constraint allows none of what was meas"):
        tc.define(TEXT).mm.tune(
            *SHAPES, constraint=lambda _o: False, budget="2 trials", cache=tmp_path / "a.db", jobs=1, progress=False
        )


def test_efforts_are_budgets_and_how_much_is_tried() -> None:
    quick, default, thorough = (EFFORTS[name] for name in ("quick", "default", "thorough"))
    for less, more in ((quick, default), (default, thorough)):
        assert less.first < more.first
        assert less.population < more.population
        assert less.repeats < more.repeats
        assert less.rounds < more.rounds
        assert less.seconds < more.seconds
        assert Budget.parse(more.budget).seconds > (Budget.parse(less.budget).seconds or 0)  # type: ignore[operator]
    search = combined_search(SPACE, Random(0), (), GeneticParameters(thorough.population), thorough.first)
    sizes = []
    for _ in range(3):
        asked = search.ask()
        sizes.append(len(asked))
        search.tell([Measured(1.0, (1.0,)) for _ in asked])
    assert sizes == [thorough.first, thorough.population // 2, thorough.population]


def test_a_request_takes_its_budget_from_the_effort_unless_it_says_one() -> None:
    settings = TuningRequest(effort="quick").settings
    assert settings.effort == effort_of("quick")
    assert settings.budget == Budget.parse(effort_of("quick").budget)
    assert settings.seconds == effort_of("quick").seconds
    assert TuningRequest("3 trials", effort="thorough").settings.budget == Budget(trials=3)
    assert TuningRequest().settings.budget == Budget.parse("10m")
    wrong: Any = 3
    for name, message in (("thorouhg", "got 'thorouhg'; did you mean 'thorough'?"), (wrong, "got 3")):
        with pytest.raises(tc.OptionsError, match=re.escape(f"one of quick, default, thorough, {message}")):
            _ = TuningRequest(effort=name).settings
