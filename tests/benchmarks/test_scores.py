"""What follows from measurements."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from benchmarks.measuring.contender import PEERS, Contender
from benchmarks.measuring.messages import Refused
from benchmarks.reporting.results import Missing, Row
from benchmarks.reporting.scores import Score, Verdict, geometric_mean, mean_ratio, score
from tc.tuner.roofline.roofline import Bandwidth, Roofs, Work, highest
from tests.benchmarks.reports import NO_WORK, QUIET, ROOFS, report, row

OURS, TUNED, OUT = Contender.OURS, Contender.TUNED, Contender.PREALLOCATED
TORCH, NUMPY = Contender.TORCH, Contender.NUMPY


def scored(measured: Row) -> Score:
    return score(measured, report(measured))


def test_the_ratio_is_of_medians_and_of_the_best_peer() -> None:
    found = scored(row({OURS: [2.0, 1.0, 9.0], TORCH: [5.0, 5.0, 5.0], NUMPY: [3.0, 4.0, 90.0]}))
    assert (found.ours, found.peer, found.ratio) == (OURS, NUMPY, 2.0)
    assert found.verdict is Verdict.REACHED
    time = found.times[OURS]
    assert (time.median, time.least, time.most) == (2.0, 1.0, 9.0)


def test_the_better_of_default_and_tuned_options_counts_but_not_given_outputs() -> None:
    found = scored(row({OURS: [4.0] * 3, TUNED: [2.0] * 3, OUT: [1.0] * 3, TORCH: [3.0] * 3}))
    assert (found.ours, found.ratio) == (TUNED, 1.5)


def test_only_quiet_rounds_count() -> None:
    loud = 2 * QUIET
    measured = row(
        {OURS: [9.0, 9.0, 1.0, 1.0, 1.0], TORCH: [9.0, 9.0, 3.0, 3.0, 3.0]},
        calibrations=[QUIET, loud, QUIET, QUIET, QUIET, QUIET],
    )
    found = scored(measured)
    assert (found.ratio, found.noisy) == (3.0, False)


def test_without_enough_quiet_rounds_all_count_and_the_row_says_so() -> None:
    measured = row({OURS: [1.0, 1.0, 4.0], TORCH: [2.0, 2.0, 2.0]}, calibrations=[QUIET, 2 * QUIET, QUIET, QUIET])
    found = scored(measured)
    assert (found.ratio, found.noisy) == (2.0, True)


@pytest.mark.parametrize(
    ("peer", "work", "verdict"),
    [
        (1.5, NO_WORK, Verdict.REACHED),
        (1.4, NO_WORK, Verdict.MISSED),
        (1.4, Work(950_000_000, 0, 0), Verdict.AT_BOUND),
        (1.4, Work(0, 500_000_000, 420_000_000), Verdict.AT_BOUND),
        (1.4, Work(850_000_000, 0, 0), Verdict.MISSED),
    ],
)
def test_verdicts(peer: float, work: Work, verdict: Verdict) -> None:
    assert scored(row({OURS: [1.0] * 3, TORCH: [peer] * 3}, work=work)).verdict is verdict


def test_a_noisy_row_is_not_excused_by_its_bound() -> None:
    measured = row({OURS: [1.0] * 3, TORCH: [1.0] * 3}, work=Work(10**9, 0, 0), calibrations=[QUIET, 2 * QUIET] * 2)
    assert scored(measured).verdict is Verdict.MISSED


def test_a_wrong_result_of_anybody_is_the_verdict() -> None:
    missing = (Missing(NUMPY, "off by one", wrong=True),)
    assert scored(row({OURS: [1.0] * 3, TORCH: [9.0] * 3}, missing=missing)).verdict is Verdict.WRONG


@pytest.mark.parametrize("only", [OURS, TORCH])
def test_a_row_without_ours_or_without_peers_is_incomplete(only: Contender) -> None:
    found = scored(row({only: [1.0] * 3}))
    assert (found.verdict, found.ratio) == (Verdict.INCOMPLETE, None)


def test_fresh_outputs_cost_what_given_ones_save_where_the_system_provides_pages() -> None:
    times = {OURS: [4.0] * 3, OUT: [3.0] * 3}
    assert scored(row(times, faults=10.0)).fresh == 0.25
    assert scored(row(times)).fresh is None


def test_the_bound_is_of_the_quickest_memory_that_holds_the_data() -> None:
    assert ROOFS.bound(Work(0, 1 << 9, 1 << 9)) == (1 << 10) / 2e9
    assert ROOFS.bound(Work(0, 1 << 19, 0)) == (1 << 19) / 2e9
    assert ROOFS.bound(Work(0, 1 << 20, 1 << 20)) == (1 << 21) / 1e9
    assert ROOFS.bound(Work(0, 8, 0)) == 8 / 2e9
    assert ROOFS.bound(Work(1000, 8, 0)) == 1000 / 1e9


def test_providing_memory_takes_time_in_which_nothing_is_computed_or_read() -> None:
    assert ROOFS.bound(Work(10**9, 0, 10**8), fresh=True) == 1.0 + 0.2
    assert ROOFS.bound(Work(0, 3 * 10**8, 10**8), fresh=True) == 0.3 + 0.2
    assert ROOFS.bound(Work(10**9, 3 * 10**8, 0), fresh=True) == 1.0
    work = Work(5 * 10**8, 0, 21 * 10**7)
    for faults, verdict in ((51.0, Verdict.AT_BOUND), (49.0, Verdict.MISSED)):
        provided = row({OURS: [1.0] * 3, TORCH: [1.0] * 3}, work=work, faults=faults)
        assert scored(provided).verdict is verdict


def test_the_highest_roofs_are_the_highest_of_each() -> None:
    other = Roofs(5e8, (Bandwidth(1 << 10, 1e9, 3e9), Bandwidth(1 << 20, 4e9, 1e8)), fresh=6e8, launch=3e-6)
    expected = Roofs(1e9, (Bandwidth(1 << 10, 2e9, 3e9), Bandwidth(1 << 20, 4e9, 1e9)), fresh=6e8, launch=2e-6)
    assert highest(replace(ROOFS, launch=2e-6), other) == expected


def test_nothing_is_quicker_than_a_launch() -> None:
    roofs = replace(ROOFS, launch=1.0)
    assert roofs.bound(Work(10**8, 10**8, 0)) == 1.0
    assert roofs.bound(Work(2 * 10**9, 0, 0)) == 2.0


def test_the_geometric_mean() -> None:
    assert geometric_mean([]) is None
    mean = geometric_mean([1.0, 2.0, 4.0])
    assert mean is not None
    assert math.isclose(mean, 2.0)


def test_the_mean_ratio_leaves_out_rows_that_have_none() -> None:
    rows = (
        row({OURS: [1.0] * 3, TORCH: [2.0] * 3}),
        row({OURS: [1.0] * 3, TORCH: [8.0] * 3}),
        row({OURS: [1.0] * 3}),
    )
    mean = mean_ratio(report(*rows))
    assert mean is not None
    assert math.isclose(mean, 4.0)


def test_contenders_are_ours_or_peers() -> None:
    assert {contender for contender in Contender if not contender.is_ours} == set(PEERS)
    assert Refused("absent").wrong is False
