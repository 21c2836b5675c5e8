"""Sizes that stay symbolic: one kernel for every value up to a bound, on every target, from the cache too."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.api.kernels import Kernels
from tc.base.errors import VerificationError
from tc.base.records import from_json, to_json
from tc.language.program.extent import Extent
from tc.language.program.specialization import ArraySpec, Signature, SymbolicSize, contiguous_strides
from tc.language.prove.symbolic import symbolic_extent
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.ir.loops import Allocation, Block, Guard, IndexLiteral, IndexVariable, Leaf, Loop, LoopTree
from tc.reference.compare import compare
from tests.programs import run
from tests.turns import every, every_row, one_in

MM = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
FLOAT = tc.ScalarType.FLOAT32


@dataclass(frozen=True)
class Program:
    """A definition with a first size ``N`` that is open up to ``most``; other extents are numbers."""

    text: str
    shapes: tuple[tuple[object, ...], ...]
    most: int
    dtypes: tuple[type, ...] = ()

    def specs(self) -> list[tuple[int, ...]]:
        """Shapes with the size open."""
        return [tuple(tc.dynamic(self.most) if e == "N" else int(str(e)) for e in shape) for shape in self.shapes]

    def arrays(self, size: int) -> list[np.ndarray[Any, Any]]:
        random = np.random.default_rng(size)
        types = self.dtypes or (np.float32,) * len(self.shapes)
        made: list[np.ndarray[Any, Any]] = []
        for shape, type in zip(self.shapes, types, strict=True):
            extents = [size if e == "N" else int(str(e)) for e in shape]
            if np.issubdtype(type, np.integer):
                made.append(random.integers(0, 9, extents).astype(type))
            else:
                made.append(random.standard_normal(extents, np.float32).astype(type))
        return made


PROGRAMS = {
    "behind each other": Program(
        "def f(int32(N) A) -> (d) { b(i) = A(i)  b(j+N) = A(j)  d() +=! b(k) }", (("N",),), 18, (np.int32,)
    ),
    "mm": Program(MM, (("N", 48), (48, 33)), 100),
    "bands": Program(
        "def f(float(P,N,N) A, float(P,N,M) B) -> (C) {"
        " C(p,i,j) +=! A(p,i,k) * B(p,k,j) where i in 0:N, k in 0:N, k - i in 0:2 }",
        (("N", 17, 17), ("N", 17, 5)),
        9,
    ),
    "transposed mm": Program(
        "def f(float(N,K) A, float(M,K) B) -> (C) { C(n,m) +=! A(n,k) * B(m,k) }", (("N", 65), (130, 65)), 131
    ),
    "half mm": Program(
        "def f(half(N,K) A, half(K,M) B) -> (C) { C(n,m) +=! A(n,k) * B(k,m) }",
        (("N", 24), (24, 17)),
        40,
        (np.float16, np.float16),
    ),
    "bfloat16 mv": Program(
        "def f(bfloat16(N,K) A, bfloat16(K) x) -> (y) { y(n) +=! A(n,k) * x(k) }",
        (("N", 24), (24,)),
        40,
        (ml_dtypes.bfloat16, ml_dtypes.bfloat16),
    ),
    "elementwise": Program("def f(float(N) A, float(N) B) -> (C) { C(i) = A(i) * B(i) + 1 }", (("N",), ("N",)), 10000),
    "sum of everything": Program("def f(float(N,K) A) -> (s) { s() +=! A(n,k) }", (("N", 20),), 5000),
    "mean over the open size": Program("def f(float(N,K) A) -> (s) { s(k) +=! A(n,k) / N }", (("N", 20),), 500),
    "softmax": Program(
        """def f(float(N,D) I) -> (O, m, s) {
             m(n) max=! I(n,d)
             s(n) +=! exp(I(n,d) - m(n))
             O(n,d) = exp(I(n,d) - m(n)) / s(n)
           }""",
        (("N", 50),),
        70,
    ),
    "two layers": Program(
        """def f(float(N,C) I, float(O,C) V, float(P,O) W) -> (H, R) {
             H(n,o) +=! I(n,c) * V(o,c)
             H(n,o) = fmax(H(n,o), 0)
             R(n,p) +=! H(n,o) * W(p,o)
           }""",
        (("N", 30), (20, 30), (10, 20)),
        50,
    ),
    "convolution": Program(
        "def f(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+kh,w+kw) * K(f,c,kh,kw) }",
        (("N", 3, 9, 10), (4, 3, 3, 3)),
        12,
    ),
    "reversed rows": Program("def f(float(N,K) A) -> (B) { B(n,k) = A(N-1-n,k) }", (("N", 20),), 50),
    "longer by one": Program(
        "def f(float(N) A) -> (B) { B(n) = n < N ? A(min(n, N - 1)) : 0 where n in 0:N+1 }", (("N",),), 50
    ),
    "concatenation": Program(
        "def f(float(N,K) A, float(M,K) B) -> (C) { C(i,k) = A(i,k)\n C(N+j,k) = B(j,k) }", (("N", 20), (7, 20)), 50
    ),
    "gather by an open index": Program(
        "def f(float(E,K) T, int(N) I) -> (O) { O(n,k) = T(I(n),k) }", ((9, 20), ("N",)), 50, (np.float32, np.int32)
    ),
    "triangle": Program(
        "def f(float(N,K) A, float(N) B) -> (s) { s(i) +=! A(j,k) * B(j) where i in 0:N, j in 0:i+1 }",
        (("N", 8), ("N",)),
        50,
    ),
    "a temporary along the open size": Program(
        "def f(float(N,K) A) -> (S) { T(k,n) = A(n,k) * 2\n S(k) +=! T(k,n) }", (("N", 9),), 77
    ),
    "strided convolution": Program(
        "def f(float(N) x, float(K) w) -> (y) { y(i) +=! x(3*i + k) * w(k) }", (("N",), (2,)), 40
    ),
    "groups": Program(
        "def f(float(N,K) x) -> (y) { t(i/4,k) +=! x(i,k)  y(i+1,k) = t(i,k)  y(0,k) = 7 }", (("N", 5),), 30
    ),
    "names of isl and C": Program(
        "def f(float(min,c0) exists, float(c0) i0) -> (p0) { p0(n) +=! exists(n,c) * i0(c) }", (("N", 9), (9,)), 33
    ),
}


def sizes_up_to(most: int) -> list[int]:
    return sorted({1, 2, 7, most // 2 + 1, most - 1, most})


def agree(comprehension: tc.Comprehension, kernel: tc.Kernel, arrays: list[np.ndarray[Any, Any]]) -> None:
    expected = comprehension.oracle(*arrays)
    results = kernel(*arrays)
    for name, result in zip(expected, results if isinstance(results, tuple) else (results,), strict=True):
        assert isinstance(result, np.ndarray)
        assert result.shape == expected[name].values.shape
        assert (found := compare(expected[name], result)).ok, f"{name}: {found}"


# --- kernels ---------------------------------------------------------------------------------------------------------


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


def test_opencl_wants_numbers() -> None:
    """PoCL 3.0 does the work of all items of a group where a barrier stands behind a condition on an argument."""
    pytest.importorskip("pyopencl")
    with pytest.raises(tc.ArgumentError, match=r"sizes cannot stay open on OpenCL: PoCL .*; pass numbers"):
        tc.define(MM).mm.compile(*PROGRAMS["mm"].specs(), target="opencl")


def test_cuda_compiles_with_an_open_size() -> None:
    pytest.importorskip("cuda.bindings")
    kernel = tc.define(MM).mm.compile(*PROGRAMS["mm"].specs(), target="cuda:sm_90")
    assert "int64_t s_M" in kernel.source
    (grid,) = kernel.resources.grids
    assert grid.spill_stores == 0


def test_two_open_sizes() -> None:
    text = "def outer(float(M) a, float(N,K) B, float(M) c) -> (s) { s(m) +=! a(m) * B(n,k) * c(m) }"
    outer = tc.define(text).outer
    kernel = outer.compile((tc.dynamic(30),), (tc.dynamic(9), 5), (30,))
    assert kernel.signature.symbolic == (SymbolicSize(30, ("a", "c")), SymbolicSize(9, ("B",)))
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


# --- proofs ----------------------------------------------------------------------------------------------------------


def _without_the_size(tree: LoopTree, bound: int) -> LoopTree:
    """The loops with a number in place of the symbolic size in all bounds and guards."""

    def changed(value: Any) -> Any:
        if isinstance(value, IndexVariable) and value.name.startswith("size_"):
            return IndexLiteral(bound)
        if hasattr(value, "operands"):
            return replace(value, operands=tuple(map(changed, value.operands)))
        return value

    match tree:
        case Loop():
            body = _without_the_size(tree.body, bound)
            return replace(tree, lower=changed(tree.lower), upper=changed(tree.upper), body=body)
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _without_the_size(otherwise, bound)
            return Guard(changed(condition), _without_the_size(then, bound), other)
        case Block(children):
            return Block(tuple(_without_the_size(child, bound) for child in children))
        case Allocation():
            return replace(tree, body=_without_the_size(tree.body, bound))
        case Leaf():
            return tree


@pytest.mark.parametrize(
    ("bound", "complaint"), [(100, "an instance runs that is not in the program"), (1, "an instance never runs")]
)
def test_loops_that_ignore_the_size_are_refused(bound: int, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tc.polyhedral.pipeline.generate_loops", lambda *given: _without_the_size(generate_loops(*given), bound)
    )
    with pytest.raises(VerificationError, match=complaint):
        tc.define(MM).mm.compile(*PROGRAMS["mm"].specs())


def test_accesses_behind_the_open_size_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row that there may be is no row that there is."""

    def shorter(*given: Any) -> tuple[Extent, int]:
        found, most = symbolic_extent(*given)
        return replace(found, constant=found.constant - 1), most

    monkeypatch.setattr("tc.language.lower.specialize.symbolic_extent", shorter)
    with pytest.raises(VerificationError, match=r"an access leaves its buffer: .*size_M"):
        tc.define(MM).mm.compile(*PROGRAMS["mm"].specs())


# --- extents and divisors that are not linear ------------------------------------------------------------------------

QUASI_AFFINE: dict[str, tuple[str, ...]] = {
    "minima and maxima": (
        "y(i) = x(i) where i in 0:min(N,4)",
        "y(i) = i < N ? x(i) : 0 where i in 0:max(N,4)",
        "y(i) = x(i) where i in 0:min(N, max(2, N/3))",
        "y(i) = x(i) where i in 0:(N < 4 ? N : 7 - N/3), i < N",
        "y(min(i,3)) +=! x(i)",
    ),
    "quotients and remainders": (
        "y(i) = x(i) where i in 0:N-N/3",
        "y(i) = x(i) where i in 0:N%4",
        "y(i) = x(i) where i in 0:min(N,4)/2",
        "y(i%4) max=! x(i)",
        "y(i/2 + i%2) +=! x(i)",
    ),
    "ranges that may be empty": (
        "y(i) +=! x(i + k) where i in 0:N-2, k in 0:3",
        "y(i) = x(i + 3) where i in 0:N-3",
        "t(i) = x(i) where i in 0:min(N,4)  y +=! t(i)",
    ),
    "divisors that stay open": (
        "y(i) = x((i+1)%N) where i in 0:N",
        "y(i) +=! x((i+j)%N) where i in 0:N, j in 0:3",
        "y(i) = x((2*i+N-1)%N) + i/N where i in 0:N",
        "y((i+N-1)%N) = x(i)",
        "y(i%N) +=! x(i)",
        "y(i/N) +=! x(i)",
        "y(i) = i%N < 2 ? x(i) : x((i-2)%N) where i in 0:N",
        "y(i) = x(N-1 + (i-N)%N) where i in 1:2, i < N  y(0) = x(0)",
    ),
}


@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("kind", QUASI_AFFINE)
def test_extents_and_divisors_that_are_not_linear(kind: str, target: str) -> None:
    """All statements of a kind in one kernel, whose extents calls compute."""
    names = [f"y{number}" for number in range(len(QUASI_AFFINE[kind]))]
    statements = [
        re.sub(r"\bt\(", f"t{name}(", re.sub(r"\by\b", name, text))
        for name, text in zip(names, QUASI_AFFINE[kind], strict=True)
    ]
    f = tc.define(f"def f(float(N) x) -> ({', '.join(names)}) {{ {'  '.join(statements)} }}").f
    kernel = f.compile((tc.dynamic(9),), target=target)
    for size in (1, 2, 3, 5, 8, 9):
        x = np.random.default_rng(size).integers(-9, 9, size).astype(np.float32)
        found, expected = kernel(x), f.reference(x)
        assert isinstance(found, tuple)
        assert isinstance(expected, tuple)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_extents_are_kept_as_text() -> None:
    """Whatever they consist of."""
    f = tc.define("def f(float(N) x) -> (y) { y(i) = x(i) where i in 0:(N < 4 ? N : 7 - N/3), i < N }").f
    extent = f.specialize((tc.dynamic(9),)).layouts["y"].first
    assert extent is not None
    assert from_json(Extent, to_json(extent)) == extent
    assert [extent.at((size,)) for size in range(1, 10)] == [1, 2, 3, 4, 5, 5, 5, 5, 4]


# --- what cannot stay open -------------------------------------------------------------------------------------------

REFUSED: dict[str, tuple[str, tuple[object, ...], type[Exception], str]] = {
    "another dimension": (
        MM,
        ((7, tc.dynamic(13)), (13, 5)),
        tc.ArgumentError,
        "argument A of mm: dimension 1 cannot stay open, because strides would depend on it; only a first dimension",
    ),
    "a size that is another dimension elsewhere": (
        MM,
        ((7, 13), (tc.dynamic(13), 5)),
        tc.ArgumentError,
        "mm: the size `K` cannot stay open, because the strides of `A` depend on its dimension 1; open only sizes of",
    ),
    "an extent of a result": (
        "def f(float(N) a) -> (B) { B(i,j) = a(i) * a(j) }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the strides of `B` depend on its dimension 1",
    ),
    "a number": (
        "def f(float(4) a) -> (b) { b(i) = a(i) }",
        ((tc.dynamic(4),),),
        tc.ArgumentError,
        "argument a of f: its first dimension is declared as a number; it cannot be tc.dynamic",
    ),
    "different sizes": (
        "def f(float(N) a, float(N) b) -> (c) { c(i) = a(i) + b(i) }",
        ((tc.dynamic(9),), (8,)),
        tc.ArgumentError,
        "f: the size `N` is 9 in `a.0` and 8 in `b.0`",
    ),
    "reversed rows": (
        "def f(float(N) a) -> (c) { c(i) = a(i) }",
        (ArraySpec((tc.dynamic(9),), FLOAT, (-1,)),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the rows of `a` are reversed, and where they begin depends on it",
    ),
    "gathers along it": (
        "def f(float(N) a, int(M) I) -> (c) { c(i) = a(I(i)) }",
        ((tc.dynamic(9),), (4,)),
        tc.ArgumentError,
        "f: `a` is gathered from along a dimension that would stay open; pass a number for it",
    ),
    "extents that are products": (
        "def f(float(N) a) -> (c) { c(i) = a(0) where i in 0:N*N }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "`c` has an extent of N * N, which is not quasi-affine in it: sums, multiples, quotients and remainders by",
    ),
    "extents with conditions on many multiples": (
        "def f(float(N) a) -> (c) { c(i%4) +=! a(i) where 7 * i % N < 3 }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "`c` has an extent c.0 which, by the subscripts, ranges and conditions that give it, is not quasi-affine in it",
    ),
    "extents of other dimensions": (
        "def f(float(N) a) -> (c) { c(i/2, i%2) +=! a(i) }",
        ((tc.dynamic(9),),),
        tc.ArgumentError,
        "f: the size `N` cannot stay open, because the strides of `c` depend on its dimension 1, whose extent depends",
    ),
    "subscripts that are below 0 for some sizes": (
        "def f(float(N) a) -> (c) { c((i+N-3)%N) = a(i) }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`c` would be written at subscript -1, below 0, at i = 0, N = 2(?s:.*)shift the subscript `\(i \+ N - 3\) %",
    ),
    "elements that are missing for some sizes": (
        "def f(float(N) a) -> (c) { c(abs(i-2)) +=! a(i) }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`c\(0\)` is never written for N = 1",
    ),
    "remainders with many quotients": (
        "def f(float(N) a) -> (c) { c(i) = a((7*i)%N) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"which make a kernel for each size; remainders and quotients by an open size have quotients of 4 at most, as",
    ),
    "accesses that leave small arrays": (
        "def f(float(N) a) -> (c) { c(i) = a(i) + a(2) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"`a\(2\)` leaves `a` at i = 0, N = 1: dimension 0 has N elements",
    ),
    "subscripts that are not affine": (
        "def f(float(N) a) -> (c) { c(i) = a(N * i / N) where i in 0:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        r"are not affine while sizes stay open(?s:.*)pass numbers in place of tc.dynamic",
    ),
    "ranges that begin below 0": (
        "def f(float(N) a) -> (c) { c() +=! a(i) where i in N-2:N }",
        ((tc.dynamic(9),),),
        tc.RangeError,
        "the range of `i` begins below 0 for some sizes; iterators are never negative",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_stay_open_says_why(what: str) -> None:
    text, arguments, error, message = REFUSED[what]
    (comprehension,) = tc.define(text).values()
    with pytest.raises(error, match=message if error is tc.RangeError else None) as caught:
        comprehension.compile(*arguments)
    if error is tc.ArgumentError:
        assert message in str(caught.value)


@pytest.mark.parametrize("most", [0, -3, True, 2.5, "9", None])
def test_a_bound_is_a_positive_integer(most: object) -> None:
    with pytest.raises(tc.ArgumentError, match=r"takes the greatest size that is to be served, such as 512, got"):
        tc.dynamic(most)  # type: ignore[arg-type]
    assert repr(tc.dynamic(512)) == "tc.dynamic(512)"


# --- signatures ------------------------------------------------------------------------------------------------------


def test_which_calls_a_signature_covers() -> None:
    size = SymbolicSize(9, ("a", "b"))
    opened = Signature((("a", ArraySpec((9, 4), FLOAT)), ("b", ArraySpec((9,), FLOAT))), symbolic=(size,))

    def call(a: tuple[int, ...], b: tuple[int, ...], **changes: Any) -> Signature:
        return replace(Signature((("a", ArraySpec(a, FLOAT)), ("b", ArraySpec(b, FLOAT)))), **changes)

    assert opened.sizes_of(call((5, 4), (5,))) == (5,)
    assert opened.sizes_of(call((9, 4), (9,))) == (9,)
    for other in (
        call((10, 4), (10,)),
        call((0, 4), (0,)),
        call((5, 4), (6,)),
        call((5, 4), (5,), scalars=(("s", 1),)),
        call((5, 4), (5,), aliases=(("c", "b"),)),
        call((5, 4), (5,), results=(("c", ArraySpec((5,), FLOAT, (2,))),)),
        Signature((("a", ArraySpec((5, 4), FLOAT)),)),
    ):
        assert opened.sizes_of(other) is None
    for misfit in (call((10, 4), (10,)), call((0, 4), (0,)), call((5, 4), (6,))):
        assert misfit.opened((size,)) is None
    assert call((5, 4), (5,)).opened((size,)) == opened
    assert call((5, 3), (5,)).opened((size,)) != opened
    assert opened.settled == call((9, 4), (9,))
    assert opened.settled.sizes_of(opened.settled) == ()
    assert contiguous_strides((9, 4)) == (4, 1)


# --- which kernel runs -----------------------------------------------------------------------------------------------


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shapes of everything that is compiled from now on."""
    shapes: list[str] = []
    honest = Kernels.compile

    def compile(self: Kernels, signature: Signature, *given: Any) -> Any:
        shapes.append(f"[{', '.join(signature.extents('A'))}]")
        return honest(self, signature, *given)

    monkeypatch.setattr(Kernels, "compile", compile)
    return shapes


def _call(mm: tc.Comprehension, size: int, **given: Any) -> None:
    a, b = np.ones((size, 16), np.float32), np.ones((16, 8), np.float32)
    np.testing.assert_array_equal(mm(a, b, **given), np.full((size, 8), 16, np.float32))


def test_calls_are_served_without_compiling(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (1, 5, 64, 5, 17, 1):
        _call(mm, size)
    assert compiled == ["[1..64, 16]"]
    _call(mm, 65)
    _call(mm, 65)
    assert compiled == ["[1..64, 16]", "[65, 16]"]


def test_the_smallest_bound_serves(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    small, large = (mm.compile((tc.dynamic(most), 16), (16, 8)) for most in (20, 64))
    assert mm.compile((20, 16), (16, 8)) is small
    assert mm.compile((21, 16), (16, 8)) is large
    assert len(compiled) == 2


def test_other_options_and_targets_are_other_kernels(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8), options=tc.CpuOptions(threads=1))
    _call(mm, 9, options=tc.CpuOptions(threads=1))
    assert compiled == ["[1..64, 16]"]
    _call(mm, 9)
    _call(mm, 9, target="emulator")
    assert compiled == ["[1..64, 16]", "[9, 16]", "[9, 16]"]


def test_a_kernel_of_this_very_size_goes_first(compiled: list[str]) -> None:
    mm = tc.define(MM).mm
    own = mm.compile((9, 16), (16, 8))
    mm.compile((tc.dynamic(64), 16), (16, 8))
    assert mm.compile((9, 16), (16, 8)) is own
    assert compiled == ["[9, 16]", "[1..64, 16]"]


PRODUCTION = f"""
import sys, numpy as np, tc
mm = tc.define({MM!r}).mm
for size in (1, 5, 33, 64):
    a, b = np.ones((size, 16), np.float32), np.ones((16, 8), np.float32)
    np.testing.assert_array_equal(mm(a, b), np.full((size, 8), 16, np.float32))
print(*sorted(name for name in ("islpy", "lark", "sqlalchemy") if name in sys.modules))
try:
    mm(np.ones((65, 16), np.float32), b)
except tc.CacheError as error:
    print(error)
"""


def test_production_serves_sizes_that_were_not_seen(tmp_path: Path) -> None:
    from tc.cache.content.ship import ship

    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    run(f"import tc; tc.define({MM!r}).mm.compile((tc.dynamic(64), 16), (16, 8))", environment=settings)
    ship(tmp_path / "k.db", tmp_path / "shipped.db")
    strict = {"TC_CACHE_MODE": "strict", "TC_CACHE": str(tmp_path / "shipped.db")}
    loaded, *miss = run(PRODUCTION, environment=strict).splitlines()
    assert loaded == ""
    assert "has no kernel for mm(A: float32[65, 16], B: float32[16, 8])" in miss[0]
    assert any(line.split() == ["symbolic", "wanted", "[]"] for line in miss)
    assert any(line.split() == ["there", "[[64,[0]]]"] for line in miss)


def test_renamed_definitions_are_served_too(tmp_path: Path) -> None:
    settings = {"TC_CACHE_MODE": "store", "TC_CACHE": str(tmp_path / "k.db")}
    run(f"import tc; tc.define({MM!r}).mm.compile((tc.dynamic(64), 16), (16, 8))", environment=settings)
    other = "def mul(float(R,S) X, float(S,T) Y) -> (Z) { Z(a,b) +=! X(a,c) * Y(c,b) }"
    program = f"""
import numpy as np, sys, tc
x, y = np.ones((31, 16), np.float32), np.ones((16, 8), np.float32)
np.testing.assert_array_equal(tc.define({other!r}).mul(x, y), np.full((31, 8), 16, np.float32))
print("compiled" if "tc.compiler" in sys.modules else "found")
"""
    assert run(program, environment=settings).strip() == "found"


def test_warm_calls_of_many_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once every size was seen, signatures are not looked at any more."""
    mm = tc.define(MM).mm
    mm.compile((tc.dynamic(64), 16), (16, 8))
    for size in (3, 40, 64):
        _call(mm, size)

    def never(*_: object) -> None:
        raise AssertionError("this call is not warm")

    monkeypatch.setattr(Kernels, "get", never)
    for size in (64, 3, 40):
        _call(mm, size)
    with pytest.raises(AssertionError, match="not warm"):
        _call(mm, 41)


def test_what_it_says_of_itself() -> None:
    kernel: Callable[..., object] = tc.define(MM).mm.compile((tc.dynamic(64), 16), (16, 8))
    assert repr(kernel).startswith("<tc.Kernel mm(A[1..64, 16], B[16, 8]) for cpu:")
    text = tc.define(MM).mm.explain((tc.dynamic(64), 16), (16, 8))
    assert "size_M" in text
