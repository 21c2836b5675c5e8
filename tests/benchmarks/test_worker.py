"""Processes that measure: what they are given, and how they end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from dataclasses import dataclass

import pytest

from benchmarks.measuring.messages import Calibrate, Measure, Question, Ready, Refused, Sample
from benchmarks.measuring.worker import Worker, serve, settings


@dataclass(frozen=True, slots=True)
class Riddle(Question[str]):
    """A question without an answer."""


def test_a_process_answers() -> None:
    with Worker(1) as worker:
        assert isinstance(worker.ask(Calibrate()), Ready)
        assert isinstance(worker.ask(Measure(0.01)), Sample)
        assert worker.alive
    assert not worker.alive


def test_a_question_without_an_answer_ends_the_process() -> None:
    with Worker(1) as worker:
        assert worker.ask(Riddle()) == Refused("TypeError: there is no answer to Riddle()")
        later = worker.ask(Calibrate())
        assert isinstance(later, Refused)
        assert "died with exit status 1" in later.reason


def test_a_process_that_dies_is_said_to_be_dead() -> None:
    with Worker(1) as worker:
        assert isinstance(worker.ask(Calibrate()), Ready)
        os.kill(worker.process, signal.SIGKILL)
        answer = worker.ask(Calibrate())
        assert answer == Refused(f"the process died with exit status {-signal.SIGKILL}")


def test_a_process_that_takes_too_long_is_ended() -> None:
    with Worker(1) as worker:
        worker.ask(Calibrate())
        assert worker.ask(Measure(1e6), limit=0.05) == Refused("no answer within 0.05 s")
        assert not worker.alive


def test_processes_have_as_many_processors_as_threads() -> None:
    with Worker(1) as worker:
        worker.ask(Calibrate())
        assert len(os.sched_getaffinity(worker.process)) == 1


def test_libraries_are_told_the_number_of_threads() -> None:
    made = settings(3, "cpu:x86-64-v3")
    assert {made[name] for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")} == {"3"}
    assert made["TC_TARGET"] == "cpu:x86-64-v3"


def test_numpy_must_not_be_there_before_its_number_of_threads() -> None:
    assert "numpy" in sys.modules
    ours, theirs = multiprocessing.Pipe()
    with ours, theirs, pytest.raises(RuntimeError, match="before the number of its threads was set"):
        serve(theirs, {}, 1)
