"""Streams of tiles as NVRTC compiles them, run on this machine; ``test_simulated.py`` names this file to pytest."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tc
import tc.graph
from tc.base.types import ScalarType
from tc.graph.settings import Settings
from tc.reference.compare import compare
from tc.runtime.cuda import nvrtc
from tests.cuda.nvrtc_ptx import ptx_of
from tests.cuda.simulator import simulator
from tests.polyhedral.gpu.tensor.products import operands, product
from tests.turns import every, every_row

GPU = simulator()
COMPILE = nvrtc.compile_cuda
TARGET = "cuda:sm_90a"
OPTIONS = tc.GpuOptions(
    tc.ScheduleOptions(tile=(64, 64, 64)), stages=2, shared_memory=64 << 10, tensor_cores=tc.TensorCores.STREAMS
)
# Twice a product, in tiles of 64 by 64.
TWICE = """def twice(float16(M,K) A, float16(K,N) B) -> (C) {
    S(m,n) +=! float32(A(m,k)) * float32(B(k,n))
    C(m,n) = float16(2.0 * S(m,n)) }"""


def compile_and_translate(source: str, architecture: str) -> Any:
    """The binary; from now on it does what its PTX does."""
    binary = COMPILE(source, architecture)
    GPU.translate(binary.code, ptx_of(source, architecture))
    return binary


@pytest.fixture(autouse=True)
def translating(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "compile_cuda", compile_and_translate)
    GPU.failures.clear()


@pytest.mark.parametrize(
    ("layout", "sizes", "type"),
    every_row(
        3, [("AB'", (70, 72, 208), "float16"), ("AB", (70, 72, 192), "bfloat16"), ("A'B", (72, 136, 80), "float16")]
    ),
)
def test_streams_agree_with_the_oracle(layout: str, sizes: tuple[int, int, int], type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, *sizes)
    kernel = f.compile(*arrays, target=TARGET, options=OPTIONS)
    assert "cp.async.bulk.tensor" in kernel.source
    found: Any = f(*(tc.to_device(array) for array in arrays), target=TARGET, options=OPTIONS)
    assert compare(f.oracle(*arrays)["C"], found.numpy()).ok
    assert not GPU.failures


MISTAKES = {
    "no arrival behind uses": (r"mbarrier\.arrive\.shared::cta\.b64 _, \[(%r\d+)\];", ""),
    "fewer bytes": (r"(mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%r\d+\], )(%r\d+|\d+);", r"\1 8192;"),
    "more bytes": (r"(mbarrier\.arrive\.expect_tx\.shared::cta\.b64 _, \[%r\d+\], )(%r\d+|\d+);", r"\1 32768;"),
    "no fence": (r"fence\.proxy\.async\.shared::cta;", ""),
    "fewer warps leave": (r"(mbarrier\.init\.shared::cta\.b64 \[%r\d+\], )(%r\d+);", r"\1 1;"),
    "products are not awaited": (r"wgmma\.wait_group\.sync\.aligned 1", "wgmma.wait_group.sync.aligned 2"),
}


@pytest.mark.parametrize("mistake", every(3, ["", *MISTAKES]))
def test_mistakes_in_streams_are_noticed(mistake: str) -> None:
    """A kernel that uses slots at the wrong time fails, waits for ever, or computes something else."""
    f, arrays = product("AB'", "float16"), operands("AB'", "float16", 64, 64, 320)
    kernel = f.compile(*arrays, target=TARGET, options=OPTIONS)
    if mistake:
        pattern, instead = MISTAKES[mistake]
        changed, count = re.subn(pattern, instead, ptx_of(kernel.source, "sm_90a"))
        assert count
        GPU.translate(kernel.executable.binary.code, changed)
    right = []
    for _ in range(3):
        try:
            found: Any = f(*(tc.to_device(array) for array in arrays), target=TARGET, options=OPTIONS)
            right.append(compare(f.oracle(*arrays)["C"], found.numpy()).ok)
        except tc.DeviceError:
            right.append(False)
    assert all(right) == (not mistake)


def test_streams_run_in_graphs_of_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes of the driver's graphs have their arguments one by one, too, and are given other arrays later."""
    monkeypatch.setattr("tc.api.kernels.default_options", lambda _target, _numerics: OPTIONS)
    builder, halves = tc.graph.Builder("halves"), ScalarType.FLOAT16
    x, y = builder.input("x", halves, (64, 128)), builder.input("y", halves, (128, 128))
    (first,) = builder.call(TWICE, x, y)
    made = builder.call(TWICE, first, y)
    model = tc.graph.Model.of(builder.finish(list(made)), Settings(target=TARGET))
    GPU.log()
    kept: list[tuple[object, object]] = []
    for seed in range(2):
        a, b = operands("AB", "float16", 64, 128, 128, seed)
        a, b = a / np.float16(16), b / np.float16(16)
        kept.append((tc.to_device(a), tc.to_device(b)))  # the next ones are elsewhere
        found: Any = model(*kept[-1])
        c = np.float32(2) * a.astype(np.float32) @ b
        np.testing.assert_allclose(found.numpy().astype(np.float32), 2 * c @ b, rtol=0.05, atol=0.05)
    assert not GPU.failures
    calls = [line.split()[0] for line in GPU.log()]
    names = ("GraphAddKernelNode", "GraphLaunch", "GraphExecKernelNodeSetParams")
    assert [calls.count(f"cu{name}") for name in names] == [2, 2, 2]
    assert "cuTensorMapEncodeTiled" in calls
