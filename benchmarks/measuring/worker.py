"""Processes that measure: each contender has one to itself, so that the threads of one do not disturb another.

Nothing here imports NumPy before the process knows its number of threads.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback
from collections.abc import Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import TypeVar

from benchmarks.measuring.messages import Question, Refused

Answer = TypeVar("Answer")


class Worker:
    """A process with ``threads`` processors of its parent's and as many threads for every library.

    ``target``: of calls that name none.  Use it in a ``with`` statement, or ``stop`` it.
    """

    def __init__(self, threads: int, target: str = "cpu") -> None:
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs, settings(threads, target), threads), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, question: Question[Answer], limit: float = 600.0) -> Answer | Refused:
        """The answer; refused when the process died or took longer than ``limit`` seconds, which ends it."""
        # A process that died closed the pipe: then there is an answer to read, or its end.
        with suppress(BrokenPipeError):
            self._connection.send(question)
        try:
            if self._connection.poll(limit):
                answer: Answer | Refused = self._connection.recv()
                return answer
        except (EOFError, ConnectionResetError):
            self._process.join(limit)
            return Refused(f"the process died with exit status {self._process.exitcode}")
        self.stop()
        return Refused(f"no answer within {limit:g} s")

    @property
    def process(self) -> int:
        """The number that the system gave the process."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process can be asked."""
        return self._process.is_alive()

    def end(self) -> None:
        """Tells the process to end, whatever it does, and does not wait for it."""
        self._process.kill()

    def stop(self) -> None:
        """Ends the process, whatever it does."""
        self.end()
        self._process.join()
        self._connection.close()

    def __enter__(self) -> Worker:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def settings(threads: int, target: str) -> dict[str, str]:
    """Environment variables that hold libraries to a number of threads."""
    counts = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "TORCHINDUCTOR_COMPILE_THREADS")
    fixed = {
        "TC_TARGET": target,
        "TC_CACHE_MODE": "off",
        "JAX_PLATFORMS": target.partition(":")[0],
        # What NVIDIA's containers set would make products of float32 inexact.
        "TORCH_ALLOW_TF32_CUBLAS_OVERRIDE": "0",
        # Else JAX takes most of a GPU's memory, which all contenders share.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
    }
    return {name: str(threads) for name in counts} | fixed


def serve(connection: Connection, variables: Mapping[str, str], threads: int) -> None:
    """The process: questions in, answers out, until the pipe is closed."""
    if "numpy" in sys.modules:
        raise RuntimeError("NumPy was imported before the number of its threads was set")
    os.environ.update(variables)
    # XLA has as many threads as processors that it may use.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    from benchmarks.measuring.bench import Bench

    bench = Bench(threads)
    with suppress(EOFError):
        while True:
            question: Question[object] = connection.recv()
            try:
                answer = bench.answer(question)
            except Exception as error:
                connection.send(Refused("".join(traceback.format_exception_only(error)).strip()))
                raise
            connection.send(answer)
