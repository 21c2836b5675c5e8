"""What is in flight when a search is stopped has a little while, and no longer; processes serve on."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Sequence

import pytest

from tc.artifact.packing import options_text, pack
from tc.targets.options import CpuOptions
from tc.tuner.trial.measuring import Sampling
from tc.tuner.trial.messages import Checked
from tc.tuner.trial.process import INTERRUPTED
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.trials import LONGEST_BUILD, Trials
from tc.tuner.trial.workers import Limits, LocalWorkers, Packed
from tests.tuner import trial_support as trial

DEFAULT = options_text(CpuOptions())


def stopped_after(calls: int) -> Callable[[], bool]:
    """Stops a search after so many calls."""
    asked = [0]

    def stop() -> bool:
        asked[0] += 1
        return asked[0] > calls

    return stop


def test_builds_in_flight_are_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.tuner.trial.workers._FINISHING", 0.0)
    stop = stopped_after(2)
    with trial.folder() as folder, LocalWorkers(trial.TASK, folder, 1, Limits(), None, stop) as workers:
        assert workers.build([DEFAULT] * 2, LONGEST_BUILD) == [INTERRUPTED] * 2
        # For the last comparison, what is needed is compiled, and measured.
        (packed,) = workers.build([DEFAULT], LONGEST_BUILD)
        assert not isinstance(packed, Failed)
        assert isinstance(workers.check(packed, "default"), Checked)


def test_a_candidate_that_hangs_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tc.tuner.trial.workers._FINISHING", 0.0)
    stop = stopped_after(1)
    with trial.folder() as folder, LocalWorkers(trial.TASK, folder, 1, Limits(), None, stop) as workers:
        assert workers.check(trial.wrong(trial.ENDLESS_LOOP), "trial") == INTERRUPTED
        assert isinstance(workers.check(pack(trial.right()), "default"), Checked)


def test_what_was_in_flight_is_no_trial() -> None:
    class Stopped:
        def build(self, options: Sequence[str], _limit: float) -> list[Packed | Failed]:
            return [INTERRUPTED for _ in options]

        def __getattr__(self, name: str) -> object:
            raise AssertionError(name)

    looked = stopped_after(1)
    assert Trials(Stopped(), Sampling(1.0), lambda: 0.0, looked).try_all(["{}", "[]"]) == []  # type: ignore[arg-type]
    found = Trials(Stopped(), Sampling(1.0), lambda: 0.0).try_all(["{}"])  # type: ignore[arg-type]
    assert [one.outcome for one in found] == [Failed(FailureKind.LOST, "it was interrupted")]


def test_processes_that_try_candidates_ignore_what_ends_a_job() -> None:
    """Slurm and systemd signal all processes of a job; whoever asks says when it is over."""
    with trial.workers() as workers:
        (packed,) = workers.build([DEFAULT], LONGEST_BUILD)
        assert not isinstance(packed, Failed)
        assert isinstance(workers.check(packed, "default"), Checked)
        before = workers.processes
        assert len(before) == 2
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            for process in before:
                os.kill(process, number)
                os.killpg(os.getpgid(process), number)
        assert isinstance(workers.check(packed, "default"), Checked)
        assert workers.build([DEFAULT], LONGEST_BUILD) == [packed]
        assert workers.processes == before
