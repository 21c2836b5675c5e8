"""Products by matrix instructions of four warps: on the emulator against the oracle, and as NVRTC compiles them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.ir.loops import GroupMma, leaves
from tc.prediction.predict import predict
from tc.targets.devices import DEVICES
from tests.polyhedral.gpu.tensor.products import LAYOUTS, TYPES, agree, operands, product
from tests.translated import translated
from tests.turns import every, every_row, one_in

TILE = tc.GpuOptions(tc.ScheduleOptions(tile=(64, 64, 64)), tensor_cores=tc.TensorCores.WARPGROUPS)
WIDE = replace(TILE, schedule=tc.ScheduleOptions(tile=(128, 128, 64)))


def is_grouped(kernel: Kernel) -> bool:
    """Whether four warps multiply matrices together."""
    assert kernel.compilation is not None
    return any(isinstance(leaf, GroupMma) for leaf in leaves(kernel.compilation.mapped.loops.root))


# Rows and columns that no tile divides, and steps that are whole instructions.
SIZES = ((64, 64, 64), (70, 66, 128), (65, 130, 80), (100, 64, 112))


@one_in(7)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("m", "n", "k"), SIZES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_agree_with_the_oracle(layout: str, m: int, n: int, k: int, type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, m, n, k)
    kernel = f.compile(*arrays, target="emulator", options=TILE)
    assert is_grouped(kernel)
    agree(f, arrays, kernel)


@one_in(5)
@pytest.mark.parametrize("stages", [1, 2, 3])
@pytest.mark.parametrize(("m", "n"), [(128, 128), (150, 130)])
@pytest.mark.parametrize("layout", every(3, LAYOUTS))
def test_groups_lie_along_rows(layout: str, m: int, n: int, stages: int) -> None:
    f, arrays = product(layout, "float16"), operands(layout, "float16", m, n, 192)
    kernel = f.compile(*arrays, target="emulator", options=replace(WIDE, stages=stages, shared_memory=96 << 10))
    assert is_grouped(kernel)
    assert isinstance(kernel.options, tc.GpuOptions)
    assert kernel.options.block == (4, 8, 8)
    agree(f, arrays, kernel)


def test_what_follows_a_product_is_done_with_its_sums_in_registers() -> None:
    text = """def f(bfloat16(Z,M,K) A, bfloat16(Z,N,K) B, bfloat16(N) b) -> (D) {
        C(z,m,n) +=! A(z,m,k) * B(z,n,k)  D(z,m,n) = fmax(C(z,m,n) + b(n), 0.0) }"""
    random, f = np.random.default_rng(0), tc.define(text).single()
    shapes = ((2, 70, 64), (2, 65, 64), (65,))
    arrays = tuple(random.standard_normal(shape).astype(TYPES["bfloat16"]) for shape in shapes)
    options = replace(TILE, schedule=tc.ScheduleOptions(tile=(1, 64, 64, 64)))
    kernel = f.compile(*arrays, target="emulator", options=options)
    assert is_grouped(kernel)
    assert kernel.compilation is not None
    assert not kernel.compilation.mapped.loops.temporaries
    agree(f, arrays, kernel)


@pytest.mark.parametrize(
    ("layout", "sizes", "options"),
    every_row(
        2,
        [
            ("AB'", (64, 64, 72), TILE),  # the last instruction would have steps that are not there
            ("AB'", (64, 64, 64), replace(TILE, block=(4, 16, 2))),
            ("AB'", (64, 64, 64), replace(TILE, tensor_cores=tc.TensorCores.WARPS)),
            ("AB'", (64, 64, 32), TILE),
        ],
    ),
)
def test_single_warps_multiply_what_groups_cannot(
    layout: str, sizes: tuple[int, int, int], options: tc.GpuOptions
) -> None:
    f, arrays = product(layout, "float16"), operands(layout, "float16", *sizes)
    kernel = f.compile(*arrays, target="emulator", options=options)
    assert not is_grouped(kernel)
    agree(f, arrays, kernel)


@pytest.mark.parametrize("layout", every(2, LAYOUTS))
@pytest.mark.parametrize("type", every(2, TYPES))
def test_a_large_product_compiles_without_spills(type: str, layout: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = product(layout, type).compile((4096, 4096), (4096, 4096), target="cuda:sm_90a")
    assert is_grouped(kernel)
    assert "wgmma.mma_async" in kernel.source
    (grid,) = kernel.resources.grids
    assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)
    (stage,) = (stage for stage in kernel.stages if stage.name == "verify code")
    assert stage.seconds < 1


def test_other_architectures_have_no_groups() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    for architecture in ("sm_90", "sm_100"):
        kernel = product("AB'", "float16").compile((512, 512), (512, 512), target=f"cuda:{architecture}")
        assert "mma.sync" in kernel.source
        assert "wgmma" not in kernel.source


@pytest.mark.parametrize(
    ("m", "n", "k"), every_row(3, [(1024, 1024, 1024), (2048, 2048, 2048), (128, 4096, 4096), (4096, 4096, 64)])
)
def test_groups_are_used_where_they_are_predicted_to_be_quicker(m: int, n: int, k: int) -> None:
    def seconds(cores: tc.TensorCores) -> float:
        made = translated(
            product("AB", "float16"), (m, k), (k, n), target="cuda:sm_90a", options=tc.GpuOptions(tensor_cores=cores)
        )
        grouped = any(isinstance(leaf, GroupMma) for leaf in leaves(made.mapped.loops.root))
        assert grouped == (cores is tc.TensorCores.WARPGROUPS)
        return predict(count_kernels(made.mapped.loops), DEVICES["H200"]).seconds

    assert seconds(tc.TensorCores.WARPGROUPS) < seconds(tc.TensorCores.WARPS)


def test_the_option_is_one_of_three() -> None:
    with pytest.raises(tc.OptionsError, match=r"tensor_cores must be a tc\.TensorCores, got True"):
        tc.GpuOptions(tensor_cores=True)  # type: ignore[arg-type]
