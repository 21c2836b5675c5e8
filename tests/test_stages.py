"""Operands that are copied ahead of their use, into slots that the iterations of the loop over tiles take in turn."""

from __future__ import annotations

import re
from dataclasses import replace
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.reference.compare import compare
from tests.translated import translated
from tests.turns import every

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
ONE = tc.GpuOptions(tc.ScheduleOptions(tile=(32, 32, 16)), block=(16, 8))


def staged(stages: int) -> tc.GpuOptions:
    return replace(ONE, stages=stages)


def kernel(stages: int, target: str = "cuda:sm_90", k: int = 128) -> Kernel:
    pytest.importorskip("cuda.bindings")
    return MM.compile((64, k), (k, 64), target=target, options=staged(stages))


def test_a_barrier_less_and_a_slot_more_for_every_stage() -> None:
    usual = kernel(1)
    assert usual.source.count("__syncthreads();") == 2
    (before,) = usual.resources.grids
    for stages in (2, 3, 4):
        source = kernel(stages).source
        prologue, inside = re.split(r"for \(int c0 = 0; c0 < 8; c0 \+= 1\) \{\s+if \(c0 <= ", source)
        for part in (prologue, inside):  # a barrier in each iteration, and in each one that only copies
            assert part.count("__syncthreads();") == 1
            assert part.count(f"tc_arrived<{stages - 2}>();") == 1
        assert (f"% {stages})" if stages == 3 else f"& {stages - 1})") in source  # of powers of two, a mask
        (grid,) = kernel(stages).resources.grids
        assert grid.shared // before.shared == stages


@pytest.mark.parametrize("stages", [2, 3])
def test_a_group_is_awaited_at_a_later_barrier_than_the_one_before(stages: int) -> None:
    def at_the_same(tree: ScheduleTree, scop: Scop, **how: bool) -> tuple[ScheduleTree, Scop]:
        tree, scop = place_barriers(tree, scop, **how)
        (barrier,) = scop.barriers
        same = isl.Map.identity(barrier.get_space().map_from_set())
        later = {name: replace(own, pending=own.pending + 1, next=same) for name, own in scop.awaits.items()}
        return tree, replace(scop, awaits=later)

    with (
        patch("tc.polyhedral.grid_passes.place_barriers", at_the_same),
        pytest.raises(tc.VerificationError, match="what is copied may arrive after it is read"),
    ):
        MM.compile((64, 128), (128, 64), target="emulator", options=staged(stages))


def test_pieces_are_copied_asynchronously() -> None:
    nvrtc = pytest.importorskip("cuda.bindings.nvrtc")

    def ptx(architecture: str) -> bytes:
        _, program = nvrtc.nvrtcCreateProgram(kernel(2).source.encode(), b"kernel.cu", 0, [], [])
        flags = [f"--gpu-architecture=compute_{architecture}".encode(), b"-default-device", b"--std=c++20"]
        assert int(nvrtc.nvrtcCompileProgram(program, len(flags), flags)[0]) == 0
        _, size = nvrtc.nvrtcGetPTXSize(program)
        text = bytes(size)
        nvrtc.nvrtcGetPTX(program, text)
        return text

    modern = ptx("80")
    assert (
        len(re.findall(rb"cp\.async\.cg\.shared\.global .*, 16;", modern)) == 4
    )  # of two operands, before the loop and in it
    assert b"cp.async.wait_group 0;" in modern
    turing = ptx("75")
    assert b"cp.async" not in turing
    assert turing.count(b"st.shared.v4") == 4


def test_loops_of_one_iteration_have_nothing_to_copy_ahead() -> None:
    assert kernel(3, k=16).source == kernel(1, k=16).source


@pytest.mark.parametrize("stages", every(3, [3, 2, 5]))
@pytest.mark.parametrize("type", every(4, ["float", "double", "half", "int8"]))
def test_results_are_those_of_the_oracle(type: str, stages: int) -> None:
    definition = tc.define(f"def mm({type}(M,K) A, {type}(K,N) B) -> (C) {{ C(m,n) +=! A(m,k) * B(k,n) }}").mm
    random = np.random.default_rng(stages)
    # Fewer tiles than stages, as many, more; whole pieces, and none.
    for m, k, n in ((33, 20, 36), (40, 80, 64), (35, 97, 31)):
        a, b = (random.integers(-3, 4, shape).astype(definition_type(type)) for shape in ((m, k), (k, n)))
        found = definition(a, b, target="emulator", options=staged(stages))
        assert compare(definition.oracle(a, b)["C"], np.asarray(found)).ok, (m, k, n)


def definition_type(type: str) -> str:
    return {"float": "float32", "half": "float16", "double": "float64"}.get(type, type)


def test_triangles_have_a_barrier_in_every_iteration() -> None:
    """Rows with few tiles end before the first tile is there that was copied ahead for rows with many."""
    triangle = tc.define("def f(float(N,N) A, float(N,N) B) -> (C) { C(i,j) +=! A(i,k) * B(k,j) where k in 0:i+1 }").f
    a, b = (np.random.default_rng(n).standard_normal((45, 45), np.float32) for n in range(2))
    for stages in (2, 4):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(8, 4), stages=stages)
        found = triangle(a, b, target="emulator", options=options)
        assert compare(triangle.oracle(a, b)["C"], np.asarray(found)).ok


def test_stages_are_few() -> None:
    for stages in (0, 9, 2.0):
        with pytest.raises(tc.OptionsError, match="stages must be an integer from 1 to 8, got"):
            staged(stages)  # type: ignore[arg-type]


def test_the_number_of_stages_has_a_default() -> None:
    """As many as there is room for, four at most, and no more than there are tiles."""
    for k, shared, stages in (
        (128, 48 << 10, 4),
        (128, 16 << 10, 3),
        (128, 8 << 10, 1),
        (48, 48 << 10, 3),
        (16, 48 << 10, 1),
    ):
        usual = replace(ONE, stages=None, shared_memory=shared)
        found, expected = (
            translated(MM, (64, k), (k, 64), target="cuda:sm_90", options=options).source.text
            for options in (usual, replace(usual, stages=stages))
        )
        assert found == expected
