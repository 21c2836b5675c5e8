"""What every search keeps: its protocol, its order, and never the same options twice."""

from __future__ import annotations

from random import Random

import pytest

from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tc.tuner.search.generations import Breeder, Generations, Past
from tc.tuner.search.random_search import propose_random
from tc.tuner.search.replay import key
from tc.tuner.search.search import Origin
from tc.tuner.space.nest import Nest
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Outcome
from tests.tuner.landscapes import GPU_SPACE, LANDSCAPES, SPACE, Landscape, brittle, convex, measured
from tests.tuner.searches import SEARCHES, run
from tests.turns import one_in

EVERY = pytest.mark.parametrize("name", SEARCHES)
TINY = Space.of(
    CpuOptions,
    Nest({"n": 4}, 1),
    fixed=(
        "unroll",
        "local_temporaries",
        "nontemporal_stores",
        "block_prefetch",
        "gather_prefetch",
        "packed_operands",
        "register_accumulators",
        "register_tile",
        "vector_axis",
        "scatter_owners",
        "scatter_parts",
        "scans",
    ),
)


def failed(_options: object) -> Outcome:
    return Failed(FailureKind.CRASH, "all of them")


@EVERY
def test_the_default_comes_first_and_numbers_count_on(name: str) -> None:
    search = SEARCHES[name](SPACE, Random(0))
    generation, number = 0, 0
    while number < 150:
        asked = search.ask()
        assert [candidate.number for candidate in asked] == list(range(number, number + len(asked)))
        assert {candidate.generation for candidate in asked} == {generation}
        assert all(parent < number for candidate in asked for parent in candidate.parents)
        assert all(SPACE.decode(candidate.genome) == candidate.options for candidate in asked)
        if number == 0:
            assert (asked[0].options, asked[0].origin) == (CpuOptions(), Origin.SEED)
        search.tell([convex(candidate.options) for candidate in asked])
        generation, number = generation + 1, number + len(asked)


@one_in(2)
@EVERY
@pytest.mark.parametrize("landscape", LANDSCAPES)
def test_no_options_are_tried_twice(name: str, landscape: str) -> None:
    decisions = run(name, LANDSCAPES[landscape], 250)
    assert len({decision.options for decision in decisions}) == len(decisions) == 250


@EVERY
def test_the_best_is_the_first_of_the_quickest(name: str) -> None:
    search = SEARCHES[name](SPACE, Random(0))
    assert search.best is None
    asked = search.ask()
    outcomes: list[Outcome] = [Failed(FailureKind.WRONG, ""), *(measured(9.0) for _ in asked[1:])]
    outcomes[3] = outcomes[5] = measured(7.0)
    search.tell(outcomes[:1])
    assert search.best is None
    search.tell(outcomes[1:])
    assert search.best is not None
    assert (search.best.candidate, search.best.outcome) == (asked[3], outcomes[3])
    assert [trial.outcome for trial in search.trials] == outcomes


@EVERY
def test_outcomes_are_told_in_parts_but_all_of_them(name: str) -> None:
    search, whole = SEARCHES[name](SPACE, Random(0)), SEARCHES[name](SPACE, Random(0))
    for _ in range(4):
        asked = search.ask()
        assert asked == whole.ask()
        for candidate in asked[:-1]:
            search.tell([brittle(candidate.options)])
            with pytest.raises(RuntimeError, match="tell the outcomes of the last"):
                search.ask()
        search.tell([brittle(asked[-1].options)])
        with pytest.raises(ValueError, match="1 outcomes of 0 candidates"):
            search.tell([measured(1.0)])
        whole.tell([brittle(candidate.options) for candidate in asked])


@EVERY
def test_a_search_where_everything_fails_goes_on(name: str) -> None:
    decisions = run(name, failed, 150)
    assert len(decisions) == 150


@one_in(2)
@EVERY
@pytest.mark.parametrize("landscape", [convex, failed])
def test_a_search_ends_when_everything_was_tried(name: str, landscape: Landscape) -> None:
    every = {
        key(CpuOptions(ScheduleOptions(fusion, tile), vectorize=vectorize))
        for fusion in Fusion
        for tile in (None, (), (0,), (1,), (2,), (4,))
        for vectorize in (False, True)
    }
    decisions = run(name, landscape, 1000, space=TINY)
    assert {decision.options for decision in decisions} == every
    assert len(decisions) == len(every) < TINY.size


@EVERY
def test_the_clock_and_other_randomness_do_not_matter(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = run(name, convex, 120)

    def forbidden() -> float:
        raise AssertionError("no one may look at the clock, or draw from somewhere else")

    for where in ("time.time", "time.monotonic", "time.perf_counter", "random.random", "random.choice"):
        monkeypatch.setattr(where, forbidden)
    again = run(name, convex, 120)
    monkeypatch.undo()
    assert again == usual


@EVERY
def test_other_targets_are_searched_as_well(name: str) -> None:
    decisions = run(name, lambda options: measured(1 + len(key(options))), 80, space=GPU_SPACE)
    assert len(decisions) == 80


def test_breeders_take_turns_and_those_with_nothing_new_are_passed_over() -> None:
    sizes = (3, 5)
    empty = Breeder(9, lambda _past, _random: iter(()))
    then = [empty, *(Breeder(size, propose_random) for size in sizes)]
    search = Generations(SPACE, Random(0), Breeder(4, propose_random), then)
    found = []
    for _ in range(6):
        asked = search.ask()
        found.append(len(asked))
        search.tell([convex(candidate.options) for candidate in asked])
    assert found == [4, 3, 5, 3, 5, 3]
    assert Generations(SPACE, Random(0), empty, [empty, empty]).ask() == ()


def test_the_past_is_ranked() -> None:
    search = Generations(SPACE, Random(0), Breeder(4, propose_random), [Breeder(2, propose_random)])
    first: list[Outcome] = [measured(5), Failed(FailureKind.LOST, ""), measured(3), measured(5)]
    for outcomes in (first, [measured(3), measured(4)]):
        search.ask()
        search.tell(outcomes)
    past = Past(SPACE, tuple(search.trials))
    assert [trial.candidate.number for trial in past.ranked()] == [2, 4, 5, 0, 3]
    assert [trial.candidate.number for trial in past.latest()] == [4, 5]
    assert Past(SPACE, ()).latest() == ()
