"""Runs programs in processes of their own, which may crash or hang without taking the run with them."""

from __future__ import annotations

import faulthandler
import multiprocessing
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from tests.fuzz.execute import LOST, Outcome, Verdict, execute
from tests.fuzz.generate import generate

# A process keeps every kernel that it loaded; after so many programs another one takes over.
_PROGRAMS_PER_PROCESS = 500


def run(seed: int, numbers: Iterable[int], jobs: int, limit: float) -> Iterator[tuple[int, Outcome]]:
    """Outcomes in the order in which they are ready; ``limit``: seconds that one program may take."""
    waiting = iter(numbers)
    workers = [_Worker(seed, limit) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.start(next(waiting, None))
        while busy := [worker for worker in workers if worker.number is not None]:
            wait([worker.connection for worker in busy], timeout=1.0)
            for worker in busy:
                found = worker.poll()
                if found is not None:
                    yield found
                    worker.start(next(waiting, None))
    finally:
        for worker in workers:
            worker.stop()


def _serve(connection: Connection, seed: int) -> None:
    """The worker process: numbers in, outcomes out."""
    faulthandler.enable()
    for number in iter(connection.recv, None):
        connection.send(execute(generate(seed, number)))


class _Worker:
    """A process and the number of the program that it works on; None while it has nothing to do."""

    def __init__(self, seed: int, limit: float) -> None:
        self.number: int | None = None
        self.connection: Connection
        self._seed = seed
        self._limit = limit
        self._begun = 0.0
        self._done = 0
        self._process: SpawnProcess
        self._spawn()

    def _spawn(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, self._seed), daemon=True)
        self._process.start()
        theirs.close()
        self._done = 0

    def start(self, number: int | None) -> None:
        """Hands out a program; None leaves the worker idle."""
        self.number = number
        if number is None:
            return
        if self._done >= _PROGRAMS_PER_PROCESS:
            self.stop()
            self._spawn()
        self._begun = time.monotonic()
        self._done += 1
        with suppress(BrokenPipeError):  # of a process that died; ``poll`` tells
            self.connection.send(number)

    def poll(self) -> tuple[int, Outcome] | None:
        """The number and the outcome of the program, if it ended, crashed or took too long."""
        assert self.number is not None
        if self.connection.poll():
            try:
                return self.number, self.connection.recv()
            except (EOFError, ConnectionResetError):
                return self._lost(f"the process died with exit status {self._status()}")
        if time.monotonic() - self._begun > self._limit:
            return self._lost(f"still running after {self._limit:g} s")
        return None

    def _status(self) -> int | None:
        self._process.join(5.0)
        return self._process.exitcode

    def _lost(self, why: str) -> tuple[int, Outcome]:
        assert self.number is not None
        self._process.kill()
        self._process.join()
        self.connection.close()
        self._spawn()
        return self.number, Outcome(Verdict.FAILED, why, kind=LOST)

    def stop(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()
