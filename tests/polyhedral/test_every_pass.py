"""What each pass makes is proven, for a sample of every kind of kernel; a pass that errs is named."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

import tc
from tc.base.errors import VerificationError
from tc.language.isl.session import MAX_OPERATIONS
from tc.polyhedral import pipeline
from tc.polyhedral.ir.loops import Block, LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree, Sequence
from tc.polyhedral.pipeline import map_program
from tc.targets.machine import GENERIC_GPU, GPUS, Machine
from tc.targets.options import CpuOptions, Distribution, Fusion, GpuOptions, Options, ScheduleOptions, TileLayout
from tests.polyhedral.support import (
    BLUR,
    CONVOLUTION,
    GRADIENT,
    LAYERS,
    MACHINE,
    MATMUL,
    SHAPES,
    SOFTMAX,
    TRANSPOSED,
    TRIANGLE,
    specialized,
)
from tests.turns import SLOW

OPENCL: Final = replace(GENERIC_GPU, shuffles=False, asynchronous_copies=False, branches=False)
MINIMAL, MAXIMAL = ScheduleOptions(fusion=Fusion.MINIMAL), ScheduleOptions(fusion=Fusion.MAXIMAL)
TILES = ScheduleOptions(tile=(4, 4, 2))
SCALED = "def scaled(float(N,M) A, float(M) s) -> (B) { B(n,m) = A(n,m) * s(m) + 1 }"
GATHER = "def pick(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }"
BAG = "def bag(float(E,D) T, int32(B,L) I) -> (O) { O(b,d) +=! T(I(b,l),d) }"
IN_PLACE = "def added(float(N) A) -> (B) { B(n) += A(n) }"
HALVES = "def rows(half(N,M) A) -> (s) { s(n) +=! A(n,m) }"
SUM = "def total(float(N) A) -> (s) { s +=! A(n) }"
COLUMNS = "def columns(float(N,M) A) -> (s) { s(m) +=! A(n,m) }"
OVERLAPPING = "def overlapping(float(N,K) F) -> (y) { y(n*2+k) +=! F(n,k) }"
ATTENTION = """
def attention(float(N,D) Q, float(M,D) K, float(M,D) V) -> (O) {
  S(n,m) +=! Q(n,d) * K(m,d)
  top(n) max=! S(n,m)
  E(n,m) = exp(S(n,m) - top(n))
  sum(n) +=! E(n,m)
  O(n,d) +=! E(n,m) * V(m,d) / sum(n)
}
"""


SCAN = "def sums(float(N,M) A) -> (y) { y(n,i) +=! A(n,j) where i in 0:M, j in 0:i+1 }"
SCATTER = "def embed(int32(B) I, float(B,D) g, float(V,D) z) -> (y) { y(I(b),d) +=! g(b,d) where I(b) in 0:V }"
GREATEST = "def greatest(float(N,M) A) -> (m, k) { (m(i), k(i)) max=! (A(i,j), j) }"
SEGMENTS = "def segments(float(N) A, int32(R) P) -> (s) { s(r) +=! A(j) where r in 0:R-1, j in P(r):P(r+1) }"
RECURRENT = """
def rnn(float(T,B,I) x, float(I,H) W, float(H,H) U, float(B,H) h0) -> (h) {
  h(0,b,i) = h0(b,i) where i in 0:H
  for t in 0:T {
    z(t,b,i) +=! x(t,b,k) * W(k,i)
    z(t,b,i) += h(t,b,j) * U(j,i)
    h(t+1,b,i) = tanh(z(t,b,i))
  }
}
"""


@dataclass(frozen=True)
class Kind:
    """A kind of kernel: a program at some shapes, and how it is made."""

    name: str
    text: str
    shapes: tuple[tuple[int, ...], ...]
    options: Options = field(default_factory=GpuOptions)
    machine: Machine = GENERIC_GPU


# Small enough for every run of the tests.
KINDS: Final = (
    Kind("elementwise", SCALED, ((33, 129), (129,))),
    Kind("gather", GATHER, ((9, 5), (33,))),
    Kind("in place", IN_PLACE, ((129,),), machine=OPENCL),
    Kind("stencil", BLUR, ((129,),), GpuOptions(ScheduleOptions(tile=(32,)), block=(32,))),
    Kind("triangular", TRIANGLE, ((33,),), machine=GPUS["sm_75"]),
    Kind("sums of a warp", HALVES, ((3, 70),), GpuOptions(split_k_threads=(32,)), GPUS["sm_90"]),
    Kind("sums of several blocks", COLUMNS, ((70, 5),), GpuOptions(split_k_blocks=3, register_accumulators=0)),
    Kind("a tile in shared memory", MATMUL, ((8, 8), (8, 8)), GpuOptions(TILES, block=(2, 2), stages=1)),
    Kind("an open size", SCALED, ((tc.dynamic(70), 9), (9,))),
    Kind("scan", SCAN, ((3, 33),)),
    Kind("scatter", SCATTER, ((33,), (33, 5), (9, 5)), GpuOptions(ScheduleOptions(scatter_owners=4))),
    Kind("segments", SEGMENTS, ((70,), (9,))),
    Kind("processor: scan", SCAN, ((3, 70),), CpuOptions(), MACHINE),
    Kind(
        "processor: scatter", SCATTER, ((33,), (33, 5), (9, 5)), CpuOptions(ScheduleOptions(scatter_parts=4)), MACHINE
    ),
    Kind("processor: segments", SEGMENTS, ((70,), (9,)), CpuOptions(), MACHINE),
    Kind("processor: recurrence", RECURRENT, ((3, 2, 5), (5, 3), (3, 3), (2, 3)), CpuOptions(), MACHINE),
    Kind("processor: gather", BAG, ((9, 5), (7, 3)), CpuOptions(gather_prefetch=4), MACHINE),
    Kind("processor: stored past caches", SCALED, ((33, 129), (129,)), CpuOptions(nontemporal_stores=1), MACHINE),
    Kind("processor: packed", TRANSPOSED, ((33, 70), (65, 70)), CpuOptions(), MACHINE),
)
POINTS = GpuOptions(TILES, block=(2, 2), stages=1, layout=TileLayout.POINTS, distribution=Distribution.BLOCKED)
LARGE: Final = (
    *(Kind(name, *SHAPES[name]) for name in SHAPES),
    Kind("a tile in registers", MATMUL, ((9, 7), (7, 5)), GpuOptions(TILES, block=(2, 2), shared_memory=0)),
    Kind("image of a window", OVERLAPPING, ((9, 3),)),
    Kind("asynchronous copies", MATMUL, ((9, 7), (7, 5)), GpuOptions(TILES, block=(2, 2), stages=2), GPUS["sm_80"]),
    Kind("three stages", MATMUL, ((9, 13), (13, 5)), GpuOptions(TILES, block=(2, 2), stages=3), GPUS["sm_90"]),
    Kind("operands in registers", MATMUL, ((9, 7), (7, 5)), replace(POINTS, register_operands=8)),
    Kind("unrolled", MATMUL, ((9, 7), (7, 5)), replace(POINTS, schedule=replace(TILES, unroll=8))),
    Kind("split-K of tiles", MATMUL, ((9, 64), (64, 5)), GpuOptions(TILES, block=(2, 2), split_k_blocks=3)),
    Kind("few blocks", CONVOLUTION, SHAPES["convolution"][1], GpuOptions(grid=(2, 1))),
    Kind("sums of threads in two steps", SOFTMAX, ((3, 70),), GpuOptions(split_k_threads=(32, 4), shuffles=False)),
    Kind("softmax in a warp", SOFTMAX, ((3, 70),), GpuOptions(split_k_threads=(32,)), GPUS["sm_100"]),
    Kind("statements apart", LAYERS, SHAPES["layers"][1], GpuOptions(MINIMAL), OPENCL),
    Kind("statements together", LAYERS, SHAPES["layers"][1], GpuOptions(MAXIMAL)),
    Kind("attention", ATTENTION, ((5, 7), (9, 7), (9, 7)), machine=GPUS["sm_90"]),
    Kind("attention without promotion", ATTENTION, ((5, 7), (9, 7), (9, 7)),
         GpuOptions(shared_memory=0, register_accumulators=0, split_k_threads=())),
    Kind("scatter of partial results", SCATTER, ((33,), (33, 5), (9, 5)), GpuOptions(ScheduleOptions(scatter_parts=4))),
    Kind("scatter by one thread", SCATTER, ((33,), (33, 5), (9, 5)), GpuOptions(ScheduleOptions(scatter_owners=1))),
    Kind("a reduction with an index", GREATEST, ((5, 70),)),
    Kind("a recurrence", RECURRENT, ((3, 2, 5), (5, 3), (3, 3), (2, 3))),
    Kind("a recurrence in tiles", RECURRENT, ((3, 9, 5), (5, 7), (7, 7), (9, 7)), machine=GPUS["sm_90"]),
    Kind("processor: a reduction with an index", GREATEST, ((5, 70),), CpuOptions(), MACHINE),
    Kind("a long sum", SUM, ((1 << 22,),)),
    Kind("gradient of a convolution", GRADIENT, ((129,), (7,)), GpuOptions(ScheduleOptions(tile=(16,)), block=(16,))),
    Kind("processor: attention", ATTENTION, ((5, 7), (9, 7), (9, 7)), CpuOptions(), MACHINE),
    Kind("processor: tiles", MATMUL, ((33, 70), (70, 65)),
         CpuOptions(ScheduleOptions(tile=(16, 32, 8), unroll=4), register_tile=(4, 16)), MACHINE),
    Kind("processor: no vectors", CONVOLUTION, SHAPES["convolution"][1], CpuOptions(vectorize=False), MACHINE),
    Kind("processor: a long sum", SUM, ((1 << 22,),), CpuOptions(), MACHINE),
)  # fmt: skip


@pytest.mark.parametrize(
    "kind",
    [*(pytest.param(k, id=k.name) for k in KINDS), *(pytest.param(k, id=k.name, marks=SLOW) for k in LARGE)],
)
def test_what_every_pass_makes_is_proven(kind: Kind) -> None:
    program = specialized(kind.text, kind.shapes)
    budget = MAX_OPERATIONS  # of many proofs, of which a compilation has two
    mapped = map_program(program, kind.options, kind.machine, verify_every_pass=True, max_operations=budget)
    assert mapped.proof.leaves


# --- a pass that errs, and one that mends it


def reversed_tree(tree: ScheduleTree, scop: Scop, _options: Options, _machine: Machine) -> tuple[ScheduleTree, Scop]:
    assert isinstance(tree.root, Sequence)
    return replace(tree, root=replace(tree.root, filters=tree.root.filters[::-1])), scop


def reversed_loops(root: LoopTree, scop: Scop, _options: Options, _machine: Machine) -> tuple[LoopTree, Scop]:
    assert isinstance(root, Block)
    return replace(root, children=root.children[::-1]), scop


CHAIN = "def chain(float(N) A) -> (B, C) { B(n) = A(n) + 1 C(n) = B(n) * 2 }"


@pytest.mark.parametrize(
    ("passes", "wrong", "said"),
    [
        ("PASSES", reversed_tree, "schedule after err"),
        ("GRID_PASSES", reversed_tree, "schedule after err"),
        ("LOOP_PASSES", reversed_loops, "code after err"),
        ("GRID_LOOP_PASSES", reversed_loops, "code after err"),
    ],
)
def test_a_fault_that_a_later_pass_hides_is_found(
    monkeypatch: pytest.MonkeyPatch, passes: str, wrong: Any, said: str
) -> None:
    own = getattr(pipeline, passes)
    monkeypatch.setattr(pipeline, passes, (*own[:1], ("err", wrong), ("mend", wrong), *own[1:]))
    options, machine = (GpuOptions(MINIMAL), GENERIC_GPU) if "GRID" in passes else (CpuOptions(MINIMAL), MACHINE)
    program = specialized(CHAIN, ((33,),))
    map_program(program, options, machine)
    with pytest.raises(VerificationError, match=f"^the {said} is not proven correct: "):
        map_program(program, options, machine, verify_every_pass=True)
