"""Register tiles ask, before they compute, for the lines of large results that they store."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import LINE_BYTES, LoopProgram, Use
from tc.polyhedral.pipeline import map_program
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.enumeration import subscript_value
from tests.polyhedral.events import Asked, Run, events
from tests.polyhedral.support import MACHINE, MATMUL, specialized
from tests.turns import every

CONVOLUTION = """
def conv(float(N,C,H,W) X, float(F,C,KH,KW) K) -> (O) {
  O(n,f,h,w) +=! X(n,c,h+p,w+q) * K(f,c,p,q)
}
"""
SHAPES = ((3, 2, 9, 37), (5, 2, 2, 3))
LAYERS = """
def layers(float(M,K) A, float(K,N) B) -> (D) {
  C(m,n) +=! A(m,k) * B(k,n)
  D(m) +=! C(m,n)
}
"""


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large."""
    monkeypatch.setattr("tc.polyhedral.prefetch.register_tiles._LARGE_BYTES", 0)


def mapped(text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions) -> LoopProgram:
    return map_program(specialized(text, shapes), options, MACHINE).loops


def asked(program: LoopProgram) -> list[str]:
    return [
        e.prefetch.tensor
        for e in events(program.root, {}, instances=False)
        if isinstance(e, Asked) and e.prefetch.use is Use.STORE
    ]


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize("register_tile", every(3, [None, (2, 35), (5, 35), (3, 32), (2, 3, 16)]))
def test_every_element_is_asked_for_before_its_tile_stores_it(register_tile: tuple[int, ...] | None) -> None:
    options = CpuOptions(register_tile=register_tile)
    program = mapped(CONVOLUTION, SHAPES, options)
    layout = next(buffer.layout for buffer in program.buffers if buffer.name == "O")
    stores = {body.name: body for body in program.bodies if body.target == "O"}
    waiting: set[int] = set()
    stored = 0
    for event in events(program.root, {}, instances=True):
        match event:
            case Asked(prefetch, offset) if prefetch.use is Use.STORE:
                assert prefetch.tensor == "O"
                waiting |= set(range(offset, offset + prefetch.lines * LINE_BYTES // 4))
            case Run(statement, point) if statement in stores:
                body = stores[statement]
                values = dict(zip(body.iterators, point, strict=True))
                subscripts = [subscript_value(subscript, values) for subscript in body.subscripts]
                assert int(np.dot(subscripts, layout.strides)) in waiting
                stored += 1
    assert stored == np.prod(layout.shape)


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(
    ("text", "shapes", "options", "why"),
    [
        (CONVOLUTION, SHAPES, CpuOptions(register_tile=(2, 35), block_prefetch=0), "none may be"),
        (CONVOLUTION, SHAPES, CpuOptions(register_tile=()), "there is no tile"),
        (CONVOLUTION, SHAPES, CpuOptions(register_accumulators=0), "there is no tile"),
        (MATMUL, ((32, 9), (9, 64)), CpuOptions(register_tile=(32, 8), vector_axis=0), "rows are shorter than a line"),
        (MATMUL, ((64, 9), (9, 64)), CpuOptions(register_tile=(32, 64)), "too many lines for a tile"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and len(value) < 60 else "",
)
def test_nothing_is_asked_for_where(
    text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions, why: str
) -> None:
    assert asked(mapped(text, shapes, options)) == [], why


@pytest.mark.usefixtures("small_caches")
def test_what_is_read_later_is_asked_for_too() -> None:
    options = CpuOptions(ScheduleOptions(fusion=Fusion.MINIMAL), register_tile=(2, 32))
    assert set(asked(mapped(LAYERS, ((8, 9), (9, 64)), options))) == {"C"}


def test_small_results_stay_in_the_cache() -> None:
    program = map_program(specialized(CONVOLUTION, SHAPES), CpuOptions(register_tile=(2, 35)), MACHINE).loops
    assert asked(program) == []


@pytest.mark.usefixtures("small_caches")
def test_requests_are_printed_and_change_nothing() -> None:
    generator = np.random.default_rng(0)
    x, k = (generator.integers(-3, 4, shape).astype(np.float32) for shape in SHAPES)
    conv = tc.define(CONVOLUTION).conv
    plain, asking = (
        conv.compile(x, k, options=CpuOptions(register_tile=(2, 35), block_prefetch=ahead)) for ahead in (0, 1 << 17)
    )
    assert "__builtin_prefetch" not in plain.source
    assert re.search(r"__builtin_prefetch\(.*t_O.*, 1\);", asking.source)
    np.testing.assert_array_equal(plain(x, k), asking(x, k))
