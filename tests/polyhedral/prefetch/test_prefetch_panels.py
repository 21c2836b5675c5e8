"""Register tiles ask for what their lanes read of large packed operands some steps later."""

from __future__ import annotations

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import LoopProgram, Use
from tc.polyhedral.pipeline import map_program
from tc.targets.options import CpuOptions
from tests.polyhedral.events import Asked, events
from tests.polyhedral.support import MACHINE, specialized

TURNED = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
SHAPES = ((16, 150), (128, 150))
STEPS = """
def f(float(T,B,H) x, float(H,H) U, float(B,H) h0) -> (h) {
    h(0,b,i) = h0(b,i)
    for t in 0:T {
        q(b,i) +=! h(t,b,j) * U(i,j)
        h(t+1,b,i) = tanh(q(b,i) + x(t,b,i))
    }
}"""


def asked(program: LoopProgram) -> list[tuple[str, int]]:
    return [
        (event.prefetch.tensor, event.offset)
        for event in events(program.root, {}, instances=False)
        if isinstance(event, Asked) and event.prefetch.use is Use.SOON
    ]


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large."""
    monkeypatch.setattr("tc.polyhedral.prefetch.register_tiles._LARGE_BYTES", 0)


@pytest.mark.usefixtures("small_caches")
def test_lines_are_asked_for_sixteen_steps_ahead() -> None:
    program = map_program(specialized(TURNED, SHAPES), CpuOptions(register_tile=(4, 16)), MACHINE).loops
    requests = asked(program)
    (packed,) = (buffer for buffer in program.promoted if buffer.name.startswith("packed"))
    assert {tensor for tensor, _ in requests} == {packed.name}
    panel, _, step = packed.layout.strides
    assert [offset for _, offset in requests[:3]] == [16 * step, 17 * step, 18 * step]
    assert {offset // panel for _, offset in requests} >= set(range(packed.layout.shape[0]))


@pytest.mark.usefixtures("small_caches")
@pytest.mark.parametrize(
    ("options", "shapes"),
    [
        (CpuOptions(register_tile=(4, 16), block_prefetch=0), SHAPES),
        (CpuOptions(register_tile=(4, 16), packed_operands=0), SHAPES),
        (CpuOptions(register_tile=(4, 16)), ((16, 16), (64, 16))),
    ],
    ids=["none may be", "nothing is packed", "it is no panels"],
)
def test_nothing_is_asked_for_where(options: CpuOptions, shapes: tuple[tuple[int, ...], ...]) -> None:
    assert asked(map_program(specialized(TURNED, shapes), options, MACHINE).loops) == []


def test_operands_that_stay_in_the_cache_are_not_asked_for() -> None:
    assert asked(map_program(specialized(TURNED, SHAPES), CpuOptions(), MACHINE).loops) == []


def test_large_operands_of_all_steps_are_asked_for() -> None:
    shapes = ((3, 8, 640), (640, 640), (8, 640))
    f, random = tc.define(STEPS).single(), np.random.default_rng(0)
    x, u, h = (random.standard_normal(shape).astype(np.float32) * np.float32(0.1) for shape in shapes)
    kernel = f.compile(x, u, h)
    assert any("packed" in line and "__builtin_prefetch" in line for line in kernel.source.splitlines())
    np.testing.assert_allclose(np.asarray(f(x, u, h)), f.oracle(x, u, h)["h"].values, rtol=1e-4, atol=1e-5)
