"""``Process``: an isolated process for candidates, which may crash, hang or exhaust memory."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Final, cast

from tc.runtime.host.disk import clear_folders
from tc.tuner.trial.messages import Answer, Question, receive, send
from tc.tuner.trial.process_tree import ENDING, end_session
from tc.tuner.trial.trial_outcome import Failed, FailureKind

KILLED: Final = "the process was killed"
CLOSED: Final = Failed(FailureKind.LOST, "the process was ended")
INTERRUPTED: Final = Failed(FailureKind.LOST, "it was interrupted")
_LAST_WORDS: Final = 400
# Seconds after which who waits for an answer asks whether to go on.
_LOOKING: Final = 0.1


class Process:
    """A process of a ``kind`` that ``tc.tuner.trial.serve`` knows, with at most so many bytes of ``memory`` (0: any
    number).

    It is started when it is first asked, and again after it died.  One thread at a time may ask.
    """

    def __init__(self, kind: str, memory: int = 0) -> None:
        self._command: Final = (sys.executable, "-m", "tc.tuner.trial.serve", kind, str(memory))
        self._process: subprocess.Popen[bytes] | None = None
        self._closed = False
        self._log = os.fdopen(os.memfd_create("tc-trials"), "w+b")

    @property
    def alive(self) -> bool:
        """Whether it knows what it was told before."""
        return self._process is not None and self._process.poll() is None

    @property
    def number(self) -> int | None:
        """The number that the system gave the process; None if there is none."""
        return None if self._process is None else self._process.pid

    def ask(
        self, question: Question, limit: float, payload: bytes = b"", give_up: Callable[[], bool] | None = None
    ) -> tuple[Answer, bytes]:
        """The answer and its bytes; ``Failed`` if the process dies of the question, or takes over ``limit`` seconds.

        ``give_up``: asked meanwhile; where it says so, the process ends, and the answer is ``INTERRUPTED``.
        """
        if self._closed:
            return CLOSED, b""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        # A process that died has closed its pipes; why shows when its answer is awaited.
        with suppress(BrokenPipeError):
            send(process.stdin, question, limit, payload)
        if not _readable(process.stdout.fileno(), limit, give_up):
            self.stop()
            if give_up is not None and give_up():
                return INTERRUPTED, b""
            return Failed(FailureKind.TIMEOUT, f"no answer within {limit:.3g} s"), b""
        received = receive(process.stdout)
        if received is None:
            return self._died(process), b""
        return cast("Answer", received.message), received.payload

    def stop(self) -> None:
        """Ends the process, whatever it does, and those that it started."""
        process, self._process = self._process, None
        if process is None:
            return
        end_session(process.pid)
        clear_folders(process.pid)
        process.wait()
        for stream in (process.stdin, process.stdout):
            assert stream is not None
            with suppress(BrokenPipeError):
                stream.close()

    def __enter__(self) -> Process:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the process for good, and what another thread asks it."""
        self._closed = True
        self.stop()
        self._log.close()

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.stop()
            self._log.seek(0)
            self._log.truncate()
            # A session of its own: what ends a person's command must not end trials in flight.  Signals wait until the
            # process ignores them: the threads of a process hand on which ones do.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
            try:
                self._process = self._popen()
            finally:
                signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return self._process

    def _popen(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            start_new_session=True,
        )

    def _died(self, process: subprocess.Popen[bytes]) -> Failed:
        deadline = time.monotonic() + 5.0
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        status = process.poll()
        self.stop()
        if self._closed:
            return CLOSED
        self._log.seek(0)
        words = self._log.read().decode(errors="replace").strip()
        if "MemoryError" in words or "bad_alloc" in words:
            return Failed(FailureKind.MEMORY, "the process ran out of memory")
        how = f"exit status {status}" if status is None or status >= 0 else _signal_name(-status)
        if status == -signal.SIGKILL:
            return Failed(FailureKind.LOST, KILLED)
        last = f": {words[-_LAST_WORDS:]}" if words else ""
        return Failed(FailureKind.CRASH, f"the process died ({how}){last}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _readable(descriptor: int, seconds: float, give_up: Callable[[], bool] | None) -> bool:
    """Whether something can be read within so many seconds, and before ``give_up`` says so."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        if poll.poll(1e3 * (left if give_up is None else min(left, _LOOKING))):
            return True
        if give_up is not None and give_up():
            return False
    return bool(poll.poll(0))
