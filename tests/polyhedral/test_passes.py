"""What each option does to the loops, and what happens when isl gives up."""

from __future__ import annotations

import math
from typing import assert_never

import pytest

from tc.base.errors import CompileError
from tc.language.isl.session import isl_context
from tc.polyhedral.analysis.ranges import Ranges, iterator_range, most_iterations
from tc.polyhedral.cpu.parallelize import WORTH_SPREADING
from tc.polyhedral.generate.localize import NotAffineError
from tc.polyhedral.grid_passes import COMPLETING_PASSES, GRID_LOOP_PASSES, GRID_PASSES, LAST_GRID_LOOP_PASSES
from tc.polyhedral.ir.loops import (
    Allocation,
    Block,
    Guard,
    IndexLiteral,
    Loop,
    LoopKind,
    LoopTree,
    Matrices,
    Prefetch,
    Scheduled,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Sequence
from tc.polyhedral.pipeline import Prepared, map_program
from tc.polyhedral.processor_passes import LOOP_PASSES, PASSES, PREFETCH_PASSES
from tc.polyhedral.schedule.schedule import schedule_scop, untransformed_tree
from tc.targets.machine import GENERIC_GPU
from tc.targets.options import CpuOptions, Fusion, GpuOptions, ScheduleOptions
from tests.polyhedral.mutants import nodes
from tests.polyhedral.support import CONVOLUTION, LAYERS, MACHINE, MATMUL, SOFTMAX, TRANSPOSED, scop_of, specialized

Shape = tuple[int, ...]


def mapped(
    text: str,
    *shapes: Shape,
    schedule: ScheduleOptions | None = None,
    vectorize: bool = True,
    register_tile: tuple[int, ...] | None = None,
    threads: int = 0,
    packed: int = 0,
) -> LoopTree:
    options = CpuOptions(
        schedule=schedule or ScheduleOptions(),
        register_tile=register_tile,
        vectorize=vectorize,
        threads=threads,
        packed_operands=packed,
    )
    return map_program(specialized(text, shapes), options, MACHINE, verify_every_pass=True).loops.root


def kinds(tree: LoopTree) -> list[LoopKind]:
    return [node.kind for node in nodes(tree) if isinstance(node, Loop)]


def test_large_kernels_are_spread_over_the_cores_once_and_small_ones_are_not() -> None:
    large = kinds(mapped(MATMUL, (129, 64), (64, 129)))
    assert large.count(LoopKind.PARALLEL) == 1
    assert large[0] is LoopKind.PARALLEL
    assert LoopKind.PARALLEL not in kinds(mapped(MATMUL, (7, 5), (5, 3)))
    assert 129 * 129 * 64 > WORTH_SPREADING > 7 * 5 * 3


def test_one_thread_needs_no_parallel_loop() -> None:
    assert LoopKind.PARALLEL not in kinds(mapped(MATMUL, (129, 64), (64, 129), threads=1))


def test_the_innermost_loop_walks_along_memory() -> None:
    rows = mapped(MATMUL, (33, 17), (17, 65))
    assert (LoopKind.VECTOR, "S0") in innermost(rows)
    dots = mapped(TRANSPOSED, (33, 257), (17, 257))
    assert (LoopKind.REDUCTION, "S0") in innermost(dots)
    packed = mapped(TRANSPOSED, (33, 257), (17, 257), packed=1 << 13)
    assert (LoopKind.VECTOR, "S0") in innermost(packed)


def innermost(tree: LoopTree) -> list[tuple[LoopKind, str]]:
    return [
        (node.kind, node.body.statement)
        for node in nodes(tree)
        if isinstance(node, Loop) and isinstance(node.body, Scheduled)
    ]


def test_vectorize_off_marks_nothing() -> None:
    for text, shapes in ((MATMUL, ((33, 17), (17, 65))), (TRANSPOSED, ((33, 257), (17, 257)))):
        marks = {LoopKind.VECTOR, LoopKind.REDUCTION}
        assert not marks.isdisjoint(kinds(mapped(text, *shapes)))
        assert marks.isdisjoint(kinds(mapped(text, *shapes, vectorize=False)))


def test_unrolled_copies_are_instances() -> None:
    shapes = ((1, 2, 6, 40), (4, 2, 3, 3), (4,))
    count = len([n for n in nodes(mapped(CONVOLUTION, *shapes)) if isinstance(n, Scheduled)])
    unrolled = mapped(CONVOLUTION, *shapes, schedule=ScheduleOptions(unroll=16))
    assert len([n for n in nodes(unrolled) if isinstance(n, Scheduled)]) > count


def test_tile_sizes_bound_the_loops_and_sink_the_points() -> None:
    shapes = (50, 20), (20, 70)
    flat = mapped(MATMUL, *shapes, schedule=ScheduleOptions(tile=()), register_tile=())
    assert nests(flat) == [["S0_init"], ["S0"]]
    assert len(kinds(flat)) == len("mnk")
    tiled = mapped(MATMUL, *shapes, schedule=ScheduleOptions(tile=(16, 32, 8)), register_tile=())
    # Tiles of m and n around both statements; points of m and n in each; tiles and points of k around the update.
    assert len(kinds(tiled)) == len("mn") + len("mn") + len("k") + len("kmn")


def test_a_loop_that_several_reductions_share_is_not_tiled() -> None:
    text = """
    def transform(float(N) re, float(N) im, float(N,N) A) -> (X, Y) {
      C(k,n) = A(k,n) + 1
      S(k,n) = A(k,n) - 1
      X(k) +=! re(n) * C(k,n) + im(n) * S(k,n)
      Y(k) +=! im(n) * C(k,n) - re(n) * S(k,n)
    }
    """
    shapes = (20,), (20,), (20, 20)
    for fusion in (Fusion.MAXIMAL, Fusion.PRESERVE_PARALLEL):
        whole = mapped(text, *shapes, schedule=ScheduleOptions(fusion=fusion, tile=()), register_tile=())
        tiled = mapped(text, *shapes, schedule=ScheduleOptions(fusion=fusion, tile=(0, 4)), register_tile=())
        assert nests(whole) == nests(tiled) == [["S2"], ["S3"]]
        # Of the loops over n, those that write C and S are tiled.
        assert len(kinds(tiled)) == len(kinds(whole)) + len("CS")


def test_register_tiles_are_tiled_and_stand_innermost() -> None:
    shapes = (48, 20), (20, 64)
    tiled = mapped(MATMUL, *shapes, schedule=ScheduleOptions(tile=(16, 32, 8)), register_tile=(4, 16))
    register = [LoopKind.REGISTER, LoopKind.VECTOR]
    outer = [LoopKind.SEQUENTIAL] * 2
    # Tiles of register tiles around both statements, then register tiles in each, and their points; the target is
    # loaded and stored around the points of k.
    init, update = [*outer, *register], [LoopKind.SEQUENTIAL, *outer, *register, LoopKind.SEQUENTIAL, *register]
    assert kinds(tiled) == [LoopKind.PARALLEL, LoopKind.SEQUENTIAL, *init, *update, *register]


@pytest.mark.parametrize(("rows", "lanes", "tiles"), [(48, 64, 1), (50, 64, 2), (48, 70, 2), (50, 70, 4), (3, 64, 1)])
def test_full_and_partial_register_tiles_are_loops_of_known_lengths(rows: int, lanes: int, tiles: int) -> None:
    tree = mapped(MATMUL, (rows, 20), (20, lanes), register_tile=(4, 16))
    register = [loop for loop in loops(tree) if loop.kind in (LoopKind.REGISTER, LoopKind.VECTOR)]
    assert all(isinstance(loop.lower, IndexLiteral) and isinstance(loop.upper, IndexLiteral) for loop in register)
    assert len([node for node in nodes(tree) if isinstance(node, Allocation)]) == tiles
    lengths = {int(loop.upper.value) + 1 for loop in register if isinstance(loop.upper, IndexLiteral)}
    assert lengths == {min(rows, 4), rows % 4 or 4, 16, lanes % 16 or 16}


def loops(tree: LoopTree) -> list[Loop]:
    return [node for node in nodes(tree) if isinstance(node, Loop)]


def nests(tree: LoopTree) -> list[list[str]]:
    """Statements of the children of the innermost block."""
    blocks = [node for node in nodes(tree) if isinstance(node, Block)]
    return [[n.statement for n in nodes(child) if isinstance(n, Scheduled)] for child in blocks[-1].children]


def test_fusion_strategies() -> None:
    with isl_context() as context:
        scop = scop_of("layers", context)
        counts = {}
        for fusion in Fusion:
            root = schedule_scop(scop, fusion).root
            counts[fusion] = len(root.filters) if isinstance(root, Sequence) else 1
    assert counts == {Fusion.MAXIMAL: 1, Fusion.PRESERVE_PARALLEL: 2, Fusion.MINIMAL: 5}


def test_softmax_reads_its_rows_in_one_parallel_loop() -> None:
    tree = mapped(SOFTMAX, (200, 300))
    assert kinds(tree).count(LoopKind.PARALLEL) == 1


def test_empty_domains_run_nothing() -> None:
    assert [n for n in nodes(mapped(MATMUL, (0, 3), (3, 5))) if isinstance(n, Scheduled)] == []
    only_initialized = mapped(MATMUL, (2, 0), (0, 3))
    assert [n.statement for n in nodes(only_initialized) if isinstance(n, Scheduled)] == ["S0_init"]


def test_a_scheduler_out_of_budget_leaves_the_program_order() -> None:
    program = specialized(LAYERS, ((33, 40), (20, 40), (20,), (30, 20)))
    with pytest.raises(
        CompileError, match="layers: the proof or the generation of its loops exceeds isl's budget of 10"
    ):
        map_program(program, CpuOptions(), MACHINE, max_operations=10)
    with isl_context() as context:
        scop = scop_of("layers", context)
        tree = untransformed_tree(scop)
    assert isinstance(tree.root, Sequence)
    assert len(tree.root.filters) == 5
    bands = [f.child for f in tree.root.filters]
    assert all(isinstance(b, Band) and not any(m.coincident for m in b.members) for b in bands)


def test_a_budget_too_small_for_scheduling_but_not_for_the_proof(monkeypatch: pytest.MonkeyPatch) -> None:
    program = specialized(LAYERS, ((33, 40), (20, 40), (20,), (30, 20)))
    assert "coincident" in map_program(program, CpuOptions(), MACHINE).stage("schedule").text
    monkeypatch.setattr("tc.polyhedral.needed_operations._TO_SCHEDULE", 10)
    fallback = map_program(program, CpuOptions(), MACHINE)
    assert "coincident" not in fallback.stage("schedule").text
    assert LoopKind.PARALLEL not in kinds(fallback.loops.root)


def test_the_pipeline_is_literal_lists() -> None:
    names = ["distribute products", "chunk steps", "register tile", "tile", "vectorize", "parallelize", "promote"]
    assert [name for name, _ in PASSES] == [*names, "unroll"]
    fills = ["stream fills", "strip fills"]
    loops = ["localize", "separate tiles", "constant unroll bounds", "unroll borders", "guard tiles"]
    loops += ["separate borders", *fills]
    assert [name for name, _ in LOOP_PASSES] == loops
    prefetches = [f"prefetch {what}" for what in ("gathers", "blocks", "stores", "fills", "copies", "panels", "pieces")]
    assert [name for name, _ in PREFETCH_PASSES] == prefetches
    mapped = map_program(specialized(MATMUL, ((8, 8), (8, 8))), CpuOptions(), MACHINE)
    names = [stage.name for stage in mapped.stages]
    expected = [*(name for name, _ in PASSES), "generate", *loops, *prefetches, "steps"]
    assert names[2:-2] == expected
    grid = map_program(specialized(MATMUL, ((8, 8), (8, 8))), GpuOptions(), GENERIC_GPU)
    last = (*LAST_GRID_LOOP_PASSES, *COMPLETING_PASSES)
    passes = [name for name, _ in GRID_PASSES], [name for name, _ in (*GRID_LOOP_PASSES, *last)]
    names = [stage.name for stage in grid.stages]
    assert names[2 : names.index("kernels")] == [*passes[0], "generate", *passes[1]]


def test_many_unrolled_copies_are_proven_with_little_work() -> None:
    text = "def f(float(M,M) A, float(P,K) C) -> (O) { O(j,i,m) +=! C(m,j) * A(i,k) }"
    options = CpuOptions(schedule=ScheduleOptions(tile=(3, 3), unroll=64), register_tile=())
    found = map_program(specialized(text, ((8, 8), (5, 4))), options, MACHINE, max_operations=20_000_000)
    assert len([n for n in nodes(found.loops.root) if isinstance(n, Scheduled)]) > 50
    assert found.proof.leaves == 2


@pytest.mark.parametrize("streamed", [0, 1])
def test_unrolled_points_of_a_large_tile_are_proven_with_little_work(streamed: int) -> None:
    """Every copy is a set of its own, of one remainder by the size of the tile."""
    text = "def f(float(M,N) X) -> (O) { O(l,i) = X(l/3, N-1-i) where l in 0:96, i in 0:N }"
    options = CpuOptions(schedule=ScheduleOptions(tile=(32,), unroll=64), nontemporal_stores=streamed)
    found = map_program(specialized(text, ((32, 32),)), options, MACHINE, max_operations=20_000_000)
    # What is streamed is cut into pieces, whose points are fewer.
    assert len([n for n in nodes(found.loops.root) if isinstance(n, Scheduled)]) >= (8 if streamed else 32)


def test_conflicts_with_divisions_are_scheduled_with_little_work() -> None:
    """Given these conflicts as they are, and not their affine hulls, isl searches for coefficients for minutes."""
    text = """
def f(int16(H,H,H,H) C) -> (D, X, T) {
  D(i,l,k,j) = C(i,j,k,i) where i in 0:H, l in 0:H, j in 0:H
  X(i,j,k,l,m) = D(i,j,k,l) + D(k,k,k%3,j) + (k + 2 < D.2 ? D(j,m,k+2,m%2) : 2) where m in 0:H
  T(r,j,l) +=! D(n,l,n,i) * X(r,j,n,l,i) where j in 0:H, n in 0:H
}"""
    options = CpuOptions(schedule=ScheduleOptions(fusion=Fusion.MAXIMAL))
    assert map_program(specialized(text, ((2, 2, 2, 2),)), options, MACHINE).proof.leaves >= 3


def test_names_may_begin_with_a_digit() -> None:
    text = "def f(float(4K,4K) 2LUT) -> (0C) { 5T(2i,3d) = 2LUT(3d,2i) 0C(2i) +=! 5T(2i,3d) where 3d in 0:2i+1 }"
    assert list(nodes(mapped(text, (7, 7))))


def test_a_promotion_whose_subscripts_have_no_affine_form_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(root: LoopTree, scop: Scop) -> LoopTree:
        if scop.promotions:
            raise NotAffineError
        return root

    monkeypatch.setattr("tc.polyhedral.passes.localize_loops", refuse)
    program = map_program(specialized(MATMUL, ((40, 20), (20, 64))), CpuOptions(), MACHINE).loops
    assert program.promoted == ()
    assert "S0_load0" not in [body.name for body in program.bodies]


def test_places_that_no_iteration_reaches_need_no_local_subscripts() -> None:
    value = "D(i,j) + (j >= 1 ? D(B(k), j-1) : 1) + D(k,j)"
    text = f"def f(float(N,K) D, int32(N) B) -> (Y) {{ Y(k) *=! {value} where k in 0:4 }}"
    schedule = ScheduleOptions(fusion=Fusion.MINIMAL, tile=(), unroll=16)
    program = map_program(specialized(text, ((4, 31), (4,))), CpuOptions(schedule=schedule), MACHINE)
    assert program.proof.statements >= 2


def test_local_subscripts_that_the_loops_do_not_determine_give_the_promotion_up() -> None:
    text = (
        "def f(float(N,N,N) A, float(N,N) B) -> (Y) {"
        " T(l,m,k) +=! A(m,j,k) / B(k,l/2) Y(r,n,i) = T(r,n,i) + (3*r < N ? T(i,3*r,r) : 1.0) }"
    )
    assert map_program(specialized(text, ((4, 4, 4), (4, 4))), CpuOptions(), MACHINE).proof.statements >= 3


@pytest.mark.parametrize("shapes", [((256, 512), (256, 512)), ((512, 256), (64, 256))])
def test_one_thread_packs_every_element_of_an_operand_once(shapes: tuple[Shape, ...]) -> None:
    """The pass that spreads loops over cores also orders them, which says what is packed how often."""
    tree = map_program(specialized(TRANSPOSED, shapes), CpuOptions(threads=1), MACHINE).loops.root
    assert runs(tree, "S0_pack0", {}) == math.prod(shapes[1])


def runs(tree: LoopTree, statement: str, ranges: Ranges) -> int:
    """How often a statement runs in loops without guards."""
    match tree:
        case Scheduled(name, _):
            return int(name == statement)
        case Prefetch():
            return 0
        case Block(children):
            return sum(runs(child, statement, ranges) for child in children)
        case Allocation(_, body):
            return runs(body, statement, ranges)
        case Loop():
            inside = runs(tree.body, statement, {**ranges, tree.iterator: iterator_range(tree, ranges)})
            return inside and inside * (most_iterations(tree, ranges) or 0)
        case Matrices(nest=nest):
            return runs(nest, statement, ranges)
        case Guard():
            assert not runs(tree.then, statement, ranges)
            return 0
        case _:
            assert_never(tree)


def test_the_budget_of_isl_grows_with_the_statements() -> None:
    """By default, a proof of one statement ends after about two seconds, whatever the options."""
    one = specialized("def f(float(N) a) -> (b) { b(i) = a(i) }", ((8,),))
    many = specialized(f"def f(float(N) a) -> (b) {{ b(i) = a(i) {'b(i) += a(i) ' * 20} }}", ((8,),))
    assert Prepared(one).max_operations == 1_500_000
    assert Prepared(many).max_operations == 21_500_000
