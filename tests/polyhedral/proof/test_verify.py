"""The proof against enumeration: it must accept what is correct and refuse every spoiled tree, with a witness."""

from __future__ import annotations

from dataclasses import replace

import islpy as isl
import pytest

from tc.base.errors import VerificationError
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Layout
from tc.polyhedral.cpu.parallelize import parallelize_tree
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, ScheduleTree, Sequence
from tc.polyhedral.proof.verify import find_counterexample, prove
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.polyhedral.transform.tile import explicit_sizes, tile_tree
from tc.polyhedral.transform.vectorize import vectorize_tree
from tc.targets.options import Fusion
from tests.polyhedral.enumeration import is_correct
from tests.polyhedral.mutants import mutants
from tests.polyhedral.support import SHAPES, scop_of
from tests.turns import every, one_in


def dimensions(scop: Scop) -> dict[str, int]:
    return {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}


def mapped(scop: Scop, fusion: Fusion) -> ScheduleTree:
    tree = tile_tree(schedule_scop(scop, fusion), explicit_sizes((2, 3, 2)))
    return parallelize_tree(vectorize_tree(tree, scop, 16, mark=True), scop, 2, 0)


@one_in(3)
@pytest.mark.parametrize("fusion", Fusion, ids=lambda f: f.value)
@pytest.mark.parametrize("name", SHAPES)
def test_the_pipelines_trees_and_loops_are_correct_and_proven(name: str, fusion: Fusion) -> None:
    with isl_context() as context:
        scop = scop_of(name, context)
        tree = mapped(scop, fusion)
        assert find_counterexample(scop, tree_execution(tree, context)) is None
        loops = generate_loops(tree, context)
        assert find_counterexample(scop, loop_execution(loops, dimensions(scop), context)) is None
        assert is_correct(scop, loops)


@pytest.mark.parametrize(
    "name", every(3, ["matmul", "transposed", "layers", "blur", "softmax", "triangle", "gradient", "product", "turns"])
)
def test_the_proof_agrees_with_enumeration_on_every_mutant(name: str) -> None:
    wrong = 0
    with isl_context() as context:
        scop = scop_of(name, context)
        loops = generate_loops(mapped(scop, Fusion.MAXIMAL), context)
        for change, mutant in mutants(loops):
            correct = is_correct(scop, mutant)
            found = find_counterexample(scop, loop_execution(mutant, dimensions(scop), context))
            assert (found is None) == correct, f"{change}: enumeration says {correct}, the proof {found}"
            assert found is None or "[" in found.witness
            wrong += not correct
    assert wrong > 20


def refuse(scop: Scop, tree: ScheduleTree) -> str:
    with pytest.raises(VerificationError) as caught:
        prove(scop, tree_execution(tree, scop.context), "mutant")
    return str(caught.value)


def test_a_reversed_conflict_is_refused() -> None:
    with isl_context() as context:
        scop = scop_of("matmul", context)
        tree = schedule_scop(scop, Fusion.MAXIMAL)
        band = tree.root
        assert isinstance(band, Band)
        assert isinstance(band.child, Sequence)
        reversed_filters = Sequence(tuple(reversed(band.child.filters)))
        message = refuse(scop, replace(tree, root=replace(band, child=reversed_filters)))
    assert message.startswith(
        "the mutant is not proven correct: two conflicting instances run in the wrong order: S0_init["
    )
    assert " -> S0[" in message


def test_a_reduction_loop_marked_parallel_is_refused() -> None:
    with isl_context() as context:
        scop = scop_of("matmul", context)
        tree = schedule_scop(scop, Fusion.MINIMAL)
        assert isinstance(tree.root, Sequence)
        first, update = tree.root.filters
        assert isinstance(update.child, Band)
        members = tuple(
            member if member.coincident else replace(member, kind=LoopKind.PARALLEL) for member in update.child.members
        )
        spoiled = replace(update, child=replace(update.child, members=members))
        message = refuse(scop, replace(tree, root=Sequence((first, spoiled))))
    assert "two conflicting instances may run at the same time: S0[" in message


def test_a_statement_between_the_instances_of_a_reduction_is_refused() -> None:
    with isl_context() as context:
        scop = scop_of("layers", context)
        names = ["S0", "S1", "S2"]
        scop = replace(scop, statements=tuple(s for s in scop.statements if s.name in names))
        text = "{ S0[b, n] -> [(0)]; S1[b, n, m] -> [(m)]; S2[b, n] -> [(2)] }"
        outer = [
            Member(
                isl.UnionPwAff.read_from_str(
                    context, f"{{ S0[b,n] -> [({i})]; S1[b,n,m] -> [({i})]; S2[b,n] -> [({i})] }}"
                ),
                True,
            )
            for i in ("b", "n")
        ]
        middle = Member(isl.UnionPwAff.read_from_str(context, text), coincident=False)
        filters = tuple(
            Filter(isl.UnionSet.from_set(isl.Set.universe(s.domain.get_space())), Leaf()) for s in scop.statements
        )
        root = Band((*outer, middle), permutable=False, child=Sequence(filters))
        message = refuse(scop, ScheduleTree(scop.domain, root))
    assert "wrong order: S1[" in message
    assert " -> S2[" in message


def test_dropped_and_repeated_instances_are_refused_in_trees() -> None:
    with isl_context() as context:
        scop = scop_of("matmul", context)
        tree = schedule_scop(scop, Fusion.MINIMAL)
        assert isinstance(tree.root, Sequence)
        assert "an instance never runs: S0_init[" in refuse(scop, replace(tree, root=Sequence(tree.root.filters[1:])))
        twice = Sequence((*tree.root.filters, tree.root.filters[0]))
        assert "an instance runs more than once: S0_init[" in refuse(scop, replace(tree, root=twice))


def test_an_access_outside_of_its_buffer_is_refused() -> None:
    with isl_context() as context:
        scop = scop_of("matmul", context)
        tree = schedule_scop(scop, Fusion.MINIMAL)
        small = tuple(
            replace(b, layout=Layout(b.layout.type, (5, 3), b.layout.strides)) if b.name == "A" else b
            for b in scop.buffers
        )
        found = find_counterexample(replace(scop, buffers=small), tree_execution(tree, context))
    assert found is not None
    assert found.violation is Violation.OUT_OF_BOUNDS
    assert "-> A[" in found.witness
