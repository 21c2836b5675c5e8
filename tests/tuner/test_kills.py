"""Whoever is killed, at whatever moment: what was committed stays, and nothing wrong wins."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tc.artifact.packing import unpack
from tc.cache.content.integrity import verify
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import LocalWorkers, Packed
from tests.programs import ROOT
from tests.tuner import trial_support as trial
from tests.tuner.session.searches import SETTINGS, Watched, records, search
from tests.waiting import wait_until

_FEW, _MANY = 1, 50


def _kill_tuners(path: Path, moments: int) -> None:
    """Starts a search again and again, and kills it with all that it started, after so many trials more or less."""
    command = (sys.executable, "-m", "tests.tuner.endless", str(path))
    chance = random.Random(3)
    known = 0
    for _ in range(moments):
        with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
            assert process.stdout is not None
            for _ in range(chance.randint(2, 12)):
                assert process.stdout.readline(), "the search ended by itself"
            process.kill()
        now = len(records(path).known())
        assert now >= known
        known = now
    assert known > 0
    assert verify(path) == ()
    # The processes of a search that is gone see the end of their questions.
    wait_until(lambda: not _serving(str(path)))
    with trial.workers() as workers:
        result = search(workers, path, SETTINGS)
    assert result.seconds > 0
    assert verify(path) == ()


def _serving(mark: str) -> list[str]:
    """The processes of searches with this mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if b"tc.tuner.trial.serve" in (folder / "cmdline").read_bytes():
                    variables = (folder / "environ").read_bytes()
                    found += [folder.name] if f"TC_TEST_MARK={mark}".encode() in variables else []
    return found


def test_a_search_that_is_killed_goes_on(tmp_path: Path) -> None:
    _kill_tuners(tmp_path / "cache.db", _FEW)


@pytest.mark.slow
def test_a_search_that_is_killed_many_times_goes_on(tmp_path: Path) -> None:
    _kill_tuners(tmp_path / "cache.db", _MANY)


class Killing(Watched):
    """Workers whose processes, those that compile and the one that measures, are killed while they are asked.

    ``moments``: so often.  None is killed before the second candidate: without the default there is nothing to tune.
    """

    def __init__(self, workers: LocalWorkers, moments: int) -> None:
        super().__init__(workers)
        self.killed: Final[list[int]] = []
        self._moments = moments
        self._chance = random.Random(5)

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        with self._under_fire():
            return super().build(options, limit)

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        with self._under_fire():
            return super().check(packed, slot)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        with self._under_fire():
            return super().time(slot, seconds, quickest)

    @contextmanager
    def _under_fire(self) -> Iterator[None]:
        if len(self.built) < 2 or len(self.killed) >= self._moments or self._chance.random() < 0.5:
            yield
            return
        answered = threading.Event()
        killer = threading.Thread(target=self._kill, args=(answered, self._chance.uniform(0.0, 0.3)))
        killer.start()
        try:
            yield
        finally:
            answered.set()
            killer.join()

    def _kill(self, answered: threading.Event, after: float) -> None:
        """Kills a process after so many seconds, or when it has answered if that is sooner."""
        answered.wait(after)
        if processes := self.workers.processes:
            self.killed.append(self._chance.choice(processes))
            with suppress(ProcessLookupError):
                os.kill(self.killed[-1], signal.SIGKILL)


def _kill_processes(path: Path, moments: int, trials: int) -> None:
    with trial.workers(jobs=2) as pool:
        workers = Killing(pool, moments)
        result = search(workers, path, replace(SETTINGS, budget=Budget(trials=trials), jobs=2))
    assert len(result.trials) == trials
    assert workers.killed
    # A candidate that was killed twice in a row is counted as one that took all memory, and nothing else is wrong.
    for tried in result.trials:
        if isinstance(tried.outcome, Failed):
            assert tried.outcome.kind in (FailureKind.MEMORY, FailureKind.ILLEGAL, FailureKind.TIMEOUT), tried.outcome
    assert verify(path) == ()
    with trial.workers() as pool:
        winner = records(path).incumbent()
        assert winner is not None
        assert not isinstance(pool.check(_packed(path), "winner"), Failed)


def _packed(path: Path) -> bytes:
    from tc.artifact.packing import assemble, pack

    winner = records(path).incumbent()
    assert winner is not None
    packed = pack(assemble(winner.executable, winner.options, winner.source, winner.binary))
    assert unpack(packed).source == winner.source
    return packed


def test_processes_that_are_killed_are_replaced(tmp_path: Path) -> None:
    _kill_processes(tmp_path / "cache.db", 4, 12)


@pytest.mark.slow
def test_processes_that_are_killed_many_times_are_replaced(tmp_path: Path) -> None:
    _kill_processes(tmp_path / "cache.db", _MANY, 60)
