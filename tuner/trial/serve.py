"""A process that tries candidates: ``python -m tc.tuner.trial.serve build`` or ``measure``, asked through its pipes."""

from __future__ import annotations

import os
import resource
import signal
import sys
from typing import IO, Final, Protocol, cast

from tc.tuner.trial.messages import Answer, Question, receive, send
from tc.tuner.trial.process_tree import ENDING

# Whoever asks gives up first; this only ends processes whose answer is not awaited any more.
_GRACE: Final = 10.0


class Handler(Protocol):
    """What answers the questions of one kind of process."""

    def answer(self, question: Question, payload: bytes, /) -> tuple[Answer, bytes]:
        """The answer, and its bytes."""
        ...


def serve(handler: Handler, questions: IO[bytes], answers: IO[bytes]) -> None:
    """Answers until the questions end; a question that takes much longer than its limit ends the process."""
    while (received := receive(questions)) is not None:
        signal.setitimer(signal.ITIMER_REAL, received.limit + _GRACE)
        answer, content = handler.answer(cast("Question", received.message), received.payload)
        signal.setitimer(signal.ITIMER_REAL, 0)
        send(answers, answer, payload=content)


def main(arguments: list[str]) -> None:
    """``kind memory``: bytes that the process may have (0: any number)."""
    kind, memory = arguments
    if int(memory):
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    # What kernels and compilers print must not look like answers.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    # Slurm and systemd send these to all processes of a job.  Whoever asks says when it is over, by closing the pipe.
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    serve(_handler(kind), sys.stdin.buffer, answers)


def _handler(kind: str) -> Handler:
    match kind:
        case "build":
            from tc.tuner.trial.build_handler import BuildHandler

            return BuildHandler()
        case "measure":
            from tc.tuner.trial.measure_handler import MeasureHandler

            return MeasureHandler()
        case _:
            raise ValueError(f"there is no process of kind {kind!r}")


if __name__ == "__main__":
    main(sys.argv[1:])
