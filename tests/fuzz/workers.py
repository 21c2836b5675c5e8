"""Runs programs in processes of their own, which may crash or hang without taking the run with them."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.fuzz.execute import HUNG, LOST, Outcome, Verdict, execute
from tests.fuzz.recipe import Recipe
from tests.sanitizers import Sanitizer, headline, report, variables
from tests.waiting import PATIENCE

# A process keeps every kernel that it loaded; after so many programs another one takes over.
_PROGRAMS_PER_PROCESS = 500
_STANDARD_ERROR = 2


def run(recipes: Iterable[Recipe], jobs: int, limit: float) -> Iterator[tuple[Recipe, Outcome]]:
    """Outcomes in the order in which they are ready; ``limit``: seconds that one program may take."""
    waiting = iter(recipes)
    workers = [_Worker(limit) for _ in range(jobs)]
    try:
        for worker in workers:
            worker.start(next(waiting, None))
        while busy := [worker for worker in workers if worker.recipe is not None]:
            wait([worker.connection for worker in busy], timeout=min(1.0, limit))
            for worker in busy:
                outcome, recipe = worker.poll(), worker.recipe
                if outcome is not None and recipe is not None:
                    yield recipe, outcome
                    worker.start(next(waiting, None))
    finally:
        for worker in workers:
            worker.stop()


@contextmanager
def elsewhere(limit: float) -> Iterator[Callable[[Recipe], Outcome]]:
    """``execute`` in another process, for one recipe after the other; ``limit``: seconds that one may take."""
    worker = _Worker(limit)

    def execute_there(recipe: Recipe) -> Outcome:
        worker.start(recipe)
        while (outcome := worker.poll()) is None:
            wait([worker.connection], timeout=1.0)
        return outcome

    try:
        yield execute_there
    finally:
        worker.stop()


def _serve(connection: Connection, log: Path) -> None:
    """The worker process: recipes in, outcomes out; what it says while it dies goes to ``log``."""
    os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND), _STANDARD_ERROR)
    faulthandler.enable()
    for recipe in iter(connection.recv, None):
        connection.send(execute(recipe))


class _Worker:
    """A process and the recipe that it works on; None while it has nothing to do."""

    def __init__(self, limit: float) -> None:
        self.recipe: Recipe | None = None
        self.connection: Connection
        self._limit = limit
        self._begun = 0.0
        self._done = 0
        self._sanitizer = Sanitizer.NONE
        self._folder = TemporaryDirectory(prefix="tc-fuzz-")
        self._log = Path(self._folder.name, "log")
        self._process: SpawnProcess | None = None

    def start(self, recipe: Recipe | None) -> None:
        """Hands out a program; None leaves the worker idle."""
        self.recipe = recipe
        if recipe is None:
            return
        if self._process is None or self._done >= _PROGRAMS_PER_PROCESS or recipe.sanitizer is not self._sanitizer:
            self._end()
            self._spawn(recipe.sanitizer)
        self._begun = time.monotonic()
        self._done += 1
        with suppress(BrokenPipeError):  # of a process that died; ``poll`` tells
            self.connection.send(recipe)

    def _spawn(self, sanitizer: Sanitizer) -> None:
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self._log.unlink(missing_ok=True)
        process = context.Process(target=_serve, args=(theirs, self._log), daemon=True)
        with patch.dict(os.environ, variables(sanitizer)):
            process.start()
        self._process = process
        theirs.close()
        self._done, self._sanitizer = 0, sanitizer

    def poll(self) -> Outcome | None:
        """The outcome of the program, if it ended, crashed or took too long."""
        if self.connection.poll():
            try:
                outcome: Outcome = self.connection.recv()
                return outcome
            except (EOFError, ConnectionResetError):
                return self._lost(f"the process died with exit status {self._status()}", LOST)
        if time.monotonic() - self._begun > self._limit:
            return self._lost(f"still running after {self._limit:g} s", HUNG)
        return None

    def _status(self) -> int | None:
        assert self._process is not None
        self._process.join(PATIENCE)
        return self._process.exitcode

    def _lost(self, why: str, kind: str) -> Outcome:
        self._end()
        log = self._log.read_text(encoding="utf-8", errors="replace") if self._log.exists() else ""
        return Outcome(Verdict.FAILED, f"{why}\n{report(log)}".strip(), kind=headline(log) or kind)

    def _end(self) -> None:
        """The process is gone; the next program starts another one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self.connection.close()
            self._process = None

    def stop(self) -> None:
        self._end()
        self._folder.cleanup()
