"""Whoever is killed, at whatever moment: what was committed stays, and nothing wrong wins."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from tc.cache.verify import verify
from tc.packing import unpack
from tc.tuner.budget import Budget
from tc.tuner.outcome import Failed, FailureKind
from tests.programs import ROOT
from tests.tuner import trial
from tests.tuner.test_tune import SETTINGS, Watched, ledger, search

_FEW, _MANY = 1, 50


def _kill_tuners(path: Path, moments: int) -> None:
    """Starts a search again and again, and kills it with all that it started at a random moment.

    So often after it has begun to keep what it finds, which takes long on a busy machine.
    """
    command = (sys.executable, "-m", "tests.tuner.endless", str(path))
    chance = random.Random(3)
    known = 0
    while moments:
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(chance.uniform(0.5, 6.0))
        process.send_signal(signal.SIGKILL)
        process.wait()
        if not path.exists():
            continue
        moments -= 1
        now = len(ledger(path).known())
        assert now >= known
        known = now
    assert verify(path) == ()
    # The processes of a search that is gone see the end of their questions.
    deadline = time.monotonic() + 60
    while (left := _serving(str(path))) and time.monotonic() < deadline:
        time.sleep(0.2)
    assert left == []
    with trial.crew() as crew:
        result = search(crew, path, SETTINGS)
    assert result.seconds > 0
    assert verify(path) == ()


def _serving(mark: str) -> list[str]:
    """The processes of searches with this mark in their environment."""
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            with suppress(OSError):
                if b"tc.tuner.serve" in (folder / "cmdline").read_bytes():
                    variables = (folder / "environ").read_bytes()
                    found += [folder.name] if f"TC_TEST_MARK={mark}".encode() in variables else []
    return found


def test_a_search_that_is_killed_goes_on(tmp_path: Path) -> None:
    _kill_tuners(tmp_path / "cache.db", _FEW)


@pytest.mark.slow
def test_a_search_that_is_killed_many_times_goes_on(tmp_path: Path) -> None:
    _kill_tuners(tmp_path / "cache.db", _MANY)


def _kill_processes(path: Path, moments: int, trials: int) -> None:
    """Kills the processes of a search, those that compile and the one that measures, at random moments."""
    begun, over = threading.Event(), threading.Event()
    killed: list[int] = []

    def watch(number: int, packed: bytes) -> bytes:
        if number > 0:  # without the default there is nothing to tune
            begun.set()
        return packed

    def kill(crew: Watched) -> None:
        chance = random.Random(5)
        begun.wait()
        while not over.wait(chance.uniform(0.1, 1.0)) and len(killed) < moments:
            if processes := crew.crew.processes:
                killed.append(chance.choice(processes))
                with suppress(ProcessLookupError):
                    os.kill(killed[-1], signal.SIGKILL)

    with trial.crew(jobs=2) as hired:
        crew = Watched(hired, watch)
        killer = threading.Thread(target=kill, args=(crew,))
        killer.start()
        result = None
        try:
            result = search(crew, path, replace(SETTINGS, budget=Budget(trials=trials), jobs=2))
        finally:
            over.set()
            begun.set()
            killer.join()
    assert len(result.trials) == trials
    assert killed  # how many there is time for depends on the machine
    # A candidate that was killed twice in a row is counted as one that took all memory, and nothing else is wrong.
    for tried in result.trials:
        if isinstance(tried.outcome, Failed):
            assert tried.outcome.kind in (FailureKind.MEMORY, FailureKind.ILLEGAL, FailureKind.TIMEOUT), tried.outcome
    assert verify(path) == ()
    with trial.crew() as hired:
        winner = ledger(path).incumbent()
        assert winner is not None
        assert not isinstance(hired.check(_packed(path), "winner"), Failed)


def _packed(path: Path) -> bytes:
    from tc.packing import assemble, pack

    winner = ledger(path).incumbent()
    assert winner is not None
    packed = pack(assemble(winner.executable, winner.options, winner.source, winner.binary))
    assert unpack(packed).source == winner.source
    return packed


def test_processes_that_are_killed_are_replaced(tmp_path: Path) -> None:
    _kill_processes(tmp_path / "cache.db", 4, 12)


@pytest.mark.slow
def test_processes_that_are_killed_many_times_are_replaced(tmp_path: Path) -> None:
    _kill_processes(tmp_path / "cache.db", _MANY, 60)
