"""One kernel serves every value of an open size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.language.program.specialization import ArraySpec, SymbolicSize
from tests.symbolic.programs import FLOAT, MM, PROGRAMS, Program, agree, sizes_up_to
from tests.turns import every, every_row, one_in


@one_in(2)
@pytest.mark.parametrize("name", every(2, PROGRAMS))
def test_one_kernel_serves_every_size(name: str) -> None:
    program = PROGRAMS[name]
    (comprehension,) = tc.define(program.text).values()
    kernel = comprehension.compile(*program.specs())
    for size in sizes_up_to(program.most):
        agree(comprehension, kernel, program.arrays(size))
    for size in (0, program.most + 1):
        with pytest.raises(tc.ArgumentError, match=rf"is compiled for .*\[1\.\.{program.most}"):
            kernel(*program.arrays(size))


OPTIONS = {
    "untiled, not fused": tc.CpuOptions(
        schedule=tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL, tile=()), packed_operands=0
    ),
    "small tiles": tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(3, 5), unroll=8), register_tile=()),
    "register tiles": tc.CpuOptions(register_tile=(4, 16), packed_operands=1 << 12),
    "no vectors": tc.CpuOptions(vectorize=False, register_accumulators=0, local_temporaries=0, threads=1),
}


@pytest.mark.parametrize("options", OPTIONS)
def test_with_other_options(options: str) -> None:
    program = PROGRAMS["mm"]
    mm = tc.define(MM).mm
    kernel = mm.compile(*program.specs(), options=OPTIONS[options])
    for size in sizes_up_to(program.most):
        agree(mm, kernel, program.arrays(size))


@one_in(2)
@pytest.mark.parametrize(
    "name", ["mm", "sum of everything", "softmax", "triangle", "convolution", "behind each other", "groups"]
)
def test_grids_serve_every_size(name: str) -> None:
    program = replace(PROGRAMS[name], most=21)
    (comprehension,) = tc.define(program.text).values()
    kernel = comprehension.compile(*program.specs(), target="emulator")
    for size in sizes_up_to(program.most):
        agree(comprehension, kernel, program.arrays(size))


@pytest.mark.parametrize(("most", "unrolled"), [(8, True), (9, False)])
def test_long_loops_that_end_at_an_open_size_stay_loops(most: int, unrolled: bool) -> None:
    """Unrolled, each iteration is inside of what asks for the one before, and proofs would take minutes."""
    program = Program("def f(float(N,M) A) -> (s) { s(n) +=! A(n,m) }", (("N", 12),), most)
    f = tc.define(program.text).f
    options = tc.CpuOptions(
        tc.ScheduleOptions(tile=(), unroll=256), vectorize=False, register_accumulators=0, threads=1
    )
    kernel = f.compile(*program.specs(), options=options)
    # What is in a loop depends on the vectors of the machine.
    copies = kernel.source.count("// S0")
    assert (copies == most * 13) is unrolled
    assert unrolled or copies <= 13
    for size in sizes_up_to(program.most):
        agree(f, kernel, program.arrays(size))


def test_kernels_may_have_nothing_to_do_at_some_sizes() -> None:
    """Loops are inside of what asks for the size."""
    text = "def f(float(N) A) -> (C) { B(i,j) = A(i) * A(j)  C(i) *=! B(i,j) where k in 0:N - 1 }"
    program = Program(text, (("N",),), 6)
    f = tc.define(text).f
    options = tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL))
    kernel = f.compile(*program.specs(), target="emulator", options=options)
    for size in range(1, 7):
        agree(f, kernel, program.arrays(size))


@pytest.mark.parametrize("fusion", tc.Fusion)
def test_several_kernels_may_have_nothing_to_do_at_the_same_sizes(fusion: tc.Fusion) -> None:
    """isl puts one guard around all of their loops."""
    text = "def f(float(N) A, float(N) B) -> (C, D) { C(i) = A(i)  D(i,j) +=! A(i + 2 * r_k) * B(r_k) where j in 0:40 }"
    program = Program(text, (("N",), ("N",)), 2)
    f = tc.define(text).f
    kernel = f.compile(*program.specs(), target="emulator", options=tc.GpuOptions(tc.ScheduleOptions(fusion=fusion)))
    for size in (1, 2):
        agree(f, kernel, program.arrays(size))


def test_split_reductions_beside_an_open_size() -> None:
    program = Program("def f(float(N,K) A) -> (s) { s() +=! A(n,k) }", (("N", 500),), 9)
    f = tc.define(program.text).f
    options = tc.GpuOptions(split_k_threads=(64,), grid=(8,), block=(32,))
    kernel = f.compile(*program.specs(), target="emulator", options=options)
    assert "s_parts" in kernel.source
    for size in sizes_up_to(program.most):
        agree(f, kernel, program.arrays(size))


SOFTMAX = """def softmax(float(N,D) X) -> (Y) {
    m(n) max=! X(n,d)
    e(n,d) = exp(X(n,d) - m(n))
    s(n) +=! e(n,d)
    Y(n,d) = e(n,d) / s(n)
}"""
ROWS = "def rows(float(N,K) X) -> (S) { S(n) +=! X(n,k) }"


@pytest.mark.parametrize(
    ("text", "length", "options"),
    every_row(
        2,
        [
            (SOFTMAX, 1000, tc.GpuOptions()),
            (SOFTMAX, 100, tc.GpuOptions()),
            (SOFTMAX, 100, tc.GpuOptions(split_k_threads=(6, 2), shuffles=False)),
            (ROWS, 1000, tc.GpuOptions()),
            (ROWS, 20000, tc.GpuOptions()),
            (ROWS, 77, tc.GpuOptions(split_k_threads=(32,), split_k_blocks=2)),
        ],
    ),
)
def test_threads_share_rows_of_an_open_number(text: str, length: int, options: tc.GpuOptions) -> None:
    """As they do where the number is known."""
    program = Program(text, (("N", length),), 9)
    f = tc.define(text).single()
    kernels = (f.explain(*shapes, target="emulator", options=options) for shapes in (program.specs(), [(9, length)]))
    launched, known = ([line for line in text.splitlines() if line.startswith("  blocks ")] for text in kernels)
    assert launched == known != []
    kernel = f.compile(*program.specs(), target="emulator", options=options)
    assert "_parts" in kernel.source
    for size in sizes_up_to(program.most):
        agree(f, kernel, program.arrays(size))


def test_cuda_compiles_with_an_open_size() -> None:
    pytest.importorskip("cuda.bindings")
    kernel = tc.define(MM).mm.compile(*PROGRAMS["mm"].specs(), target="cuda:sm_90")
    assert "long long s_M" in kernel.source
    (grid,) = kernel.resources.grids
    assert grid.spill_stores == 0


def test_two_open_sizes() -> None:
    text = "def outer(float(M) a, float(N,K) B, float(M) c) -> (s) { s(m) +=! a(m) * B(n,k) * c(m) }"
    outer = tc.define(text).outer
    kernel = outer.compile((tc.dynamic(30),), (tc.dynamic(9), 5), (30,))
    assert kernel.signature.symbolic == (SymbolicSize(30, (("a", 0), ("c", 0))), SymbolicSize(9, (("B", 0),)))
    random = np.random.default_rng(1)
    for m, n in ((1, 1), (30, 9), (17, 4), (29, 1)):
        shapes = ((m,), (n, 5), (m,))
        agree(outer, kernel, [random.standard_normal(shape).astype(np.float32) for shape in shapes])
    arrays = [np.ones(shape, np.float32) for shape in ((7,), (9, 5), (8,))]
    with pytest.raises(tc.ArgumentError, match="is compiled for"):
        kernel(*arrays)


def test_strided_rows() -> None:
    """Also where one row is left, whose stride says nothing."""
    mm = tc.define(MM).mm
    kernel = mm.compile(ArraySpec((tc.dynamic(20), 8), FLOAT, (32, 2)), (8, 5))
    wide, b = np.random.default_rng(0).standard_normal((20, 32)).astype(np.float32), np.ones((8, 5), np.float32)
    for size in (1, 2, 13, 20):
        agree(mm, kernel, [wide[:size, :16:2], b])
    with pytest.raises(tc.ArgumentError, match=r"strides \(32, 2\), B"):
        kernel(wide[:5, :8], b)
    column = tc.define("def f(float(N) A) -> (B) { B(n) = A(n) + 1 }").f
    kernel = column.compile(ArraySpec((tc.dynamic(20),), FLOAT, (32,)))
    for size in (1, 2, 20):
        agree(column, kernel, [wide[:size, 3]])


def test_results_of_the_caller() -> None:
    text = "def f(float(N,K) A) -> (s, C) { s(n) += A(n,k)\n C(n,k) = A(n,k) * 2 }"
    f = tc.define(text).f
    kernel = f.compile((tc.dynamic(20), 6))
    for size in (1, 13, 20):
        a, total = np.ones((size, 6), np.float32), np.arange(size, dtype=np.float32)
        before = total.copy()
        found = kernel(a, out=(total, None))
        assert isinstance(found, tuple)
        assert found[0] is total
        np.testing.assert_array_equal(total, before + 6)
        np.testing.assert_array_equal(found[1], 2 * a)
        with pytest.raises(tc.ArgumentError, match=rf"output s of f: expected shape \({size},\), got \({size + 1},\)"):
            kernel(a, out=(np.zeros(size + 1, np.float32), None))


def test_nothing_is_written_behind_a_smaller_result() -> None:
    kernel = tc.define(MM).mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (1, 3, 37):
        guarded = np.full((64, 8), 7, np.float32)
        kernel(np.ones((size, 16), np.float32), np.ones((16, 8), np.float32), out=guarded[:size])
        assert (guarded[:size] == 16).all()
        assert (guarded[size:] == 7).all()


def test_tensors_of_pytorch() -> None:
    torch = pytest.importorskip("torch")
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (5, 64, 5):
        found = mm(torch.ones(size, 16), torch.ones(16, 8))
        assert torch.equal(found, torch.full((size, 8), 16.0))
