"""``Workers`` compile and measure candidates; ``LocalWorkers`` are processes of this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from queue import SimpleQueue
from types import TracebackType
from typing import Final, Protocol, TypeAlias

from tc.base.frozen import frozen
from tc.tuner.trial.messages import EMPTY, Build, Built, Calibrate, Check, Checked, Done, Prepare, Question, Time, Timed
from tc.tuner.trial.process import INTERRUPTED, KILLED, Process
from tc.tuner.trial.task import Task
from tc.tuner.trial.trial_outcome import Failed, FailureKind

# The packed executable of a candidate.
Packed: TypeAlias = bytes

# isl leaks memory, and libraries stay loaded, until the process ends.
_BUILDS_PER_PROCESS: Final = 60
_CHECKS_PER_PROCESS: Final = 200
# A process that is killed before its first question is started so many times.
_STARTS: Final = 10
_KILLED: Final = Failed(FailureKind.LOST, KILLED)
# Seconds that work in flight may still take when a search is stopped, before the results are stored.  Job managers send
# SIGKILL 30 s or more after the first signal.
_FINISHING: Final = 3.0


@frozen
class Limits:
    """What processes may take: seconds to make ready, seconds to run a candidate, bytes of memory (0: any number)."""

    prepare: float = 600.0
    run: float = 60.0
    memory: int = 0


class Measurer(Protocol):
    """Measures candidates, one at a time."""

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        """Whether the results are right; the executable then is in the slot."""
        ...

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        """Times what is in the slot for about so many seconds; ``quickest``: see ``Time``."""
        ...


class Workers(Measurer, Protocol):
    """Compiles candidates, several at a time, and measures them, one at a time."""

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        """The executable or the failure of each of the options (canonical JSON), each within ``limit`` seconds."""
        ...

    def stop_idle(self) -> None:
        """Stops processes that are not needed until the next question."""
        ...


class LocalWorkers:
    """``jobs`` processes that compile, and one that measures on each device; use it in a ``with`` statement.

    ``calibration``: an executable that tells how quick the machine is at the moment.  ``stop``: whether what is not
    being compiled yet stays undone.  ``devices``: numbers of the GPUs, where candidates run on some; the first one
    serves ``check`` and ``time``, each one its entry of ``measurers``.
    """

    def __init__(
        self,
        task: Task,
        folder: Path,
        jobs: int,
        limits: Limits,
        calibration: Packed | None = None,
        stop: Callable[[], bool] = lambda: False,
        devices: Sequence[int] = (0,),
    ) -> None:
        self._stop: Final = stop
        self._prepare: Final = Prepare(task, str(folder))
        self._calibration: Final = calibration
        self._builders: Final[SimpleQueue[_Prepared]] = SimpleQueue()
        self._limits: Final = limits
        builders = [_Prepared(Process("build", limits.memory), self._prepare, limits) for _ in range(jobs)]
        for builder in builders:
            self._builders.put(builder)
        runners = [
            _Prepared(Process("measure", limits.memory), replace(self._prepare, device=device), limits, calibration)
            for device in devices
        ]
        self.measurers: Final = tuple(_Runner(runner, limits, stop) for runner in runners)
        self._all: Final = (*builders, *runners)
        self._threads: Final = ThreadPoolExecutor(jobs)

    def build(self, options: Sequence[str], limit: float) -> list[Packed | Failed]:
        """The executable or the failure of each of the options (canonical JSON), each within ``limit`` seconds."""
        # What is compiled alone after the end is for the last comparison.
        last = len(options) == 1 and self._stop()
        return list(self._threads.map(lambda text: self._build(text, limit, last=last), options))

    def _build(self, options: str, limit: float, *, last: bool) -> Packed | Failed:
        if self._stop() and not last:
            return INTERRUPTED
        with self._builder() as builder:
            answer, packed = builder.ask(Build(options), limit, _grace_period(self._stop), _BUILDS_PER_PROCESS)
        match answer:
            case Built():
                return packed
            case Failed():
                return answer
            case _:
                return Failed(FailureKind.CRASH, f"the compiler answered {answer!r}")

    @contextmanager
    def _builder(self) -> Iterator[_Prepared]:
        builder = self._builders.get()
        try:
            yield builder
        finally:
            self._builders.put(builder)

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        """Whether the results are right; the executable then is in the slot."""
        return self.measurers[0].check(packed, slot)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        """Times what is in the slot for about so many seconds; ``quickest``: see ``Time``."""
        return self.measurers[0].time(slot, seconds, quickest)

    def stop_idle(self) -> None:
        """Stops processes that are not needed until the next question."""
        for prepared in self._all:
            prepared.process.stop()

    @property
    def processes(self) -> tuple[int, ...]:
        """The numbers that the system gave the processes that are at work."""
        return tuple(p.process.number for p in self._all if p.process.number is not None)

    def __enter__(self) -> LocalWorkers:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for prepared in self._all:
            prepared.process.close()
        self._threads.shutdown()


class _GracePeriod:
    """Whether a search was stopped more than ``_FINISHING`` seconds ago, counted from the first call that sees it."""

    def __init__(self, stopped: Callable[[], bool]) -> None:
        self._stopped: Final = stopped
        self._since: float | None = None

    def __call__(self) -> bool:
        if not self._stopped():
            return False
        now = time.monotonic()
        if self._since is None:
            self._since = now
        return now - self._since >= _FINISHING


def _grace_period(stop: Callable[[], bool]) -> Callable[[], bool] | None:
    """When to give up what is asked now: some seconds after the search was stopped; None if it was stopped before."""
    return None if stop() else _GracePeriod(stop)


class _Runner:
    """A process that measures, and the executables in its slots."""

    def __init__(self, runner: _Prepared, limits: Limits, stop: Callable[[], bool]) -> None:
        self._runner: Final = runner
        self._stop: Final = stop
        self._limits: Final = limits
        self._slots: Final[dict[str, Packed]] = {}

    def check(self, packed: Packed, slot: str) -> Checked | Failed:
        answer, _ = self._runner.ask(
            Check(slot), self._limits.run, _grace_period(self._stop), _CHECKS_PER_PROCESS, packed
        )
        if isinstance(answer, Checked):
            self._slots[slot] = packed
            return answer
        return self._failed(answer)

    def time(self, slot: str, seconds: float, quickest: float) -> Timed | Failed:
        question, limit = Time(slot, seconds, quickest), self._limits.run + seconds
        answer, _ = self._runner.ask(question, limit, _grace_period(self._stop))
        if answer == EMPTY:
            # An executable that was checked in a process that is gone is checked again in the next one.
            again = self.check(self._slots[slot], slot)
            if isinstance(again, Failed):
                return again
            answer, _ = self._runner.ask(question, limit, _grace_period(self._stop))
        return answer if isinstance(answer, Timed) else self._failed(answer)

    def _failed(self, answer: object) -> Failed:
        """Why a candidate was not measured; a device that failed may take no more work from the same process."""
        if not isinstance(answer, Failed):
            return Failed(FailureKind.CRASH, f"the runner answered {answer!r}")
        if answer.kind is FailureKind.DEVICE:
            self._runner.process.stop()
        return answer


class _Prepared:
    """A process that is told its task whenever it is started again."""

    def __init__(self, process: Process, prepare: Prepare, limits: Limits, calibration: Packed | None = None) -> None:
        self.process: Final = process
        self._prepare = prepare
        self._limits = limits
        self._calibration = calibration
        self._asked = 0

    def ask(
        self,
        question: Question,
        limit: float,
        give_up: Callable[[], bool] | None,
        most: int | None = None,
        payload: bytes = b"",
    ) -> tuple[object, bytes]:
        """The answer within ``limit`` seconds; a process that has answered ``most`` such questions is replaced first.

        ``give_up``: as of ``Process.ask``.

        A process that is killed from outside says nothing about the candidate, which is tried a second time.
        """
        if most is not None and self._asked >= most:
            self.process.stop()
        for _ in range(2):
            answer = self._made_ready(give_up)
            if not isinstance(answer, Done):
                return answer, b""
            self._asked += most is not None
            answer, content = self.process.ask(question, limit, payload, give_up)
            if answer != _KILLED:
                return answer, content
        return Failed(FailureKind.MEMORY, f"{KILLED} twice, most likely for its memory"), b""

    def _made_ready(self, give_up: Callable[[], bool] | None) -> object:
        """Starts the process if it is not there; ``Done``, or why it cannot be made ready."""
        answer: object = Done()
        for _ in range(_STARTS):
            if self.process.alive:
                return answer
            self._asked = 0
            answer, _ = self.process.ask(self._prepare, self._limits.prepare, give_up=give_up)
            if isinstance(answer, Done) and self._calibration is not None:
                answer, _ = self.process.ask(Calibrate(), self._limits.prepare, self._calibration, give_up)
            if isinstance(answer, Done):
                return answer
            self.process.stop()
            if answer != _KILLED:
                return answer
        return answer
