"""``Bench``: what a process that measures does when it is asked."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from contextlib import ExitStack
from typing import Final

import numpy as np

import tc
from benchmarks.measuring.clock import clock_for, kind_of
from benchmarks.measuring.judge import deviation_of_ours, deviation_of_peer, judge
from benchmarks.measuring.messages import (
    Calibrate,
    CheckAgain,
    Judge,
    Measure,
    MeasureRoofs,
    Prepare,
    Question,
    Ready,
    Refused,
    Sample,
)
from benchmarks.measuring.prepared import Prepared, prepare
from benchmarks.problems.case import Case
from benchmarks.problems.problem import Array
from tc.base.environment import environment
from tc.base.errors import TCError
from tc.reference.kept import kept_results
from tc.targets.options_json import to_json
from tc.targets.target import parse_cpu_target
from tc.tuner.roofline.roofline import Roofs

# On processors: NumPy's product of two square matrices of this size fits into the caches and uses every core.
CALIBRATION_SIZE: Final = 384


class Bench:
    """Holds what was prepared last, and measures it."""

    def __init__(self, threads: int) -> None:
        tc.set_threads(threads)
        self._threads = threads
        self._target = environment().target or "cpu"
        self._call: Callable[[], object] | None = None
        self._waits = True
        # What the calibrating kernel works on, as long as the process lives.
        self._held = ExitStack()
        self._check: Callable[[], float | Refused] | None = None
        self._arguments: tuple[Array, ...] = ()
        self._arguments_of: tuple[Case, int] | None = None

    def answer(self, question: Question[object]) -> object:
        """The answer to any question of ``benchmarks.measuring.messages``."""
        match question:
            case Judge(case, folder, seed):
                return judge(case, folder, seed)
            case Prepare():
                return self._prepare(question)
            case CheckAgain():
                return self._checked(0.0, None)
            case Calibrate():
                return self._calibrate()
            case Measure(seconds):
                return self._measure(seconds)
            case MeasureRoofs():
                return self._roofs()
            case _:
                raise TypeError(f"there is no answer to {question!r}")

    def _prepare(self, question: Prepare) -> Ready | Refused:
        self._call = self._check = None
        self._make_arguments(question)
        begun = time.perf_counter()
        try:
            prepared = prepare(question, self._arguments, gpu=kind_of(self._target) == "cuda")
        except TCError as error:
            return Refused(f"{type(error).__name__}: {error}")
        if isinstance(prepared, Refused):
            return prepared
        expected = kept_results(question.folder)
        compare = deviation_of_ours if question.contender.is_ours else deviation_of_peer
        self._call, self._waits = prepared.call, prepared.waits
        self._check = lambda: compare(prepared.results(), expected)
        prepared.call()
        return self._checked(time.perf_counter() - begun, prepared)

    def _make_arguments(self, question: Prepare) -> None:
        """Makes the arguments, unless those at hand are the same."""
        wanted = (question.case, question.seed)
        if self._arguments_of != wanted:
            self._arguments, self._arguments_of = (), wanted
            self._arguments = tuple(question.case.problem.arguments(question.case.sizes, question.seed).values())

    def _checked(self, seconds: float, prepared: Prepared | None) -> Ready | Refused:
        assert self._check is not None, "nothing was prepared"
        deviation = self._check()
        if isinstance(deviation, Refused):
            return deviation
        if prepared is None or prepared.kernel is None:
            return Ready(seconds, deviation)
        kernel = prepared.kernel
        stages = {stage.name: stage.seconds for stage in kernel.stages}
        source = hashlib.sha256(kernel.source.encode()).hexdigest()
        return Ready(seconds, deviation, to_json(kernel.options), stages, source)

    def _calibrate(self) -> Ready:
        if kind_of(self._target) == "cuda":
            from tc.tuner.roofline.cuda_roofs import roof_kernels

            self._call, self._waits = self._held.enter_context(roof_kernels()).multiply_add, False
        else:
            matrix = np.ones((CALIBRATION_SIZE, CALIBRATION_SIZE), np.float32)
            self._call, self._waits = (lambda: matrix @ matrix), True
        return Ready(0.0, 0.0)

    def _measure(self, seconds: float) -> Sample:
        assert self._call is not None, "nothing was prepared"
        return clock_for(self._target, waits=self._waits)(self._call, seconds)

    def _roofs(self) -> Roofs:
        if kind_of(self._target) == "cuda":
            from tc.tuner.roofline.cuda_roofs import measure_cuda_roofs

            return measure_cuda_roofs()
        from tc.tuner.roofline.roofs import measure_roofs

        return measure_roofs(parse_cpu_target(self._target), self._threads)
