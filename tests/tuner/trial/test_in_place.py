"""Kernels that write results in the place of arguments are tried as they are called: on one array for both."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tc
from tc.artifact.definition import Parsed
from tc.artifact.packing import pack
from tc.base.environment import environment
from tc.compiler import build
from tc.dispatch.arguments import Arguments, bind
from tc.language.lower.specialize import specialize
from tc.language.program.specialization import ArraySpec, Signature
from tc.targets.options import CpuOptions
from tc.targets.target import parse_target
from tc.tuner.trial.checked_calls import keep_calls, specialized_calls
from tc.tuner.trial.measure_handler import MeasureHandler
from tc.tuner.trial.messages import Check, Checked, Done, Prepare, Time, Timed
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.trial_outcome import Failed, FailureKind

N = 1000
SPEC = ArraySpec((N,), tc.ScalarType.FLOAT32)
TEXT = "def step(float(N) A, float(N) B) -> (C, D) {{ D(i) = A(i) + B(i)  C(i) = {factor} * A(i) + B(i) }}"
SIGNATURE = Signature((("A", SPEC), ("B", SPEC)), results=(("C", SPEC),), aliases=(("C", "A"),))
CPU = parse_target("cpu")
TASK = Task(TEXT.format(factor=0.5), "step", SIGNATURE, str(CPU))


def packed(task: Task) -> bytes:
    program = parse_task(task)
    specialization = specialize(program, task.signature)
    return pack(build(specialization, Parsed(program).interface, CpuOptions(), CPU, environment()).executable)


@pytest.fixture
def handler(tmp_path: Path) -> MeasureHandler:
    program = parse_task(TASK)
    calls = specialized_calls(TASK, program)
    keep_calls(calls, random_arrays(program, calls[0], 0), {}, tmp_path)
    made = MeasureHandler()
    assert made.answer(Prepare(TASK, str(tmp_path), 0), b"") == (Done(), b"")
    return made


def test_it_is_checked_and_timed(handler: MeasureHandler) -> None:
    for _ in range(2):  # what was timed has changed nothing that is checked
        answer, _ = handler.answer(Check("slot"), packed(TASK))
        assert isinstance(answer, Checked)
        answer, _ = handler.answer(Time("slot", 0.01, math.inf), b"")
        assert isinstance(answer, Timed)


def test_what_is_wrong_is_found(handler: MeasureHandler) -> None:
    answer, _ = handler.answer(Check("slot"), packed(replace(TASK, text=TEXT.format(factor=0.75))))
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.WRONG


def test_repeated_calls_are_quick(handler: MeasureHandler, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is timed is the kernel: the interpreter binds the arguments of the first call only."""
    bound = []

    def counted(*given: Any) -> Arguments:
        bound.append(given)
        return bind(*given)

    monkeypatch.setattr("tc.dispatch.kernel.bind", counted)
    handler.answer(Check("slot"), packed(TASK))
    answer, _ = handler.answer(Time("slot", 0.01, math.inf), b"")
    assert isinstance(answer, Timed)
    assert len(bound) <= 2


def test_results_are_those_of_separate_arrays() -> None:
    step = tc.define(TASK.text).step
    a, b = (np.random.default_rng(seed).standard_normal(N).astype(np.float32) for seed in (0, 1))
    apart = step(a, b)
    assert isinstance(apart, tuple)
    other = np.empty_like(a)
    step.compile(a, b, in_place={"C": "A"})(a, b, out=(a, other))
    np.testing.assert_array_equal(a, apart[0])
    np.testing.assert_array_equal(other, apart[1])


def test_results_with_strides_are_checked_and_timed(tmp_path: Path) -> None:
    rows = ArraySpec((9, 7), tc.ScalarType.FLOAT32)
    wide = ArraySpec((9, 7), tc.ScalarType.FLOAT32, (20, 1))
    signature = Signature((("A", rows),), results=(("C", wide),))
    text = "def twice(float(M,N) A) -> (C, D) {{ C(i,j) = {factor} * A(i,j)  D(i,j) = A(i,j) - 1 }}"
    task = Task(text.format(factor=2), "twice", signature, str(CPU))
    program = parse_task(task)
    calls = specialized_calls(task, program)
    keep_calls(calls, random_arrays(program, calls[0], 0), {}, tmp_path)
    handler = MeasureHandler()
    assert handler.answer(Prepare(task, str(tmp_path), 0), b"") == (Done(), b"")
    answer, _ = handler.answer(Check("slot"), packed(task))
    assert isinstance(answer, Checked)
    answer, _ = handler.answer(Time("slot", 0.01, math.inf), b"")
    assert isinstance(answer, Timed)
    answer, _ = handler.answer(Check("slot"), packed(replace(task, text=text.format(factor=3))))
    assert isinstance(answer, Failed)
    assert answer.kind is FailureKind.WRONG
