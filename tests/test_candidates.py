"""Candidates: kernels for the same arguments with different options share dependences and schedules."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import tc
import tc.polyhedral.schedules
from tests.arrays import array, whole
from tests.stress import in_child

TEXT = """
def layers(float(M,K) A, float(N,K) B, float(N) b) -> (C, D) {
    C(m,n) +=! A(m,k) * B(n,k)
    D(m,n) = fmax(C(m,n) + b(n), 0)
}
"""
SHAPES = ((33, 7), (129, 7), (129,))
OPTIONS = [
    tc.CpuOptions(tc.ScheduleOptions(fusion=fusion, tile=tile), packed_operands=packed)
    for fusion, tile, packed in itertools.product(tc.Fusion, (None, (8, 16)), (0, 1 << 12))
]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often the shared steps were done."""
    counts = Counter[str]()

    def counted(name: str) -> Callable[..., object]:
        step: Callable[..., object] = getattr(tc.polyhedral.schedules, name)

        def run(*arguments: object) -> object:
            counts[name] += 1
            return step(*arguments)

        return run

    for name in ("build_scop", "schedule_scop"):
        monkeypatch.setattr(tc.polyhedral.schedules, name, counted(name))
    return counts


def test_dependences_and_schedules_are_computed_once(made: Counter[str]) -> None:
    candidates = tc.define(TEXT).layers.candidates(*SHAPES)
    tried = OPTIONS[::2]
    kernels = [candidates.compile(options) for options in tried]
    assert made == {"build_scop": 1, "schedule_scop": len(tc.Fusion)}
    assert [kernel.asked for kernel in kernels] == tried
    for options, kernel in list(zip(tried, kernels, strict=True))[::3]:
        alone = tc.define(TEXT).layers.compile(*SHAPES, options=options)
        assert (kernel.schedule, kernel.source) == (alone.schedule, alone.source)


def test_candidates_are_the_kernels_of_their_definition() -> None:
    layers = tc.define(TEXT).layers
    a, b, bias = (whole(*shape) for shape in SHAPES)
    candidates = layers.candidates(a, b, bias)
    assert candidates.compile() is layers.compile(a, b, bias) is candidates.compile(target="cpu")
    assert candidates.compile(OPTIONS[0]) is layers.compile(a, b, bias, options=OPTIONS[0])
    results = candidates.compile(OPTIONS[0])(a, b, bias)
    assert isinstance(results, tuple)
    assert (array(results[0]) == a @ b.T).all()
    options: Any = {}
    with pytest.raises(tc.OptionsError, match=r"options must be tc\.CpuOptions"):
        candidates.compile(options)


def test_candidates_from_many_threads_and_after_a_fork() -> None:
    candidates = tc.define(TEXT).layers.candidates(*SHAPES)
    with ThreadPoolExecutor(4) as threads:
        sources = [kernel.source for kernel in threads.map(candidates.compile, OPTIONS[:4])]
    assert sources == [candidates.compile(options).source for options in OPTIONS[:4]]

    def child() -> None:
        for options in OPTIONS[4:6]:
            assert "tc_kernel" in candidates.compile(options).source

    in_child(child)


def test_a_candidate_that_fails_spoils_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    candidates = tc.define(TEXT).layers.candidates(*SHAPES)

    def refuse(*_arguments: object) -> object:
        raise tc.CompileError("no more")

    with monkeypatch.context() as broken:
        broken.setattr(tc.polyhedral.pipeline, "prove", refuse)
        with pytest.raises(tc.CompileError, match="no more"):
            candidates.compile()
    assert candidates.compile().source == tc.define(TEXT).layers.compile(*SHAPES).source
