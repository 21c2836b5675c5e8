"""The sources of small kernels, to be read: what the printer makes of each kind of loop and statement."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import pytest

from tc.codegen.printer.source import c_source
from tc.compiler import translate
from tc.polyhedral.ir.loops import LoopKind, LoopProgram
from tc.targets.options import GpuOptions, ScheduleOptions, TensorCores
from tc.targets.target import CudaTarget, OpenClTarget, Target, parse_target
from tests.codegen.harness import VECTOR_BYTES
from tests.codegen.kernels import matrix_product, padded_convolution, row_sums
from tests.conftest import Golden
from tests.polyhedral.support import SHAPES, specialized

PROGRAMS: Final[dict[str, LoopProgram]] = {
    "matrix_product": matrix_product(LoopKind.REDUCTION),
    "padded_convolution": padded_convolution(),
    "row_sums": row_sums(),
}
HALVES: Final = "def mm(float16(M,K) A, float16(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
KERNELS: Final = {
    **SHAPES,
    "half_matmul": (HALVES, ((32, 64), (64, 64))),
    "group_matmul": (HALVES, ((128, 256), (64, 256))),
}
# Eight shapes of programs on the languages of grids, and what other architectures make of one.
SHARED: Final = GpuOptions(ScheduleOptions(tile=(4, 4, 2)), block=(2, 2), stages=2)
STREAMED: Final = GpuOptions(ScheduleOptions(tile=(128, 64, 64)))
GROUPED: Final = replace(STREAMED, tensor_cores=TensorCores.WARPGROUPS)
GRIDS: Final[dict[str, tuple[str, GpuOptions, Target]]] = {
    **{
        f"{name}-{ending}": (name, GpuOptions(), target)
        for name in tuple(SHAPES)[:8]
        for ending, target in (("sm_90.cu", CudaTarget("sm_90")), ("opencl.cl", OpenClTarget()))
    },
    **{f"shared_matmul-{a}.cu": ("matmul", SHARED, CudaTarget(a)) for a in ("sm_80", "sm_90", "sm_100")},
    "shared_matmul-opencl.cl": ("matmul", SHARED, OpenClTarget()),
    "shared_matmul-emulator.c": ("matmul", SHARED, parse_target("emulator")),
    "half_matmul-sm_80.cu": ("half_matmul", GpuOptions(), CudaTarget("sm_80")),
    "group_matmul-sm_90a.cu": ("group_matmul", GROUPED, CudaTarget("sm_90a")),
    "stream_matmul-sm_90a.cu": ("group_matmul", STREAMED, CudaTarget("sm_90a")),
}
FILES: Final = frozenset(f"codegen/{name}" for name in (*(f"{name}.c" for name in PROGRAMS), *GRIDS))


@pytest.mark.parametrize("name", PROGRAMS)
def test_source(name: str, golden: Golden) -> None:
    golden.check(f"codegen/{name}.c", c_source(PROGRAMS[name], VECTOR_BYTES).text)


@pytest.mark.parametrize("name", GRIDS)
def test_source_for_grids(name: str, golden: Golden) -> None:
    shape, options, target = GRIDS[name]
    golden.check(f"codegen/{name}", translate(specialized(*KERNELS[shape]), options, target).source.text)
