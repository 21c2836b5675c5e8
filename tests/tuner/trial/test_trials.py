"""Candidates that go wrong are values with a reason, and whoever tries them goes on."""

from __future__ import annotations

import math
import os
import re
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tc.artifact.packing import options_text, pack, unpack
from tc.targets.options import CpuOptions, ScheduleOptions
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.reproducer import write_reproducer
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.workers import Limits, LocalWorkers
from tests.programs import run
from tests.tuner import trial_support as trial
from tests.turns import every
from tests.waiting import PATIENCE, is_running, wait_until

DEFAULT = options_text(CpuOptions())


@pytest.fixture(scope="module")
def workers() -> Iterator[LocalWorkers]:
    with trial.workers(Limits(run=PATIENCE)) as pool:
        yield pool


def test_the_right_kernel_is_right_and_timed(workers: LocalWorkers) -> None:
    (packed,) = workers.build([DEFAULT], PATIENCE)
    assert isinstance(packed, bytes)
    assert unpack(packed).asked == CpuOptions()
    checked = workers.check(packed, "a")
    assert isinstance(checked, Checked)
    assert 0 < checked.deviation < 1
    timed = workers.time("a", 0.02, math.inf)
    assert isinstance(timed, Timed)
    assert len(timed.samples) >= 3
    assert all(0 < seconds < math.inf for seconds in timed.samples)
    given_up = workers.time("a", 0.02, 0.0)
    assert isinstance(given_up, Timed)
    assert len(given_up.samples) == 1


DEEDS = {
    "segmentation fault": (trial.SEGMENTATION_FAULT, FailureKind.CRASH, "SIGSEGV"),
    "beyond the end": (trial.BEYOND_THE_END, FailureKind.OUT_OF_BOUNDS, "the memory around C was written to"),
    "far beyond the end": (trial.FAR_BEYOND_THE_END, FailureKind.CRASH, "SIG"),
    "before the beginning": (trial.BEFORE_THE_BEGINNING, FailureKind.CRASH, "SIGSEGV"),
    "into an argument": (trial.INTO_AN_ARGUMENT, FailureKind.CRASH, "SIGSEGV"),
    "not a number": (trial.NOT_A_NUMBER, FailureKind.WRONG, r"at \(0, 7\): expected .*, got nan"),
    "plausible": (trial.PLAUSIBLE, FailureKind.WRONG, "outside the bound"),
}


@pytest.mark.parametrize("deed", every(2, DEEDS))
def test_what_goes_wrong_has_a_kind_and_a_reason(workers: LocalWorkers, deed: str) -> None:
    code, kind, reason = DEEDS[deed]
    failed = workers.check(trial.wrong(code), "bad")
    assert isinstance(failed, Failed)
    assert failed.kind is kind
    assert re.search(reason, failed.reason), failed.reason
    assert isinstance(workers.check(pack(trial.right()), "good"), Checked)


def test_an_endless_loop_is_given_up() -> None:
    with trial.workers(Limits(run=0.3)) as pool:
        failed = pool.check(trial.wrong(trial.ENDLESS_LOOP), "bad")
        assert failed == Failed(FailureKind.TIMEOUT, "no answer within 0.3 s")
        # Where the machine is busy, a right one may take as long.
        wait_until(lambda: isinstance(pool.check(pack(trial.right()), "good"), Checked))


def test_results_that_are_never_written_are_poison(workers: LocalWorkers) -> None:
    failed = workers.check(trial.wrong(trial.FORGOTTEN, instead=True), "bad")
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.WRONG


@pytest.mark.slow
def test_a_candidate_that_takes_all_memory_does_no_harm() -> None:
    with trial.workers(Limits(run=PATIENCE, memory=3 << 30)) as pool:
        failed = pool.check(trial.wrong(trial.ALL_MEMORY), "bad")
        assert isinstance(failed, Failed)
        assert failed.kind in (FailureKind.MEMORY, FailureKind.CRASH)
        assert isinstance(pool.check(pack(trial.right()), "good"), Checked)


def test_candidates_are_compiled_side_by_side_and_come_back_in_order() -> None:
    tiles = [CpuOptions(ScheduleOptions(tile=(size,))) for size in (4, 8, 16)]
    surplus = CpuOptions(ScheduleOptions(tile=(4,) * 9))
    with trial.workers(jobs=2) as pool:
        built = pool.build([options_text(options) for options in (*tiles, surplus)], PATIENCE)
    assert [unpack(one).asked for one in built if isinstance(one, bytes)] == tiles
    failed = built[-1]
    assert failed == Failed(
        FailureKind.ILLEGAL,
        "tile has 9 sizes, but loops are nested 3 deep at most; leave out the last ones "
        "(tile begins with the outermost loop)",
    )


def test_a_compiler_that_crashes_is_a_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-shared*) kill -SEGV $$;; *) exec cc "$@";; esac\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("TC_CC", str(compiler))
    with trial.workers() as pool:
        (failed,) = pool.build([DEFAULT], PATIENCE)
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.COMPILE
    assert "refused the generated source (exit status -11)" in failed.reason


@pytest.mark.slow
def test_a_compiler_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text('#!/bin/sh\ncase "$*" in *-shared*) exec sleep 1000;; *) exec cc "$@";; esac\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("TC_CC", str(compiler))
    with trial.workers() as pool:
        (failed,) = pool.build([DEFAULT], 5.0)
    assert failed == Failed(FailureKind.TIMEOUT, "no answer within 5 s")


def test_a_compiler_does_not_outlive_the_trial_that_it_works_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What still computes when the next candidate is measured makes that one slow."""
    compiler, number = tmp_path / "cc", tmp_path / "number"
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    monkeypatch.setattr("tempfile.tempdir", None)
    work = f"sleep 1000 & echo $! >> {number}; echo $$ >> {number}; wait"
    compiler.write_text(f'#!/bin/sh\ncase "$*" in *-shared*) {work};; *) exec cc "$@";; esac\n')
    compiler.chmod(0o755)
    monkeypatch.setenv("TC_CC", str(compiler))
    with trial.workers() as pool:
        # How long it takes until the compiler is at work depends on the machine.
        for limit in (2.0**n for n in range(10)):
            (failed,) = pool.build([DEFAULT], limit)
            assert isinstance(failed, Failed)
            working = [int(line) for line in number.read_text().split()] if number.exists() else []
            if len(working) >= 2:
                break
        assert len(working) >= 2
        assert not any(map(is_running, working))
        assert list((tmp_path / "tmp").glob("tc-[0-9]*")) == []


@pytest.mark.slow
def test_a_runner_that_is_killed_says_nothing_about_the_candidate(tmp_path: Path) -> None:
    running = tmp_path / "running"
    deed = f'extern int creat(const char *, unsigned); creat("{running}", 0600); {trial.ENDLESS_LOOP}'
    with trial.workers(Limits(run=PATIENCE)) as pool:
        assert isinstance(pool.check(pack(trial.right()), "a"), Checked)
        (runner,) = pool.processes
        os.kill(runner, signal.SIGKILL)
        assert isinstance(pool.time("a", 0.01, math.inf), Timed)
        killer = threading.Thread(target=_kill_twice, args=(pool, running))
        killer.start()
        failed = pool.check(trial.wrong(deed), "b")
        killer.join()
    assert failed == Failed(FailureKind.MEMORY, "the process was killed twice, most likely for its memory")


def _kill_twice(pool: LocalWorkers, running: Path) -> None:
    """Kills the runner as soon as the candidate runs, and the next one."""
    for _ in range(2):
        wait_until(running.exists)
        running.unlink()
        (runner,) = pool.processes
        os.kill(runner, signal.SIGKILL)


def test_a_reproducer_does_it_again(tmp_path: Path) -> None:
    failure = Failed(FailureKind.CRASH, 'the process died (SIGSEGV): """ \\')
    reproducer = write_reproducer(tmp_path / "reproducers", trial.TASK, DEFAULT, 0, failure)
    assert reproducer.read_text().startswith('"""crashed: the process died (SIGSEGV): ')
    assert run(reproducer.read_text()).startswith("it runs, and is right")
    surplus = options_text(CpuOptions(ScheduleOptions(tile=(4,) * 9)))
    again = write_reproducer(tmp_path / "reproducers", trial.TASK, surplus, 0, failure)
    assert again != reproducer
    assert run(again.read_text()).startswith("illegal: tile has 9 sizes")
