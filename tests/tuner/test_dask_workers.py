"""Searches on a Dask cluster of real processes: machines come and go, and no trial is lost."""

from __future__ import annotations

import math
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.waiting import PATIENCE, wait_until

pytest.importorskip("distributed", reason="needs Dask: pip install 'tensor-comprehensions[distributed]'")

from distributed import Worker

import tc
from tc.artifact.packing import options_text, pack
from tc.base.errors import DeviceError, OptionsError, TuningError
from tc.commands.tune import main
from tc.targets.options import CpuOptions, ScheduleOptions
from tc.targets.target import processor
from tc.tuner.cluster.dask_cluster import Cluster, connected
from tc.tuner.cluster.dask_workers import DaskWorkers, dask_workers, scheduler_address
from tc.tuner.cluster.worker_plugin import SearchPlugin, pieces
from tc.tuner.session.settings import TuningSettings
from tc.tuner.trial.budget import Budget
from tc.tuner.trial.messages import Checked, Timed
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured
from tc.tuner.trial.workers import Packed, Workers
from tests.tuner import trial_support as trial
from tests.tuner.dask_machines import Machines, machines, trying
from tests.tuner.session.searches import records, search

# A search that is killed.
ABANDONED = """
import os, signal, sys
from pathlib import Path
from tests.waiting import PATIENCE
from tc.tuner.cluster.dask_workers import dask_workers
from tests.tuner import trial_support as trial
address, folder, options = sys.argv[1:]
with dask_workers(address)(trial.TASK, Path(folder), 1, None, lambda: False) as workers:
    workers.build([options], PATIENCE)
    os.kill(os.getpid(), signal.SIGKILL)
"""

TEXTS = [options_text(CpuOptions(schedule=ScheduleOptions(unroll=unroll))) for unroll in (1, 2, 4, 8, 16)]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Machines]:
    with machines() as made:
        yield made


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    with trial.folder() as name:
        yield name


def dask(cluster: Machines) -> str:
    return cluster.address.replace("tcp://", "dask://")


@pytest.fixture
def workers(cluster: Machines, folder: Path) -> Iterator[Workers]:
    cluster.at_least(2)
    with dask_workers(dask(cluster))(trial.TASK, folder, 1, None, lambda: False) as pool:
        yield pool


# --- who is asked -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("host", ["127.0.0.1:8786", "machine.example.org:1", "[::1]:8786"])
def test_a_scheduler_has_an_address(host: str) -> None:
    assert scheduler_address(f"dask://{host}") == f"tcp://{host}"


@pytest.mark.parametrize(
    "text", ["", "host:8786", "tcp://host:8786", "dask://host", "dask://:8786", "dask://host:port", "dask://host:70000",
             "dask://host:8786/path", "dask://user@host:8786", "dask://host:8786?key=value"]
)  # fmt: skip
def test_other_addresses_are_refused(text: str) -> None:
    with pytest.raises(OptionsError, match="as in dask://host:8786, got"):
        dask_workers(text)


def test_without_dask_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(OptionsError, match=r"pip install 'tensor-comprehensions\[distributed\]'"):
        dask_workers("dask://127.0.0.1:8786")


@pytest.mark.slow
def test_a_scheduler_that_does_not_answer_is_refused_soon(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with socket.socket() as unheard:
        unheard.bind(("127.0.0.1", 0))
        address = f"dask://127.0.0.1:{unheard.getsockname()[1]}"
        with pytest.raises(DeviceError, match=r"no Dask scheduler answers at tcp://127\.0\.0\.1:\d+ within 5 s"):
            dask_workers(address)
    (tmp_path / "mm.tc").write_text(trial.TEXT)
    assert main([str(tmp_path / "mm.tc"), "--size", "M=4,N=4,K=4", "--workers", "machine:1"]) == 2
    assert "as in dask://host:8786, got 'machine:1'" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="one processor cannot be another machine than itself")
def test_workers_on_other_machines_do_not_measure(folder: Path) -> None:
    with machines() as others:
        others.start(processors={min(os.sched_getaffinity(0))})
        start_workers = dask_workers(dask(others))
        with pytest.raises(TuningError) as raised, start_workers(trial.TASK, folder, 1, None, lambda: False):
            pass
    model, threads = processor().model, len(os.sched_getaffinity(0))
    assert f"no worker measures on {model} with {threads} threads" in str(raised.value)
    assert f"is {model} with 1 thread, and measures; start one" in str(raised.value)


def test_workers_with_other_versions_are_refused_at_the_start_and_left_out_later(
    cluster: Machines, folder: Path, tmp_path: Path
) -> None:
    # Whatever lies in the folder of a process is found first.
    shutil.copytree(Path(tc.__file__).parent, tmp_path / "tc", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "tc" / "targets" / "options.py").open("a") as stream:
        stream.write("\nCHANGED = True\n")
    cluster.at_least(1)
    with connected(cluster.address) as client:
        serving = Cluster(client, trial.TASK.target)
        before = serving.builders()
        stranger = cluster.start(folder=tmp_path)
        try:
            assert len(client.nthreads()) > len(before)
            assert serving.builders() == serving.measurers() == before
            with pytest.raises(
                TuningError, match=r"the worker tcp://\S+ has tc .*, and this machine has tc .*; install"
            ):
                Cluster(client, trial.TASK.target)
        finally:
            cluster.kill(stranger)


# --- what they do -----------------------------------------------------------------------------------------------


def test_what_crashes_is_a_value_and_workers_live_on(workers: Workers, cluster: Machines) -> None:
    before = cluster.alive
    failed = workers.check(trial.wrong(trial.SEGMENTATION_FAULT), "bad")
    assert isinstance(failed, Failed)
    assert failed.kind is FailureKind.CRASH
    assert "SIGSEGV" in failed.reason
    assert isinstance(workers.check(pack(trial.right()), "good"), Checked)
    assert isinstance(workers.time("good", 0.02, math.inf), Timed)
    assert cluster.alive == before


@pytest.mark.slow
def test_sizes_that_stay_open_do_so_there(cluster: Machines) -> None:
    cluster.at_least(1)
    with (
        trial.folder(trial.OPEN) as opened,
        dask_workers(dask(cluster))(trial.OPEN, opened, 1, None, lambda: False) as pool,
    ):
        (built,) = pool.build(TEXTS[:1], PATIENCE)
        assert isinstance(built, bytes)
        assert isinstance(pool.check(built, "good"), Checked)
        failed = pool.check(trial.wrong(trial.PLAUSIBLE_BELOW, trial.OPEN), "bad")
    assert isinstance(failed, Failed)
    assert failed.reason.endswith(" where A.0 is 21")


def test_workers_rest_and_forget_who_leaves(cluster: Machines, folder: Path) -> None:
    def left() -> set[Path]:
        return set(cluster.folder.glob("tc-tune-*"))

    cluster.at_least(1)
    before = left()
    with dask_workers(dask(cluster))(trial.TASK, folder, 1, None, lambda: False) as pool:
        (built,) = pool.build(TEXTS[:1], PATIENCE)
        assert isinstance(built, bytes)
        assert isinstance(pool.check(built, "a"), Checked)
        assert any(map(trying, cluster.alive))
        pool.stop_idle()
        assert not any(map(trying, cluster.alive))
        assert isinstance(pool.time("a", 0.02, math.inf), Timed)
        assert trying(cluster.measuring())
        assert left() > before
    assert not any(map(trying, cluster.alive))
    assert left() == before


def test_what_a_killed_search_leaves_goes_when_another_begins(cluster: Machines, folder: Path) -> None:
    cluster.at_least(1)
    given = (dask(cluster), str(folder), TEXTS[0])
    assert subprocess.run([sys.executable, "-c", ABANDONED, *given], check=False).returncode == -signal.SIGKILL
    assert any(map(trying, cluster.alive))
    with dask_workers(dask(cluster))(trial.TASK, folder, 1, None, lambda: False):
        assert not any(map(trying, cluster.alive))


def test_the_command_searches_there(cluster: Machines, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.at_least(1)
    (tmp_path / "mm.tc").write_text(trial.TEXT)
    where = str(tmp_path / "cache.db")
    size = f"M={trial.M},N={trial.N},K={trial.K}"
    command = [str(tmp_path / "mm.tc"), "--size", size, "--budget", "1 trial", "--cache", where, "--quiet"]
    assert main([*command, "--workers", dask(cluster)]) == 0
    assert " 1 trial; the budget is spent" in capsys.readouterr().out
    assert records(tmp_path / "cache.db").incumbent() is not None
    mm = tc.define(trial.TEXT).mm
    known = mm.tune((4, 4), (4, 4), budget="1 trial", cache=where, progress=False, workers=dask(cluster))
    assert known.best == CpuOptions()


# --- who is lost ------------------------------------------------------------------------------------------------


class Sabotaged:
    """Workers to which something happens before a check."""

    def __init__(self, workers: Workers, number: int, happens: Callable[[], None]) -> None:
        self.workers = workers
        self.left = number
        self.happens = happens

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        return self.workers.build(options, limit)

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        self.left -= 1
        if not self.left:
            self.happens()
        return self.workers.check(packed, slot)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        return self.workers.time(slot, seconds, quickest)

    def stop_idle(self) -> None:
        self.workers.stop_idle()


@pytest.mark.slow
def test_a_search_goes_on_when_the_worker_that_measures_is_killed(
    workers: Workers, cluster: Machines, tmp_path: Path
) -> None:
    killed: list[int] = []

    def kill() -> None:
        killed.append(cluster.measuring())
        cluster.kill(killed[0])

    settings = TuningSettings(Budget(trials=20), seed=6, jobs=1, seconds=0.005)
    result = search(Sabotaged(workers, 7, kill), tmp_path / "cache.db", settings)
    assert killed
    assert len(result.trials) == 20
    assert all(isinstance(tried.outcome, Measured) for tried in result.trials)
    kept = records(tmp_path / "cache.db")
    assert kept.known() == {options_text(tried.candidate.options): tried.outcome for tried in result.trials}
    winner = kept.incumbent()
    assert winner is not None
    assert winner.options == options_text(result.best)


@pytest.mark.slow
def test_what_was_checked_is_checked_again_by_the_next_worker(workers: Workers, cluster: Machines) -> None:
    assert isinstance(workers.check(pack(trial.right()), "a"), Checked)
    first = cluster.measuring()
    # It dies while it works.
    killer = threading.Timer(0.3, cluster.kill, (first,))
    killer.start()
    assert isinstance(workers.time("a", 1.0, math.inf), Timed)
    # Or just after it, where the machine is busy.
    killer.join()
    assert isinstance(workers.time("a", 0.01, math.inf), Timed)
    assert cluster.measuring() != first


@pytest.mark.slow
def test_what_a_worker_compiled_when_it_was_killed_is_compiled_by_another(workers: Workers, cluster: Machines) -> None:
    found: list[list[Packed | Failed]] = []
    building = threading.Thread(target=lambda: found.append(workers.build(TEXTS, PATIENCE)))
    building.start()
    wait_until(lambda: any(map(trying, cluster.alive)))
    cluster.kill(next(number for number in cluster.alive if trying(number)))
    building.join()
    assert [type(built) for built in found[0]] == [bytes] * len(TEXTS)


def test_what_is_missing_before_a_piece_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"0123456789")
    (tmp_path / "b").write_bytes(b"")
    (tmp_path / "c").write_bytes(b"c")
    sent = list(pieces(tmp_path, 4))
    assert [piece.content for piece in sent] == [b"0123", b"4567", b"89", b"", b"c"]
    plugin, worker = SearchPlugin(trial.TASK, None), cast("Worker", SimpleNamespace(state=SimpleNamespace(nthreads=1)))
    plugin.setup(worker)
    assert not plugin.put(sent[1])
    assert all(plugin.put(piece) for piece in (*sent[:2], sent[1]))
    assert not plugin.put(sent[4])
    assert not plugin.has_files
    assert all(plugin.put(piece) for piece in sent[2:])
    assert plugin.has_files
    assert [file.read_bytes() for file in sorted(plugin.folder.iterdir())] == [b"0123456789", b"", b"c"]
    plugin.teardown(worker)
    assert not plugin.folder.exists()


class Vanishing:
    """A cluster whose workers vanish so many times when they compile, check or time."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.asked: list[str] = []

    def builders(self) -> tuple[str, ...]:
        return ("a worker",)

    measurers = builders

    def send(
        self, _workers: object, function: Callable[..., object], *_arguments: object, measure: bool = False
    ) -> str:
        self.asked.append(function.__name__)
        return function.__name__

    def answer(self, call: str) -> object:
        others = {"address_there": "a worker", "put_there": True}
        if call in others:
            return others[call]
        self.times -= 1
        done = {"build_there": b"built", "check_there": Checked(0.5, "bits"), "time_there": Timed((1.0,), 0.0, 0.0)}
        return None if self.times >= 0 else done[call]


@pytest.mark.parametrize("times", [0, 2, 3])
def test_a_candidate_is_lost_when_three_workers_are(folder: Path, times: int) -> None:
    lost = Failed(FailureKind.LOST, "3 workers were lost with it")
    pools = [DaskWorkers(cast("Cluster", Vanishing(times)), "a search", folder) for _ in range(2)]
    assert pools[0].build(["{}"], 1.0) == [b"built" if times < 3 else lost]
    assert pools[1].check(b"", "a") == (Checked(0.5, "bits") if times < 3 else lost)


def test_a_worker_that_takes_over_gets_all_files_and_what_was_checked(folder: Path) -> None:
    vanishing = Vanishing(0)
    workers = DaskWorkers(cast("Cluster", vanishing), "a search", folder)
    assert isinstance(workers.check(b"", "a"), Checked)
    begin = ["address_there", *["put_there"] * len(list(folder.iterdir())), "check_there"]
    assert vanishing.asked == begin
    vanishing.times = 1
    assert isinstance(workers.time("a", 1.0, math.inf), Timed)
    assert vanishing.asked == [*begin, "time_there", *begin, "time_there"]
