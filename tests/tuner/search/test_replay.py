"""The same seed and outcomes give the same decisions; more budget never gives a worse winner."""

from __future__ import annotations

import functools
import json
import statistics
from random import Random

import pytest

from tc.targets.options import CpuOptions, Fusion, Options, ScheduleOptions
from tc.targets.options_json import to_json
from tc.tuner.search.replay import key, replay
from tc.tuner.trial.trial_outcome import Measured, Outcome, outcome_from_text, outcome_to_text
from tests.tuner.landscapes import LANDSCAPES, SPACE, convex, measured
from tests.tuner.searches import SEARCHES, best_microseconds, run
from tests.turns import every, one_in

EVERY = pytest.mark.parametrize("name", SEARCHES)
EVERYWHERE = pytest.mark.parametrize("landscape", LANDSCAPES)
SEEDS = every(3, (7, 0, 1))


def unexpected(options: Options) -> Outcome:
    raise AssertionError(f"nothing is recorded of {key(options)}")


def test_the_key_is_canonical() -> None:
    options = CpuOptions(ScheduleOptions(Fusion.MINIMAL, (3,)))
    assert json.loads(key(options)) == to_json(options)
    assert key(options) == json.dumps(json.loads(key(options)), sort_keys=True)


@one_in(2)
@EVERY
@EVERYWHERE
@pytest.mark.parametrize("seed", SEEDS)
def test_recordings_replay_every_decision(name: str, landscape: str, seed: int) -> None:
    first = run(name, LANDSCAPES[landscape], 130, seed)
    recorded = {d.options: outcome_from_text(outcome_to_text(d.outcome)) for d in first}
    assert replay(SEARCHES[name](SPACE, Random(seed)), recorded, unexpected, 130) == first
    assert run(name, LANDSCAPES[landscape], 130, seed + 1) != first


@one_in(2)
@EVERY
@EVERYWHERE
@pytest.mark.parametrize("seed", SEEDS)
def test_a_longer_search_begins_as_a_shorter_one_and_is_no_worse(name: str, landscape: str, seed: int) -> None:
    long = run(name, LANDSCAPES[landscape], 200, seed)
    for trials in (1, 13, 50, 100):
        short = run(name, LANDSCAPES[landscape], trials, seed)
        assert long[:trials] == short
        assert best_microseconds(long[: 2 * trials]) <= best_microseconds(short)


@one_in(2)
@EVERY
@EVERYWHERE
@pytest.mark.parametrize("interrupted", every(3, [111, 1, 40]))
def test_an_interrupted_search_goes_on_as_if_nothing_had_happened(name: str, landscape: str, interrupted: int) -> None:
    whole = run(name, LANDSCAPES[landscape], 150)
    recorded = {d.options: d.outcome for d in whole[:interrupted]}
    tried: list[str] = []

    def measure(options: Options) -> Outcome:
        tried.append(key(options))
        return LANDSCAPES[landscape](options)

    assert replay(SEARCHES[name](SPACE, Random(0)), recorded, measure, 150) == whole
    assert tried == [d.options for d in whole[interrupted:]]


def test_decisions_follow_what_is_told() -> None:
    def reversed_landscape(options: Options) -> Outcome:
        found = convex(options)
        assert isinstance(found, Measured)
        return measured(1 / found.seconds)

    usual, other = run("combined", convex, 60), run("combined", reversed_landscape, 60)
    first = sum(decision.generation == 0 for decision in usual)
    assert [d.options for d in usual[:first]] == [d.options for d in other[:first]]
    assert [d.options for d in usual[first:]] != [d.options for d in other[first:]]


@one_in(2)
@pytest.mark.parametrize("name", every(2, ["combined", "genetic"]))
@EVERYWHERE
def test_learning_beats_luck(name: str, landscape: str) -> None:
    """In the median of many seeds, with the same number of trials."""
    found, luck = _median_of_best(name, landscape), _median_of_best("random", landscape)
    assert found < 0.97 * luck, luck


@functools.cache
def _median_of_best(search: str, landscape: str) -> float:
    """Microseconds."""
    return statistics.median(best_microseconds(run(search, LANDSCAPES[landscape], 250, seed)) for seed in range(7))
