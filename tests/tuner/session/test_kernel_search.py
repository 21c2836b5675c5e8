"""Whole searches: what wins is right, what goes wrong is counted, and a search goes on where it stopped."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pytest

import tc
from tc.artifact.definition import Parsed
from tc.artifact.packing import options_from_text, options_text, pack, unpack
from tc.base.environment import environment
from tc.cache.content.configured import Configuration, Mode
from tc.cache.format.tables import RUNS, TRIALS
from tc.store.cached import KernelCache
from tc.store.wanted import Wanted
from tc.targets.options import CpuOptions
from tc.tuner.roofline.bound import Bound
from tc.tuner.session.confirm import Contender
from tc.tuner.session.effort import DEFAULT
from tc.tuner.session.progress_events import Decided, Event, Generation, Started
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.settings import Numerics, Strategy, TuningResult
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.deadline import Deadline
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.task import parse_task
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured
from tc.tuner.trial.workers import LocalWorkers, Packed
from tests.commands.caches import contents
from tests.tuner import trial_support as trial
from tests.tuner.session.searches import SETTINGS, Watched, begun, patient, records, search
from tests.turns import every


class Steady(Watched):
    """Every call of every candidate takes as long."""

    SECONDS: Final = 1e-3

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        return Timed((self.SECONDS,) * 5, 1.0, 1.0)


@pytest.fixture(scope="module")
def pool() -> Iterator[LocalWorkers]:
    """One set of workers for all searches: starting its processes takes longer than many of them."""
    with trial.workers() as workers:
        yield workers


def test_a_search_keeps_its_winner_and_all_trials(pool: LocalWorkers, tmp_path: Path) -> None:
    events: list[Event] = []
    workers = Watched(pool)
    result = search(workers, tmp_path / "cache.db", listen=events.append)
    assert len(result.trials) == 12
    assert result.trials[0].candidate.options == CpuOptions()
    assert result.stopped == "the budget is spent"
    assert result.interval[0] <= result.seconds <= result.interval[1]
    assert result.speedup == result.default / result.seconds
    kept = records(tmp_path / "cache.db")
    winner = kept.incumbent()
    assert winner is not None
    assert winner.options == options_text(result.best)
    assert winner.numerics == result.numerics
    known = kept.known()
    assert {options_text(t.candidate.options): t.outcome for t in result.trials} == known
    assert isinstance(events[0], Started)
    assert events[0].known == 0
    assert isinstance(events[-1], Decided)
    assert "default" in events[-1].contenders
    assert not [event for event in events if isinstance(event, Generation)]  # the first one has more than 12 candidates


def test_a_search_goes_on_where_it_stopped(pool: LocalWorkers, tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    workers = Watched(pool)
    settings = replace(SETTINGS, budget=Budget(trials=5), effort=replace(DEFAULT, first=6, population=4))
    first = search(workers, path, settings)
    compiled = len(workers.built)
    again = search(workers, path, settings)
    assert [t.candidate for t in again.trials] == [t.candidate for t in first.trials]
    assert [t.outcome for t in again.trials] == [t.outcome for t in first.trials]
    # Only who may compete in the last comparison is compiled again.
    assert len(workers.built) - compiled <= 6
    longer = search(workers, path, replace(settings, budget=Budget(trials=9)))
    assert longer.trials[:5] == first.trials
    assert len(longer.trials) == 9
    best = [min(t.seconds for t in result.trials) for result in (first, longer)]
    assert best[1] <= best[0]


DEEDS = (
    (trial.SEGMENTATION_FAULT, FailureKind.CRASH),
    (trial.NOT_A_NUMBER, FailureKind.WRONG),
    (trial.PLAUSIBLE, FailureKind.WRONG),
    (trial.BEYOND_THE_END, FailureKind.OUT_OF_BOUNDS),
    (trial.INTO_AN_ARGUMENT, FailureKind.CRASH),
)


def test_nothing_wrong_wins(pool: LocalWorkers, tmp_path: Path) -> None:
    """Every other candidate does something wrong, and quickly: it computes nothing."""

    def change(number: int, packed: Packed) -> Packed:
        if number % 2 == 0:
            return packed
        code, _ = DEEDS[number // 2 % len(DEEDS)]
        bad = unpack(trial.wrong(code))
        options = unpack(packed).asked
        return pack(replace(bad, asked=options, source=f"{bad.source}\n// {options_text(options)}"))

    settings = replace(SETTINGS, reproducers=tmp_path / "reproducers")
    workers = Watched(pool, change)
    result = search(workers, tmp_path / "cache.db", settings)
    for place, tried in enumerate(result.trials):
        if place % 2:
            _, kind = DEEDS[place // 2 % len(DEEDS)]
            assert isinstance(tried.outcome, Failed)
            assert tried.outcome.kind is kind, tried.outcome
        else:
            assert isinstance(tried.outcome, Measured | Failed)
    winner = result.executable
    assert "8 = 1;" not in winner.source
    assert result.failures[FailureKind.CRASH] >= 2
    assert len(list((tmp_path / "reproducers").glob("mm-*.py"))) == 6
    stored = records(tmp_path / "cache.db").known()
    assert sum(isinstance(outcome, Failed) for outcome in stored.values()) == sum(result.failures.values())


def test_options_that_change_nothing_are_measured_once(pool: LocalWorkers, tmp_path: Path) -> None:
    packed = pack(trial.right())
    workers = Watched(pool, lambda _number, _packed: packed)
    result = search(workers, tmp_path / "cache.db")
    assert len({t.outcome for t in result.trials}) == 1
    assert result.speedup == 1.0


def test_bitwise_winners_compute_the_same_bits(pool: LocalWorkers, tmp_path: Path) -> None:
    """Of five candidates, every other one gives results that are right, but not the same."""

    def change(number: int, packed: Packed) -> Packed:
        if number % 2 == 0:
            return packed
        other = unpack(trial.wrong(trial.LAST_BIT))
        options = unpack(packed).asked
        return pack(replace(other, asked=options, source=f"{other.source}\n// {options_text(options)}"))

    few = replace(SETTINGS, budget=Budget(trials=6))
    path = tmp_path / "cache.db"
    workers = Watched(pool, change)
    free = search(workers, path, few)
    assert not free.failures
    result = search(workers, path, replace(few, numerics=Numerics.BITWISE))
    checked = workers.check(pack(trial.right()), "default")
    assert isinstance(checked, Checked)
    assert checked.numerics == result.numerics
    assert "bits" not in str(free.failures)
    other = [t for t in result.trials if isinstance(t.outcome, Failed)]
    assert {t.outcome.kind for t in other if isinstance(t.outcome, Failed)} <= {FailureKind.NUMERICS}
    # What failed for its bits is unknown to searches that do not ask for them.
    assert all(isinstance(outcome, Measured) for outcome in records(path).known().values())


def test_where_the_default_fails_there_is_nothing_to_tune(pool: LocalWorkers, tmp_path: Path) -> None:
    workers = Watched(pool, lambda _number, _packed: trial.wrong(trial.PLAUSIBLE))
    with pytest.raises(tc.TuningError, match="nothing can be tuned, because the static default fails: wrong result: "):
        search(workers, tmp_path / "cache.db")


def test_a_search_ends_where_the_machine_has_no_more_to_give(pool: LocalWorkers, tmp_path: Path) -> None:
    workers = Steady(pool)
    result = search(workers, tmp_path / "cache.db", bound=Bound(0.96 * Steady.SECONDS, lambda: 0.96 * Steady.SECONDS))
    assert result.stopped == "the best is within 5 % of what this machine allows"
    assert len(result.trials) == 1
    assert result.bound == 0.96 * Steady.SECONDS


@pytest.mark.parametrize("again", [0.5, 1.1])
def test_a_bound_that_was_measured_while_others_worked_ends_nothing(
    pool: LocalWorkers, tmp_path: Path, again: float
) -> None:
    """Looked at again, the machine can do more; or calls are quicker than it says that they can be."""
    workers = Steady(pool)
    bound = Bound(1.2 * Steady.SECONDS, lambda: again * Steady.SECONDS)
    result = search(workers, tmp_path / "cache.db", replace(SETTINGS, budget=Budget(trials=3)), bound=bound)
    assert result.stopped == "the budget is spent"
    assert result.bound == (0.5 * Steady.SECONDS if again == 0.5 else None)


def test_an_interrupted_search_keeps_what_it_has(pool: LocalWorkers, tmp_path: Path) -> None:
    asked: list[None] = []

    def stop() -> bool:
        asked.append(None)
        return len(asked) > 2

    workers = Watched(pool)
    result = search(workers, tmp_path / "cache.db", stop=stop)
    assert result.stopped == "it was interrupted"
    assert 0 < len(records(tmp_path / "cache.db").known()) == len(result.trials) < 12


def test_the_default_has_its_trial_however_short_the_budget_is(pool: LocalWorkers, tmp_path: Path) -> None:
    """Nothing that belongs to the start is charged: the clock of the budget begins after the default's trial."""
    result = search(Steady(pool), tmp_path / "cache.db", replace(SETTINGS, budget=Budget(seconds=1e-9)))
    assert len(result.trials) == 1
    assert result.is_default
    assert result.stopped == "the budget is spent"
    assert records(tmp_path / "cache.db").incumbent() is not None


def test_a_search_that_is_interrupted_before_its_first_trial_says_so(pool: LocalWorkers, tmp_path: Path) -> None:
    with pytest.raises(tc.TuningError, match=r"^mm: it was interrupted before anything was tried$"):
        search(Watched(pool), tmp_path / "cache.db", stop=lambda: True)


class Improving(Watched):
    """What has another source than the default takes half of its time."""

    def __init__(self, workers: LocalWorkers) -> None:
        super().__init__(workers)
        self.sources: dict[str, str] = {}
        self.default = ""

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        self.sources[slot] = unpack(packed).source
        self.default = self.default or self.sources[slot]
        return super().check(packed, slot)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        part = 1.0 if self.sources[slot] == self.default else 0.5
        return Timed((part * Steady.SECONDS,) * 5, 1.0, 1.0)


@pytest.mark.parametrize("left", [20.0, 0.0])
def test_the_best_is_stored_before_it_is_compared_in_the_time_that_is_left(
    pool: LocalWorkers, tmp_path: Path, left: float
) -> None:
    path = tmp_path / "cache.db"
    stored: list[str] = []

    class Observed(Improving):
        def check(self, packed: Packed, slot: str) -> Checked | Failed:
            if slot == "default":
                incumbent = records(path).incumbent()
                stored.append("" if incumbent is None else incumbent.options)
            return super().check(packed, slot)

    tuning = begun(Observed(pool), path)
    tuning.begin()
    assert tuning.step(Budget(trials=8).start(patient())) == "the budget is spent"
    result = tuning.finish("it was interrupted", Deadline(lambda: 0.0, left))
    best = options_text(result.best)
    assert result.speedup == 2.0
    assert stored == ([best] if left else [])
    assert result.stopped == "it was interrupted" + ("" if left else " before the last comparison")
    incumbent = records(path).incumbent()
    assert incumbent is not None
    assert incumbent.options == best
    # It has not gone as far as its budget says, so another search may go on.
    kept = records(path)
    assert kept.store.reader.ended_runs(kept.ingredients.key, kept.wanted.machine, kept.wanted.threads) == ()


def test_a_winner_that_is_quicker_than_the_machine_allows_is_measured_again(pool: LocalWorkers, tmp_path: Path) -> None:
    """Bound and time are; a bound that is too high all the same is none, and nothing is ever above 100 % of it."""
    compared: list[str] = []

    class Counted(Improving):
        def check(self, packed: Packed, slot: str) -> Checked | Failed:
            compared.append(slot)
            return super().check(packed, slot)

    class Late(Bound):
        """One that is not asked before the end."""

        def is_reached(self, best: float) -> bool:
            del best
            return False

    bound = Late(0.6 * Steady.SECONDS, lambda: 0.6 * Steady.SECONDS)
    result = search(Counted(pool), tmp_path / "cache.db", replace(SETTINGS, budget=Budget(trials=8)), bound=bound)
    assert result.seconds == 0.5 * Steady.SECONDS
    assert result.bound is None
    assert compared.count("default") == 2


@pytest.mark.parametrize("strategy", every(2, Strategy))
def test_every_strategy_searches(pool: LocalWorkers, tmp_path: Path, strategy: Strategy) -> None:
    workers = Watched(pool)
    result = search(workers, tmp_path / "cache.db", replace(SETTINGS, strategy=strategy, budget=Budget(trials=3)))
    assert len(result.trials) == 3


def test_winners_at_other_sizes_are_where_a_search_begins(pool: LocalWorkers, tmp_path: Path) -> None:
    path = tmp_path / "cache.db"
    mm = tc.define(trial.TEXT).mm
    text = tc.CpuOptions(tc.ScheduleOptions(tile=(8, 16)), register_tile=(4, 16))
    found = mm.tune((64, 64), (64, 64), budget="1 trial", cache=path, jobs=1, seed=1, progress=False)
    assert found.best == CpuOptions()
    # As if these options had won there.
    store = records(path).store
    kernel = mm.compile((64, 64), (64, 64), options=text)
    elsewhere = Wanted(Parsed(parse_task(trial.TASK), trial.TEXT), kernel.signature, trial.TARGET, None)
    other = SearchRecords(store, elsewhere, {}, environment())
    contender = _contender(found)
    other.keep(kernel.executable, contender, contender, "run")
    workers = Watched(pool)
    result = search(workers, path, replace(SETTINGS, budget=Budget(trials=4)))
    runs = store.runs()
    seeds = [options_from_text(seed, "cpu") for seed in json.loads(runs[-1].settings)["seeds"]]
    assert text in seeds
    assert text in [t.candidate.options for t in result.trials]


def _contender(result: TuningResult) -> Contender:
    return Contender((result.seconds / 100,) * 3, result.numerics)


def test_tuning_from_python(tmp_path: Path) -> None:
    mm = tc.define(trial.TEXT).mm
    random = np.random.default_rng(0)
    a, b = (random.standard_normal(shape, np.float32) for shape in ((33, 17), (17, 29)))
    before = np.asarray(mm(a, b))
    result = mm.tune(a, b, budget="2 trials", cache=tmp_path / "cache.db", jobs=1, progress=False)
    assert len(result.trials) == 2
    assert mm.compile(a, b).asked == result.best
    np.testing.assert_allclose(np.asarray(mm(a, b)), before, rtol=1e-5)
    with pytest.raises(
        tc.OptionsError, match="strategy must be one of combined, genetic, original, random, got 'best'"
    ):
        mm.tune(a, b, strategy="best")
    with pytest.raises(tc.OptionsError, match="'soon' is no budget; write a time as '8h'"):
        mm.tune(a, b, budget="soon")
    axpy = tc.define("def axpy(float(N) x) -> (y) { y(i) += x(i) }")
    with pytest.raises(
        tc.ArgumentError, match="axpy is tuned on arrays of its own, because it changes them; pass shapes"
    ):
        axpy.tune(a[0])
    assert axpy.tune((100,), budget="1 trial", cache=tmp_path / "cache.db", jobs=1, progress=False).seconds > 0


def test_definitions_that_tune_themselves(tmp_path: Path) -> None:
    tuned = tc.define(trial.TEXT, tune="1 trial")
    a, b = np.ones((33, 17), np.float32), np.ones((17, 29), np.float32)
    np.testing.assert_array_equal(np.asarray(tuned(a, b)), np.full((33, 29), 17, np.float32))


def test_more_time_goes_on_where_less_has_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "cache.db"
    settings = replace(environment(), cache=str(path), cache_mode=None)
    monkeypatch.setattr("tc.api.kernels.environment", lambda: settings)
    monkeypatch.setattr(
        "tc.api.kernels.process_cache", lambda: KernelCache(Configuration(str(path), Mode.STORE, None, False), settings)
    )

    def searched(tune: str) -> tuple[int, int]:
        """Runs and trials in the cache after a call."""
        tc.define(trial.TEXT, tune=tune).mm.compile((5, 6), (6, 7))
        with contents(path) as found:
            return len(list(found.records(RUNS))), len(list(found.records(TRIALS)))

    assert searched("1 trial") == (1, 1)
    assert searched("1 trial") == (1, 1)
    assert searched("2 trials") == (2, 2)
    assert searched("1 trial") == (2, 2)
