"""The kernels in which mistakes are made: the corpus, with options under which threads work together."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any
from unittest.mock import patch

import numpy as np

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral import pipeline
from tc.polyhedral.attempts import Attempt, next_attempt
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import fitting
from tests.mutants.judge import Given, Verdict, judge, mistakes
from tests.mutants.mistakes import Mistake

OPTIONS = {
    "tiles": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), split_k_threads=(), stages=1),
    "copied ahead": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), split_k_threads=(), stages=2),
    "copied two tiles ahead": tc.GpuOptions(
        tc.ScheduleOptions(tile=(8, 8, 2)), block=(4, 2), split_k_threads=(), stages=3
    ),
    "operands in registers": tc.GpuOptions(
        tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), register_operands=64, split_k_threads=(), stages=1
    ),
    "partial results": tc.GpuOptions(split_k_threads=(4,), register_accumulators=0),
    "partial results in lanes": tc.GpuOptions(split_k_threads=(32,), register_accumulators=0),
    "default": tc.GpuOptions(),
    "rows in shared memory": tc.GpuOptions(block=(2,), split_k_threads=()),
    "blocks share sums": tc.GpuOptions(split_k_threads=(), split_k_blocks=4),
    "blocks and lanes share sums": tc.GpuOptions(split_k_threads=(32,), split_k_blocks=3),
}
# Of inputs, until a result is wrong.
_DRAWS = 300


@dataclass(frozen=True, slots=True)
class Judged:
    """A mistake, in the words of a person, and what became of it."""

    name: str
    verdict: Verdict


def judged(case: Case, options: tc.GpuOptions, named: str = "", step: int = 1) -> Iterator[Judged]:
    """Every so many of the mistakes in the kernel of a case that have this in their names."""
    for made in islice(_made(case, options), 0, None, step):
        if named not in made.mistake.name:
            continue
        others = (given_of(case, draw) for draw in range(1, _DRAWS))
        verdict = judge(case.text, made.definition, made.given, made.options, made.mistake, made.without, others)
        yield Judged(f"{case.name}: {made.mistake.name}", verdict)


def mistake_names(case: Case, options: tc.GpuOptions) -> list[str]:
    """What the mistakes are called that can be made in the kernel of a case."""
    return [made.mistake.name for made in _made(case, options)]


@dataclass(frozen=True, slots=True)
class _Made:
    definition: str
    given: Given
    options: tc.GpuOptions
    mistake: Mistake
    without: Kernel


def _made(case: Case, options: tc.GpuOptions) -> Iterator[_Made]:
    """Contents are random, so that what is lost changes a result."""
    definitions = tc.define(case.text)
    definition = case.definition or definitions.single().name
    given = given_of(case, 0)
    comprehension = definitions[definition]

    def with_options(fit: tc.GpuOptions) -> tuple[tc.GpuOptions, Kernel]:
        """The kernel, and the options that it has, where there are fewer buffers than these ask for."""
        taken = [fit]

        def noted(*arguments: Any) -> Attempt:
            attempt = next_attempt(*arguments)
            assert isinstance(attempt.options, tc.GpuOptions)
            taken.append(attempt.options)
            return attempt

        with patch.object(pipeline, "next_attempt", noted):
            kernel = comprehension.compile(*given.inputs.values(), target="emulator", options=fit)
        return taken[-1], kernel

    chosen, kernel = fitting(with_options, options)
    for mistake in mistakes(case.text, definition, given, chosen):
        yield _Made(definition, given, chosen, mistake, kernel)


def given_of(case: Case, draw: int) -> Given:
    """Arguments of a case at ragged sizes, drawn for the so manyth time."""
    rng = np.random.default_rng([zlib.crc32(case.name.encode()), draw])
    sizes = case.large_ragged_sizes
    return Given(case.make_inputs(rng, sizes), case.make_outputs(rng, sizes))


def case_named(name: str) -> Case:
    return next(case for case in CASES if case.name == name)
