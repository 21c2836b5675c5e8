"""A Dask cluster on this machine, whose workers are processes that tests may kill."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from tests.waiting import wait_until


class Machines:
    """A scheduler at ``address``, and its workers by the numbers of their processes; all write to ``folder``."""

    def __init__(self, address: str, folder: Path) -> None:
        self.address: Final = address
        self.folder: Final = folder
        self._workers: Final[dict[int, subprocess.Popen[bytes]]] = {}
        self._started = 0

    @property
    def alive(self) -> set[int]:
        """The workers that are there."""
        return {number for number, worker in self._workers.items() if worker.poll() is None}

    def start(self, *, folder: Path | None = None, processors: set[int] | None = None) -> int:
        """Another worker, as soon as it is registered, in the folder; ``processors``: those that it may use."""
        log = self.folder / f"worker-{self._started}"
        self._started += 1
        command = ["worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        worker = _dask([*command, "--resources", "measure=1"], log, folder, processors)
        self._workers[worker.pid] = worker
        wait_until(lambda: "Registered to" in log.read_text() or worker.poll() is not None)
        assert worker.poll() is None, log.read_text()
        return worker.pid

    def at_least(self, count: int) -> None:
        """So many workers are there."""
        while len(self.alive) < count:
            self.start()

    def kill(self, number: int) -> None:
        """Ends a worker at once."""
        self._workers[number].kill()
        self._workers[number].wait()

    def end(self) -> None:
        """Ends all workers."""
        for number in self.alive:
            self.kill(number)

    def measuring(self) -> int:
        """The worker that has a process that measures."""
        (found,) = (number for number in self.alive if any("measure" in command for command in trying(number)))
        return found


@contextmanager
def machines() -> Iterator[Machines]:
    """A scheduler without workers; it ends with all of them."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        file, log = folder / "scheduler.json", folder / "scheduler"
        command = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
        scheduler = _dask(command, log)
        stack.callback(_end, scheduler)
        wait_until(lambda: "Scheduler at:" in log.read_text() or scheduler.poll() is not None)
        line = next(line for line in log.read_text().splitlines() if "Scheduler at:" in line)
        made = Machines(line.split()[-1], folder)
        stack.callback(made.end)
        yield made


def trying(worker: int) -> list[str]:
    """The commands of the processes in which a worker tries candidates."""
    found = []
    for children in Path(f"/proc/{worker}/task").glob("*/children"):
        for child in children.read_text().split():
            command = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
            if "tc.tuner.trial.serve" in command:
                found.append(" ".join(command))
    return found


def _dask(
    command: list[str], log: Path, folder: Path | None = None, processors: set[int] | None = None
) -> subprocess.Popen[bytes]:
    kind, *arguments = command
    before = os.sched_getaffinity(0)
    try:
        if processors is not None:
            os.sched_setaffinity(0, processors)
        with log.open("wb") as stream:
            return subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments],
                stderr=stream,
                cwd=folder,
                env={**os.environ, "TMPDIR": str(log.parent)},
            )
    finally:
        os.sched_setaffinity(0, before)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
