"""Recorded searches: the same decisions, and nothing else, follow from what they were told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from benchmarks.__main__ import main
from benchmarks.problems.case import Suite
from benchmarks.problems.cases import CASES, chosen
from benchmarks.searching.recording import (
    DEFAULT,
    OtherDecisionsError,
    Recording,
    load_recordings,
    record,
    replay_case,
    save_recording,
    search_again,
)
from benchmarks.searching.tuned import DEFAULT as WINNERS
from benchmarks.searching.tuned import load_winners
from tc.tuner.session.settings import TuningResult
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured
from tests.turns import every

(CASE,) = chosen((Suite.PAPER,), ("tmm-128-32-256",))


def _measured() -> TuningResult:
    arguments = CASE.problem.arguments(CASE.sizes, 0).values()
    return CASE.problem.comprehension.tune(*arguments, budget="24 trials", seed=3, progress=False)


def _invented() -> TuningResult:
    """With outcomes that were not measured, on which decisions depend as much."""
    kernel = CASE.problem.comprehension.compile(*CASE.problem.shapes(CASE.sizes).values())
    search = search_again(CASE, Recording(str(kernel.executable.target), 3, (), "", "", unroll=4096))
    random = Random(4)
    while len(search.trials) < 24:
        seconds = [random.uniform(1e-5, 1e-3) for _ in search.ask()][: 24 - len(search.trials)]
        search.tell([Measured(time, (time,)) for time in seconds])
    assert search.best is not None
    best, time = search.best.candidate.options, search.best.seconds
    trials = tuple(search.trials)
    return TuningResult(best, time, (time, time), 1e-3, None, "", trials, "the budget is spent", kernel.executable)


@pytest.fixture(scope="module", params=every(2, [_invented, _measured]), ids=["invented", "measured"])
def found(request: pytest.FixtureRequest) -> TuningResult:
    """A search that ended."""
    ended: TuningResult = request.param()
    return ended


def test_the_same_outcomes_lead_to_the_same_trials(found: TuningResult) -> None:
    recording = record(found, 3)
    again = replay_case(CASE, recording)
    assert [trial.candidate for trial in again] == [trial.candidate for trial in found.trials]
    assert [trial.seconds for trial in again] == [trial.seconds for trial in found.trials]


def test_other_seeds_and_outcomes_lead_to_others(found: TuningResult) -> None:
    recording = record(found, 3)
    with pytest.raises(OtherDecisionsError, match="tmm-128-32-256: the search decides otherwise than when it was"):
        replay_case(CASE, replace(recording, seed=4))
    words = recording.outcomes.split(",")
    swapped = ",".join([*(["timed out"] * 20), *words[20:]])
    with pytest.raises(OtherDecisionsError):
        replay_case(CASE, replace(recording, outcomes=swapped))
    with pytest.raises(OtherDecisionsError):
        replay_case(CASE, replace(recording, outcomes=",".join(words[:-1])))


def test_recordings_in_files(found: TuningResult, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "new" / "trials.json"
    assert load_recordings(path).cases == {}
    trials = (replace(found.trials[0], outcome=Failed(FailureKind.CRASH, "why")), *found.trials[1:])
    save_recording(CASE.name, record(replace(found, trials=trials), 3), path)
    assert load_recordings(path).cases[CASE.name].outcomes.startswith("crashed,")
    recording: Recording = record(found, 3)
    save_recording(CASE.name, recording, path)
    assert load_recordings(path).cases == {CASE.name: recording}
    main(["replay", "--recording", str(path)])
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split()[:2] == [CASE.name, "24"]
    assert printed.endswith("1 search made the decisions that were recorded\n")
    save_recording("nobody", recording, path)
    with pytest.raises(SystemExit, match="2"):
        main(["replay", "--recording", str(path)])
    assert "nobody" in capsys.readouterr().err
    path.unlink()
    save_recording(CASE.name, replace(recording, seed=5), path)
    with pytest.raises(SystemExit, match="error: tmm-128-32-256: the search decides otherwise"):
        main(["replay", "--recording", str(path)])


def test_every_case_of_the_suite_was_searched_from_the_static_default() -> None:
    recordings, winners = load_recordings(DEFAULT).cases, load_winners(WINNERS).cases
    assert set(recordings) == set(winners) == {case.name for case in CASES}
    for name, recording in recordings.items():
        assert recording.seeds == ()
        assert len(recording.outcomes.split(",")) == winners[name].trials


@pytest.mark.slow
def test_searches_of_the_suite_decide_what_they_decided() -> None:
    """Whoever changes the search records it again: python -m benchmarks search."""
    recordings = load_recordings(DEFAULT).cases
    for case in CASES:
        replay_case(case, recordings[case.name])
