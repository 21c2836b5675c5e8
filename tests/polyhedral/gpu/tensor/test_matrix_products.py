"""Products of halves by matrix instructions: on the emulator against the oracle, and as NVRTC compiles them."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

import tc
from tests.polyhedral.gpu.tensor.products import (
    LAYOUTS,
    SMALL,
    TYPES,
    agree,
    bytes_of,
    multiplies,
    of_bytes,
    operands,
    product,
)
from tests.translated import translated
from tests.turns import every, one_in

ARCHITECTURES = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100")


@one_in(3)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_products_agree_with_the_oracle(layout: str, type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, 64, 32, 80)
    kernel = f.compile(*arrays, target="emulator", options=SMALL)
    assert multiplies(kernel)
    agree(f, arrays, kernel)


# Rows, columns and steps that no tile divides.
RAGGED = ((37, 43, 29), (70, 66, 50), (33, 97, 130), (129, 40, 64), (16, 8, 17), (18, 33, 40), (100, 22, 31))


@one_in(9)
@pytest.mark.parametrize("type", TYPES)
@pytest.mark.parametrize(("m", "n", "k"), RAGGED)
@pytest.mark.parametrize("layout", every(3, LAYOUTS))
def test_ragged_products_agree_with_the_oracle(layout: str, m: int, n: int, k: int, type: str) -> None:
    f, arrays = product(layout, type), operands(layout, type, m, n, k)
    kernel = f.compile(*arrays, target="emulator")
    assert multiplies(kernel)
    agree(f, arrays, kernel)


@one_in(2)
@pytest.mark.parametrize("block", [(4, 8), (4, 16), (4, 8, 2), (4, 16, 4)])
def test_warps_lie_along_both_sides(block: tuple[int, ...]) -> None:
    f, arrays = product("AB'", "float16"), operands("AB'", "float16", 64, 64, 32)
    kernel = f.compile(*arrays, target="emulator", options=replace(SMALL, block=block))
    assert multiplies(kernel)
    assert isinstance(kernel.options, tc.GpuOptions)
    assert kernel.options.block == block
    agree(f, arrays, kernel)


def test_what_follows_a_product_is_done_with_its_sums_in_registers() -> None:
    text = """def f(bfloat16(M,K) A, bfloat16(N,K) B, bfloat16(N) b) -> (D) {
        C(m,n) +=! A(m,k) * B(n,k)  D(m,n) = fmax(C(m,n) + b(n), 0.0) }"""
    f, arrays = tc.define(text).single(), operands("AB'", "bfloat16", 70, 50, 90)
    given = (*arrays, np.linspace(-3, 3, 50).astype(TYPES["bfloat16"]))
    kernel = f.compile(*given, target="emulator", options=SMALL)
    assert multiplies(kernel)
    assert kernel.compilation is not None
    assert not kernel.compilation.mapped.loops.temporaries
    agree(f, given, kernel)


def test_products_of_a_batch_and_into_float32() -> None:
    text = """def f(float16(Z,M,K) A, float16(Z,K,N) B) -> (C) {
        C(z,m,n) +=! float32(A(z,m,k)) * float32(B(z,k,n)) }"""
    random = np.random.default_rng(1)
    arrays = tuple(random.standard_normal(shape).astype(np.float16) for shape in ((3, 33, 50), (3, 50, 61)))
    f = tc.define(text).single()
    kernel = f.compile(*arrays, target="emulator")
    assert multiplies(kernel)
    agree(f, arrays, kernel)


@one_in(7)
@pytest.mark.parametrize(("m", "n", "k"), [(64, 32, 96), (70, 45, 100), (33, 40, 33)])
@pytest.mark.parametrize(("left", "right"), list(itertools.product(("int8", "uint8"), repeat=2)))
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
def test_products_of_bytes_are_exact(layout: str, left: str, right: str, m: int, n: int, k: int) -> None:
    f, arrays = of_bytes(layout, left, right), bytes_of(layout, left, right, m, n, k)
    kernel = f.compile(*arrays, target="emulator")
    assert multiplies(kernel)
    np.testing.assert_array_equal(np.asarray(kernel(*arrays)), f.oracle(*arrays)["C"].values)


def test_a_large_product_of_bytes_compiles_without_spills() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = of_bytes("AB'", "int8", "int8").compile((2048, 2048), (2048, 2048), target="cuda:sm_89")
    assert "mma.sync.aligned.m16n8k32" in kernel.source
    (grid,) = kernel.resources.grids
    assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)


PROGRAMS = {
    "one factor": ("float16(M,K) A", "C(m,n) +=! A(m,k) * A(n,k)", ((50, 40),)),
    "layers": (
        "float16(B,I) x, float16(O,I) w, float16(P,O) v",
        "h(b,o) +=! x(b,i) * w(o,i)  r(b,o) = fmax(h(b,o), 0.0)  C(b,p) +=! r(b,o) * v(p,o)",
        ((33, 40), (24, 40), (18, 24)),
    ),
    "convolution": (
        "float16(N,H,W,C) I, float16(F,KH,KW,C) W",
        "O(n,h,w,f) +=! I(n,h+kh,w+kw,c) * W(f,kh,kw,c)",
        ((1, 3, 66, 16), (32, 2, 3, 16)),
    ),
    "planes": (
        "float16(N,C,H,W) I, float16(F,C,KH,KW) W",
        "O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * W(f,c,kh,kw)",
        ((1, 17, 3, 33), (64, 17, 2, 2)),
    ),
    "scores": (
        "float16(S,D) Q, float16(T,D) K, float16(T,D) V",
        """s(i,j) +=! Q(i,d) * K(j,d)  m(i) max=! s(i,j)  e(i,j) = exp(s(i,j) - m(i))  t(i) +=! e(i,j)
        p(i,j) = e(i,j) / t(i)  C(i,d) +=! p(i,j) * V(j,d)""",
        ((20, 32), (40, 32), (40, 32)),
    ),
}


@one_in(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_with_products_agree_with_the_oracle(name: str) -> None:
    arguments, body, shapes = PROGRAMS[name]
    random = np.random.default_rng(3)
    arrays = tuple((random.standard_normal(shape) / 2).astype(np.float16) for shape in shapes)
    result = "O" if "O(" in body else "C"
    f = tc.define(f"def f({arguments}) -> ({result}) {{ {body} }}").single()
    kernel = f.compile(*arrays, target="emulator")
    assert multiplies(kernel)
    agree(f, arrays, kernel)


@pytest.mark.parametrize("open", every(3, ["M", "N", "K", "MN"]))
def test_sizes_may_stay_open(open: str) -> None:
    f = product("AB", "float16")
    shapes = [tuple(tc.dynamic(100) if name in open else 48 for name in own) for own in ("MK", "KN")]
    kernel = f.compile(*shapes, target="emulator")
    assert multiplies(kernel)
    for size in (5, 48, 77):
        sizes = {name: size if name in open else 48 for name in "MNK"}
        agree(f, operands("AB", "float16", sizes["M"], sizes["N"], sizes["K"]), kernel)


@pytest.mark.parametrize(
    "options",
    every(
        3,
        [
            tc.GpuOptions(register_operands=16),
            tc.GpuOptions(tc.ScheduleOptions(unroll=16)),
            tc.GpuOptions(stages=1, padding=0),
            tc.GpuOptions(layout=tc.TileLayout.POINTS),
            tc.GpuOptions(split_k_blocks=2),
            tc.GpuOptions(grid=(2, 2)),
        ],
    ),
)
def test_other_options_go_with_matrix_instructions(options: tc.GpuOptions) -> None:
    f, arrays = product("AB'", "float16"), operands("AB'", "float16", 70, 66, 100)
    kernel = f.compile(*arrays, target="emulator", options=options)
    assert multiplies(kernel)
    agree(f, arrays, kernel)


def test_no_matrix_instructions_are_used_where_they_are_not_wanted_or_missing() -> None:
    f, arrays = product("AB", "float16"), operands("AB", "float16", 64, 64, 64)
    kernel = f.compile(*arrays, target="emulator", options=tc.GpuOptions(tensor_cores=tc.TensorCores.NONE))
    assert not multiplies(kernel)
    agree(f, arrays, kernel)
    few = operands("AB", "float16", 5, 64, 64)
    kernel = f.compile(*few, target="emulator")
    assert not multiplies(kernel)
    (said,) = (decision for decision in kernel.decisions if decision.option == "tensor_cores")
    assert (said.asked, said.taken) == (tc.TensorCores.STREAMS, tc.TensorCores.NONE)
    assert said.reason == "no warps run whole blocks of a product"
    assert "mma.sync" not in f.compile((64, 64), (64, 64), target="cuda:sm_75").source


@pytest.mark.parametrize("architecture", every(3, ARCHITECTURES))
@pytest.mark.parametrize("layout", every(2, LAYOUTS))
def test_large_products_compile_without_spills(layout: str, architecture: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    kernel = product(layout, "bfloat16").compile((1024, 1024), (1024, 1024), target=f"cuda:{architecture}")
    assert "mma.sync.aligned.m16n8k16" in kernel.source
    for grid in kernel.resources.grids:
        assert (grid.stack, grid.spill_stores, grid.spill_loads) == (0, 0, 0)
        assert 32 < grid.registers <= 255


def test_a_large_product_is_proven_in_a_second() -> None:
    kernel = product("AB", "float16").compile((4096, 4096), (4096, 4096), target="cuda:sm_90")
    (stage,) = (stage for stage in kernel.stages if stage.name == "verify code")
    assert stage.seconds < 1


@pytest.mark.parametrize(
    ("sizes", "options", "tile", "shared"),
    [
        ((4096, 4096, 64), tc.GpuOptions(), (128, 256, 32), "tiles of 128 by 256 results of single warps are large"),
        ((4096, 4096, 64), tc.GpuOptions(shared_memory=80 << 10), (128, 128, 32), ""),  # less than three such tiles
        ((2048, 2048, 64), tc.GpuOptions(), (128, 128, 32), "two such blocks fit a multiprocessor"),  # few tiles
    ],
    ids=["large", "little memory", "smaller"],
)
def test_large_products_have_wide_tiles(
    sizes: tuple[int, int, int], options: tc.GpuOptions, tile: tuple[int, ...], shared: str
) -> None:
    m, n, k = sizes
    made = translated(product("AB'", "float16"), (m, k), (n, k), target="cuda:sm_80", options=options)
    said = {own.option: own for own in made.decisions}
    assert said["tile"].taken == tile
    assert (said["shared_memory"].reason if "shared_memory" in said else "") == shared
