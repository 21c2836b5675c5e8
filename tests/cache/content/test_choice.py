"""Which variant wins: the machine first, then the threads, then the time."""

from __future__ import annotations

import itertools
from random import Random

import pytest

from tc.cache.content.choice import chosen_variants, latest, winner_of, winning
from tc.cache.format.records import CHOSEN, PREDICTED
from tests.cache.samples import MACHINE, OTHER_MACHINE, measurement, variant

FAST, SLOW = variant(options='{"a": 1}'), variant(options='{"a": 2}')
SERIAL = variant(options='{"a": 1}', threads=1)


def test_nothing_measured_is_no_winner() -> None:
    assert winner_of((), MACHINE, 2) is None
    assert chosen_variants(()) == {}


def test_the_least_time_wins() -> None:
    assert winner_of((measurement(SLOW, 2.0), measurement(FAST, 1.0)), MACHINE, 2) == FAST.identity


def test_the_same_machine_goes_before_the_same_threads_and_these_before_time() -> None:
    elsewhere = measurement(FAST, 0.1, OTHER_MACHINE)
    serial = measurement(SERIAL, 0.5)
    slow = measurement(SLOW, 2.0)
    assert winner_of((elsewhere, serial, slow), MACHINE, 2) == SLOW.identity
    assert winner_of((elsewhere, serial), MACHINE, 2) == SERIAL.identity
    assert winner_of((elsewhere,), MACHINE, 2) == FAST.identity
    assert winner_of((elsewhere, serial, slow), OTHER_MACHINE, 1) == FAST.identity


def test_what_was_predicted_goes_behind_all_that_was_measured() -> None:
    predicted = measurement(FAST, 0.1, policy=PREDICTED)
    also = measurement(SERIAL, 0.2, OTHER_MACHINE, policy=PREDICTED + CHOSEN)
    elsewhere = measurement(SLOW, 2.0, OTHER_MACHINE)
    assert winner_of((predicted, elsewhere), MACHINE, 2) == SLOW.identity
    assert winner_of((predicted, also, elsewhere), OTHER_MACHINE, 1) == SLOW.identity
    assert winner_of((predicted, also), MACHINE, 2) == FAST.identity
    assert winner_of((predicted, also), OTHER_MACHINE, 1) == SERIAL.identity
    assert (predicted.predicted, elsewhere.predicted) == (True, False)
    assert set(chosen_variants((predicted, elsewhere)).values()) == {SLOW.identity}


def test_only_the_latest_measurement_of_a_variant_on_a_machine_counts() -> None:
    lucky = measurement(SLOW, 0.1, at="2026-01-01")
    sober = measurement(SLOW, 2.0, at="2026-01-02")
    fast = measurement(FAST, 1.0, at="2026-01-01")
    assert set(latest((lucky, sober, fast))) == {sober, fast}
    assert winner_of((lucky, sober, fast), MACHINE, 2) == FAST.identity
    elsewhere = measurement(SLOW, 9.0, OTHER_MACHINE, at="2026-01-03")
    assert set(latest((lucky, elsewhere))) == {lucky, elsewhere}


def test_what_was_chosen_by_hand_goes_before_time_until_it_is_measured_again() -> None:
    chosen = measurement(SLOW, 2.0, at="2026-01-01", policy="warm" + CHOSEN)
    fast = measurement(FAST, 1.0, at="2026-01-02")
    assert winner_of((chosen, fast), MACHINE, 2) == SLOW.identity
    assert winner_of((chosen, measurement(SERIAL, 1.0)), MACHINE, 1) == SERIAL.identity, "threads go before"
    later = measurement(FAST, 3.0, at="2026-01-03", policy="cold" + CHOSEN)
    assert winner_of((chosen, fast, later), MACHINE, 2) == FAST.identity, "the last choice counts"
    assert winner_of((chosen, fast, measurement(SLOW, 2.0, at="2026-01-03")), MACHINE, 2) == FAST.identity
    assert not fast.chosen


def test_the_seconds_of_the_winner_are_known_by_place() -> None:
    measured = (
        measurement(SLOW, 2.0),
        measurement(FAST, 1.0),
        measurement(SERIAL, 1.5),
        measurement(FAST, 4.0, OTHER_MACHINE),
        measurement(SLOW, 3.0, OTHER_MACHINE, policy="warm" + CHOSEN),
    )
    found = {place: one.seconds for place, one in winning(iter(measured)).items()}
    assert found == {(MACHINE, 1): 1.5, (MACHINE, 2): 1.0, (OTHER_MACHINE, 2): 3.0}
    assert winning(()) == {}


def test_between_equals_the_order_of_arrival_does_not_count() -> None:
    equal = [measurement(one) for one in (FAST, SLOW)] + [measurement(FAST, 3.0, policy="cold")]
    winners = {winner_of(order, MACHINE, 2) for order in itertools.permutations(equal)}
    assert len(winners) == 1


@pytest.mark.parametrize("seed", range(20))
def test_the_winner_is_among_the_chosen_variants(seed: int) -> None:
    random = Random(seed)
    machines = ("one", "two", "three")
    measured = [
        measurement(
            variant(options=f'{{"a": {random.randrange(5)}}}', threads=random.choice((1, 2, 4))),
            float(random.randint(1, 5)),
            random.choice(machines),
            f"2026-01-0{random.randint(1, 9)}",
            policy=random.choice(("warm", "warm", "warm" + CHOSEN)),
        )
        for _ in range(12)
    ]
    known = chosen_variants(measured)
    for machine, threads in itertools.product((*machines, "four"), (1, 2, 3, 4)):
        winner = winner_of(measured, machine, threads)
        assert winner in known.values()
        assert known.get((machine, threads), winner) == winner
