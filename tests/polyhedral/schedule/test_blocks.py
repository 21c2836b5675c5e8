"""Statements in blocks: their order, what may leave the block, and that the proof sees every mistake."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import islpy as isl
import pytest

from tc.language.isl.original_order import original_order
from tc.language.isl.session import isl_context
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Node, Sequence
from tc.polyhedral.proof.verify import find_counterexample, prove
from tc.polyhedral.proof.verify_initialization import find_wrong_initialization
from tc.polyhedral.schedule.schedule import schedule_scop, untransformed_tree
from tc.targets.options import CpuOptions, Fusion
from tests.polyhedral.enumeration import is_correct
from tests.polyhedral.interpreter import results
from tests.polyhedral.mutants import mutants
from tests.polyhedral.recurrences import RECURRENCES
from tests.polyhedral.support import MACHINE, candidate
from tests.turns import one_in


def dimensions(scop: Scop) -> dict[str, int]:
    return {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}


def bands(node: Node) -> Iterator[tuple[Band, frozenset[str]]]:
    """Every band, with the statements below it."""
    match node:
        case Band():
            functions = node.members[0].function.domain()
            names: list[str] = []
            functions.foreach_set(lambda piece: names.append(piece.get_tuple_name()))
            yield node, frozenset(names)
            yield from bands(node.child)
        case Sequence(filters):
            for part in filters:
                yield from bands(part.child)
        case Filter():
            yield from bands(node.child)
        case _:
            assert isinstance(node, Leaf)


@pytest.mark.parametrize("name", RECURRENCES)
@pytest.mark.parametrize("fusion", [None, *Fusion], ids=str)
def test_schedules_run_the_steps_in_order(name: str, fusion: Fusion | None) -> None:
    with isl_context() as context:
        scop = build_scop(RECURRENCES[name], context)
        assert find_wrong_initialization(RECURRENCES[name], scop) is None
        plain = untransformed_tree(scop)
        tree = plain if fusion is None else schedule_scop(scop, fusion)
        assert find_counterexample(scop, tree_execution(tree, context)) is None
        loops = generate_loops(tree, context)
        assert find_counterexample(scop, loop_execution(loops, dimensions(scop), context)) is None
        assert is_correct(scop, loops)
        assert results(scop, loops) == results(scop, generate_loops(plain, context)) != {}


@pytest.mark.parametrize("name", RECURRENCES)
def test_the_passes_of_processors_keep_the_steps_in_order(name: str) -> None:
    with isl_context() as context:
        made = candidate(RECURRENCES[name], CpuOptions(), MACHINE, context)
        prove(made.scop, made.execution(made.loops), "loop tree")


@one_in(2)
@pytest.mark.parametrize("name", RECURRENCES)
def test_the_proof_agrees_with_enumeration_on_every_mutant(name: str) -> None:
    """Steps reversed, doubled or left out; statements of a step in another order."""
    wrong = 0
    with isl_context() as context:
        scop = build_scop(RECURRENCES[name], context)
        loops = generate_loops(untransformed_tree(scop), context)
        for change, mutant in mutants(loops):
            found = find_counterexample(scop, loop_execution(mutant, dimensions(scop), context))
            assert (found is None) == is_correct(scop, mutant), (change, found)
            wrong += found is not None
    assert wrong >= 15


def test_what_does_not_depend_on_the_steps_leaves_the_block() -> None:
    with isl_context() as context:
        tree = schedule_scop(build_scop(RECURRENCES["network"], context), Fusion.MINIMAL)
        (below,) = [names for band, names in bands(tree.root) if not band.permutable]
        assert below == {"S2", "S3"}
        (own,) = [band.members for band, names in bands(tree.root) if names == {"S1"}]
        assert own[0].coincident


def test_a_sum_over_the_steps_leaves_the_block() -> None:
    with isl_context() as context:
        tree = schedule_scop(build_scop(RECURRENCES["totals"], context), Fusion.MINIMAL)
        assert [names for band, names in bands(tree.root) if not band.permutable] == [{"S2"}]


def test_the_original_order_has_places_and_steps() -> None:
    with isl_context() as context:
        scop = build_scop(RECURRENCES["sweeps"], context)
        order = original_order([(s.blocks, s.domain) for s in scop.statements], context)
        assert order.is_equal(
            isl.UnionMap(
                "{ S0[i] -> [0, i, 0, 0, 0] : 0 <= i < 7; S1[s, i] -> [1, s, 1, i, 1] : 0 <= s < 3 and 1 <= i < 6;"
                " S2_init[s] -> [1, s, 2, 0, 0] : 0 <= s < 3; S2[s, i] -> [1, s, 3, i, 0] : 0 <= s < 3 and 0 <= i < 7;"
                " S3[s] -> [1, s, 4, 0, 0] : 0 <= s < 3 }",
                context=context,
            )
        )


@pytest.mark.parametrize("name", RECURRENCES)
def test_all_steps_of_a_statement_before_the_next_one_are_refused(name: str) -> None:
    with isl_context() as context:
        scop = build_scop(RECURRENCES[name], context)
        one_by_one = replace(scop, statements=tuple(replace(s, blocks=()) for s in scop.statements))
        found = find_counterexample(scop, tree_execution(untransformed_tree(one_by_one), context))
        # In these two, each statement is in order by itself, and nothing else waits for a step.
        assert (found is None) == (name in ("sums", "totals"))
        assert found is None or found.violation is Violation.REORDERED
