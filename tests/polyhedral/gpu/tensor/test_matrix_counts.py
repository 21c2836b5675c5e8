"""What kernels with matrix instructions are predicted to ask for."""

from __future__ import annotations

import pytest

import tc
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.prediction.predict import predict
from tc.targets.devices import DEVICES
from tests.translated import translated

HALVES = tc.define("def mm(float16(M,K) A, float16(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
BYTES = tc.define("def mm(int8(M,K) A, int8(N,K) B) -> (C) { C(m,n) +=! int32(A(m,k)) * int32(B(n,k)) }").single()
SIZE = 512


@pytest.mark.parametrize(("definition", "steps"), [(HALVES, 16), (BYTES, 32)])
def test_instructions_are_counted(definition: tc.Comprehension, steps: int) -> None:
    loops = translated(definition, (SIZE, SIZE), (SIZE, SIZE), target="cuda:sm_80").mapped.loops
    (count,) = count_kernels(loops)
    assert count.demand.matrix == SIZE**3 / (16 * 8 * steps)
    assert count.demand.tensor == count.demand.matrix * 16 * 8 * 16
    assert count.demand.shared_reads < count.demand.matrix


def test_matrix_instructions_are_quicker_than_others() -> None:
    own = DEVICES["A100"]
    seconds = [
        predict(
            count_kernels(
                translated(
                    HALVES, (2048, 2048), (2048, 2048), target="cuda:sm_80", options=tc.GpuOptions(tensor_cores=cores)
                ).mapped.loops
            ),
            own,
        ).seconds
        for cores in (tc.TensorCores.WARPS, tc.TensorCores.NONE)
    ]
    assert seconds[0] < seconds[1] / 3


def test_blocks_at_borders_are_whole() -> None:
    loops = translated(HALVES, (70, 50), (50, 66), target="cuda:sm_80").mapped.loops
    (count,) = count_kernels(loops)
    assert count.demand.matrix >= 70 * 66 * 50 / (16 * 8 * 16)
