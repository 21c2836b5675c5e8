"""Loops that fill a large tensor with a number ask for the lines that they store some iterations later."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import LINE_BYTES, LoopProgram, Use
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.prefetch import prefetch_fills
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.enumeration import subscript_value
from tests.polyhedral.events import Asked, Run, events
from tests.polyhedral.support import MACHINE, specialized
from tests.turns import every

SCATTER = "def f(float(B,D) v, int32(B) I) -> (y) { y(I(b),d) +=! v(b,d) where I(b) in 0:50 }"
ROWS = "def rows(float(N,M) x) -> (y) { y(n,m) = 7.0 where n in 0:N, m in 0:M }"
COPY = "def copied(float(N,M) x) -> (y) { y(n,m) = x(n,m) }"
TURNED = "def turned(float(N,M) x) -> (y) { y(n,M-1-m) = 7.0 where n in 0:N, m in 0:M }"


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large."""
    monkeypatch.setattr(prefetch_fills, "_LARGE_BYTES", 0)


def mapped(text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions | None = None) -> LoopProgram:
    return map_program(specialized(text, shapes), options or CpuOptions(), MACHINE).loops


def asked(program: LoopProgram) -> list[str]:
    found = (e for e in events(program.root, {}, instances=False) if isinstance(e, Asked))
    return [e.prefetch.tensor for e in found if e.prefetch.use is Use.STORE]


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("shape", every(2, [(40, 64), (7, 33), (3, 256), (3, 257), (2, 1000), (1, 5000)]))
def test_every_line_but_the_first_ones_is_asked_for_before_it_is_filled(shape: tuple[int, int]) -> None:
    program = mapped(ROWS, (shape,))
    (layout,) = (buffer.layout for buffer in program.buffers if buffer.name == "y")
    (body,) = (body for body in program.bodies if body.target == "y")
    waiting: set[int] = set()
    filled, missed = 0, 0
    for event in events(program.root, {}, instances=True):
        match event:
            case Asked(prefetch, offset):
                assert (prefetch.tensor, prefetch.use) == ("y", Use.STORE)
                assert prefetch.lines <= prefetch_fills._AHEAD_BYTES // LINE_BYTES
                waiting |= set(range(offset, offset + prefetch.lines * LINE_BYTES // 4))
            case Run(_, point):
                values = dict(zip(body.iterators, point, strict=True))
                place = int(np.dot([subscript_value(own, values) for own in body.subscripts], layout.strides))
                filled, missed = filled + 1, missed + (place not in waiting)
    assert filled == np.prod(shape)
    assert missed <= max(min(shape[1], 256), prefetch_fills._AHEAD_BYTES // 4)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(
    ("text", "options", "why"),
    [
        (ROWS, CpuOptions(block_prefetch=0), "none may be"),
        (ROWS, CpuOptions(vectorize=False), "there are no lanes"),
        (COPY, CpuOptions(), "the hardware follows what is read"),
        (TURNED, CpuOptions(), "lanes go back"),
    ],
)
def test_nothing_is_asked_for_where(text: str, options: CpuOptions, why: str) -> None:
    assert asked(mapped(text, ((9, 300),), options)) == [], why


def test_small_results_stay_in_the_cache() -> None:
    assert asked(mapped(ROWS, ((9, 300),))) == []


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("width", [64, 700])
def test_sums_begin_with_a_fill(width: int) -> None:
    generator = np.random.default_rng(0)
    v = generator.integers(-3, 4, (11, width)).astype(np.float32)
    index = generator.integers(0, 50, 11).astype(np.int32)
    f = tc.define(SCATTER).f
    apart = ScheduleOptions(fusion=Fusion.MINIMAL)
    plain, asking = (f.compile(v, index, options=CpuOptions(apart, block_prefetch=ahead)) for ahead in (0, 1 << 17))
    assert "__builtin_prefetch" not in plain.source
    assert re.search(r"__builtin_prefetch\(.*t_y.*, 1\);", asking.source)
    np.testing.assert_array_equal(plain(v, index), asking(v, index))
    np.testing.assert_array_equal(asking(v, index), f.reference(v, index))
