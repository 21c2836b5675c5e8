"""A process that measures on one of two simulated GPUs of a kind: ``simulated_devices.py`` has some of them.

``python -m tests.cuda.simulated_process KIND MEMORY LOG``: kind and memory as of ``tc.tuner.trial.serve``; the launches
of its device are added to the file.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from tc.artifact.packing import unpack
from tc.tuner.trial import serve
from tc.tuner.trial.messages import Answer, Calibrate, Check, Question
from tests.cuda.nvrtc_ptx import ptx_of
from tests.cuda.simulator import simulator


class Simulated:
    """Runs what it is given as the C that its PTX stands for."""

    def __init__(self, handler: serve.Handler, log: Path) -> None:
        self._handler: Final = handler
        self._log: Final = log
        self._gpu: Final = simulator()
        self._gpu.alike()

    def answer(self, question: Question, payload: bytes, /) -> tuple[Answer, bytes]:
        if isinstance(question, Check | Calibrate):
            executable = unpack(payload)
            self._gpu.translate(executable.binary.code, ptx_of(executable.source, "sm_90a"))
        answered = self._handler.answer(question, payload)
        assert not self._gpu.failures, self._gpu.failures
        with self._log.open("a") as log:
            log.writelines(f"{line}\n" for line in self._gpu.log() if line.startswith("cuLaunchKernel"))
        return answered


def main(kind: str, memory: str, log: str) -> None:
    handler_of = serve._handler
    if kind == "measure":
        serve._handler = lambda kind: Simulated(handler_of(kind), Path(log))
    serve.main([kind, memory])


if __name__ == "__main__":
    main(*sys.argv[1:])
