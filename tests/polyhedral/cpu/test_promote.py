"""Promotion: the proof accepts what the pass makes and refuses every mutant that computes something else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import islice

import islpy as isl
import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.box import bounding_box, own_space
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.cpu.copy_loops import copy_loops
from tc.polyhedral.cpu.parallelize import parallelize_tree
from tc.polyhedral.cpu.promote import Room, promote_tree
from tc.polyhedral.cpu.register_tile import explicit_tile, register_tile_tree
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.generate.localize import localize_loops
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import PromotedAccess, Scop, build_scop, layouts_of
from tc.polyhedral.ir.tree import Extension, Filter, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, Promoted, promote_accesses
from tc.polyhedral.transform.tile import explicit_sizes, tile_tree
from tc.polyhedral.transform.vectorize import vectorize_tree
from tc.targets.options import CpuOptions, Fusion
from tests.polyhedral.interpreter import results
from tests.polyhedral.lies import with_extensions
from tests.polyhedral.mutants import mutants
from tests.polyhedral.support import MACHINE, SHAPES, scop_of, specialized

NAMES = ("matmul", "transposed", "layers", "convolution")
# Large enough for packing to pay, and ragged.
SIZES: Mapping[str, tuple[tuple[int, ...], ...]] = {
    "matmul": ((5, 4), (4, 7)),
    "transposed": ((18, 5), (7, 5)),
    "layers": ((18, 4), (7, 4), (7,), (17, 7)),
    "convolution": ((1, 2, 4, 5), (2, 2, 2, 3), (2,)),
}


def promoted(scop: Scop) -> tuple[ScheduleTree, Scop]:
    tree = schedule_scop(scop, Fusion.MAXIMAL)
    tree = register_tile_tree(tree, scop, explicit_tile(scop, (2, 3), None), lanes=True)
    tree = vectorize_tree(tile_tree(tree, explicit_sizes((6, 6, 6))), scop, 16, mark=True)
    tree = parallelize_tree(tree, scop, 2, 512)
    return promote_tree(tree, scop, Room(accumulator=64, operand=512, temporary=64))


def loops_of(tree: ScheduleTree, scop: Scop) -> LoopTree:
    buffers = [promotion.buffer for promotion in scop.promotions]
    return localize_loops(generate_loops(tree, scop.context, buffers), scop)


def dimensions(scop: Scop) -> dict[str, int]:
    return {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}


@pytest.mark.parametrize("name", NAMES)
def test_promoted_trees_and_loops_are_proven_and_compute_the_same(name: str) -> None:
    with isl_context() as context:
        plain = build_scop(specialized(SHAPES[name][0], SIZES[name]), context)
        tree, scop = promoted(plain)
        assert scop.promotions
        assert find_counterexample(scop, tree_execution(tree, context)) is None
        loops = loops_of(tree, scop)
        assert find_counterexample(scop, loop_execution(loops, dimensions(scop), context)) is None
        expected = results(plain, generate_loops(schedule_scop(plain, Fusion.MINIMAL), context))
        assert expected is not None
        assert results(scop, loops) == expected


def test_a_temporary_without_dimensions_is_a_buffer_below_a_loop() -> None:
    text = """
def f(float(M,N,N,M) C, float(N,N) A) -> (Y) {
  D min=! A(i,j)
  B(i,j,k,l) = C(i,j,k,l)
  Y(i,j,k) = B(i,j,i,k) + D
}"""
    with isl_context() as context:
        scop = build_scop(specialized(text, ((2, 1, 1, 2), (1, 1))), context)
        tree, changed = promoted(scop)
        assert "D" in {promotion.buffer.name.partition("_")[2] for promotion in changed.promotions}
        assert find_counterexample(changed, tree_execution(tree, context)) is None


def test_a_result_without_dimensions_that_some_instances_read_is_stored() -> None:
    """In a piece of their iteration domain, for which isl asks again whether the buffer has been written."""
    text = """
    def f(float(N,N) B, float(N,N) C, int(N,N) X) -> (D) {
        D min=! B(l,l)
        Y(r,i) max=! C(k, X(r,i))
        O(l) min=! Y(l,n)
        W(m) = m > 2 ? D() : O(m)
    }"""
    mapped = map_program(specialized(text, ((4, 4), (4, 4), (4, 4))), CpuOptions(register_tile=(4, 1)), MACHINE)
    assert "tile0_D[]" in mapped.stage("generate").text
    assert mapped.stage("verify code").text


@pytest.mark.parametrize("name", ["matmul", pytest.param("transposed", marks=pytest.mark.slow)])
def test_every_second_mutant_that_computes_something_else_is_refused(name: str) -> None:
    wrong = refused = 0
    with isl_context() as context:
        tree, scop = promoted(build_scop(specialized(SHAPES[name][0], SIZES[name]), context))
        loops = loops_of(tree, scop)
        expected = results(scop, loops)
        for change, mutant in islice(mutants(loops), 0, None, 2):
            differs = results(scop, mutant) != expected
            found = find_counterexample(scop, loop_execution(mutant, dimensions(scop), context))
            assert found is not None or not differs, f"{change} computes something else and is accepted"
            wrong += differs
            refused += found is not None
    assert refused >= wrong > 20


def violation(scop: Scop, tree: ScheduleTree) -> Violation | None:
    found = find_counterexample(scop, tree_execution(tree, scop.context))
    return None if found is None else found.violation


def spoiled(scop: Scop, statement: str, location: isl.Map, element: isl.Map | None = None) -> Scop:
    """The scop with another location (and element) for the promoted access of one statement."""
    old = scop.statement(statement)
    accesses = tuple(
        replace(a, location=location, element=a.element if element is None else element) for a in old.promoted
    )
    statements = tuple(replace(s, promoted=accesses) if s is old else s for s in scop.statements)
    return replace(scop, statements=statements)


def shifted(access: PromotedAccess) -> isl.Map:
    """Its locations moved by one in the last local subscript."""
    location = access.location
    last = location.dim(isl.dim_type.out) - 1
    space = location.get_space().range()
    local = isl.LocalSpace.from_space(space)
    multi = isl.MultiAff.identity(space.map_from_set())
    moved = isl.Aff.var_on_domain(local, isl.dim_type.set, last).add_constant_val(isl.Val.one(space.get_ctx()))
    return location.apply_range(isl.Map.from_multi_aff(multi.set_aff(last, moved)))


def test_an_access_to_another_element_is_refused() -> None:
    with isl_context() as context:
        tree, scop = promoted(scop_of("matmul", context))
        (access,) = scop.statement("S0").promoted
        moved = spoiled(scop, "S0", location=shifted(access))
        assert violation(moved, tree) in (Violation.WRONG_ELEMENT, Violation.OUT_OF_BOUNDS)


def test_missing_copies_are_refused() -> None:
    with isl_context() as context:
        tree, scop = promoted(scop_of("matmul", context))
        (promotion,) = scop.promotions
        never = replace(scop, promotions=(replace(promotion, stores=None),))
        assert violation(never, tree) is Violation.NOT_STORED
        for what, expected in (("load", Violation.NOT_LOADED), ("store", Violation.NOT_STORED)):
            copies = [s for s in scop.statements if what in s.name]
            assert len(copies) == 1
            (access,) = copies[0].promoted
            nowhere = access.location.subtract(access.location)
            assert (
                violation(spoiled(scop, copies[0].name, location=nowhere, element=nowhere_like(access)), tree)
                is expected
            )


def nowhere_like(access: PromotedAccess) -> isl.Map:
    return access.element.subtract(access.element)


def test_a_buffer_that_is_too_small_is_refused() -> None:
    with isl_context() as context:
        tree, scop = promoted(scop_of("matmul", context))
        (promotion,) = scop.promotions
        layout = promotion.buffer.layout
        small = replace(
            promotion.buffer, layout=Layout(layout.type, (layout.shape[0], layout.shape[1] - 1), layout.strides)
        )
        assert violation(replace(scop, promotions=(replace(promotion, buffer=small),)), tree) is Violation.OUT_OF_BOUNDS


def test_an_access_past_the_buffer_is_refused() -> None:
    with isl_context() as context:
        tree, scop = promoted(scop_of("matmul", context))
        statement = scop.statement("S0")
        whole_row = statement.writes[0].project_out(isl.dim_type.out, 1, 1).add_dims(isl.dim_type.out, 1)
        whole_row = whole_row.set_tuple_name(isl.dim_type.out, "C").intersect_range(statement.writes[0].range())
        bypassing = tuple(replace(s, reads=(*s.reads, whole_row)) if s is statement else s for s in scop.statements)
        found = violation(replace(scop, statements=bypassing), tree)
        assert found in (Violation.BYPASSED, Violation.CONCURRENT, Violation.REORDERED)


def test_a_copy_older_than_what_is_read_is_refused() -> None:
    with isl_context() as context:
        scop = scop_of("layers", context)
        tree = schedule_scop(scop, Fusion.MINIMAL)
        reader, read = next(
            (s, n)
            for s in scop.statements
            if s.body.target == "Y"
            for n, r in enumerate(value_reads(s.body))
            if r.tensor == "X"
        )
        box = bounding_box([reader.reads[read]], ())
        assert box is not None
        early = promote_accesses(
            scop, Footprint((Access(reader.name, read),), (), box), Placement("early", (0, 1)), stored=False
        )
        found = find_counterexample(early.scop, tree_execution(copied_first(early, tree.domain, tree.root), context))
        assert found is not None
        assert found.violation in (Violation.REORDERED, Violation.BYPASSED)


def copied_first(promoted: Promoted, domain: isl.UnionSet, below: Node) -> ScheduleTree:
    """A tree that loads the buffer and then runs what is below."""
    assert promoted.loads is not None
    loops = copy_loops(promoted.loads, 0, promoted.order, layouts_of(promoted.scop), lanes=False, registers=False)
    branches = Filter(own_space(promoted.loads.domain), loops), Filter(domain.universe(), below)
    return ScheduleTree(domain, Extension(promoted.buffer, promoted.instances, Sequence(branches)))


UPDATED = """
def updated(float(N) A) -> (X, Y, Z) {
  Y(i) = X(i) + A(i)
  X(i) += A(i)
  Z(i) = X(i)
}
"""


def test_a_copy_that_is_read_again_after_a_write_past_it_is_refused() -> None:
    with isl_context() as context:
        scop = build_scop(specialized(UPDATED, ((5,),)), context)
        first, _, last = (statement.name for statement in scop.statements)
        reads = Access(first, 0), Access(last, 0)
        box = bounding_box([scop.statement(first).reads[0]], ())
        assert box is not None
        stale = promote_accesses(scop, Footprint(reads, (), box), Placement("stale", (0,)), stored=False)
        tree = schedule_scop(scop, Fusion.MINIMAL)
        assert violation(stale.scop, copied_first(stale, tree.domain, tree.root)) is Violation.BYPASSED


@pytest.mark.parametrize("around", [True, False], ids=["around everything", "nowhere"])
def test_a_buffer_that_lives_elsewhere_is_refused(around: bool) -> None:
    with isl_context() as context:
        tree, scop = promoted(scop_of("matmul", context))
        (buffer,) = (promotion.buffer.name for promotion in scop.promotions)
        root = with_extensions(tree.root, lambda extension: replace(extension, buffer="other"))
        if around:
            root = Extension(buffer, isl.UnionMap.empty(isl.Space.params_alloc(context, 0)), root)
        assert violation(scop, replace(tree, root=root)) is Violation.WRONG_SCOPE


def test_no_buffer_lives_around_a_parallel_loop() -> None:
    """It would belong to one thread; the C compiler refused such kernels."""
    text = "def f(float(H,H) A) -> (X) { B(i) +=! A(i,j) X(l,m,i) min=! A(j,k) * B(l) * A(m,i) }"
    a = np.arange(64, dtype=np.float32).reshape(8, 8)
    result = tc.define(text).f(a)
    np.testing.assert_array_equal(result, (a.min() * a.sum(1)[:, None, None] * a).astype(np.float32))


def test_a_box_that_begins_at_an_open_size_is_none() -> None:
    with isl_context() as context:
        access = isl.Map.read_from_str(context, "[size_N] -> { S[n] -> A[n] : 0 <= n < size_N <= 4 }")
        for where, offset in (("n", (0, (1,))), ("size_N - n", None)):
            function = isl.UnionPwAff.read_from_str(context, f"[size_N] -> {{ S[n] -> [({where})] }}")
            box = bounding_box([access], (Member(function, coincident=True),), strided=True)
            assert (None if box is None else box.offsets[0]) == offset


def test_ends_that_isl_writes_as_quotients_are_integers() -> None:
    text = "def f(int64(M,N) X) -> (O) { O(m) +=! X(m,n) where n in 0:N, n >= m, n + 2*m < N }"
    triangle = tc.define(text).f
    values = np.arange(5 * 1030).reshape(5, 1030)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(8,), fusion=tc.Fusion.MAXIMAL), block=(32,))
    np.testing.assert_array_equal(
        triangle(values, target="emulator", options=options), triangle.oracle(values)["O"].values
    )


def test_contiguous_lanes_are_not_copied_once_for_each_register_tile() -> None:
    """A product of few steps: rows of the second operand lie far apart, and all of it fits the first cache."""
    product = specialized(
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }", ((128, 32), (32, 256))
    )
    buffers = [promotion.name for promotion in map_program(product, CpuOptions(), MACHINE).loops.promoted]
    assert [name for name in buffers if name.startswith("packed")] == []
    assert [name for name in buffers if name.startswith("tile")] != []
