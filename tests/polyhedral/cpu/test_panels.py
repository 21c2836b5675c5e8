"""Operands in panels: laid out as register tiles read them, and refused where copies and reads do not agree."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import islpy as isl
import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.cpu.promote import Room, promote_tree
from tc.polyhedral.cpu.register_tile import explicit_tile, register_tile_tree
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.panels import Panels, in_panels
from tc.polyhedral.ir.scop import PromotedAccess, Scop, ScopStatement, build_scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.proof.verify_statements import find_changed_statement
from tc.polyhedral.schedule.schedule import schedule_scop
from tc.polyhedral.transform.vectorize import vectorize_tree
from tc.reference.compare import compare
from tc.targets.options import CpuOptions, Fusion
from tests.polyhedral.support import MACHINE, specialized

TURNED = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
BATCHED = "def f(float(G,M,K) A, float(G,N,K) B) -> (C) { C(g,m,n) +=! A(g,m,k) * B(g,n,k) }"
BIASED = "def f(float(M,K) A, float(N,K) B, float(N) b) -> (C) { C(m,n) = b(n)  C(m,n) += A(m,k) * B(n,k) }"


def promoted(text: str, shapes: tuple[tuple[int, ...], ...], context: isl.Context) -> tuple[Scop, ScheduleTree, Scop]:
    """The scop, and the tree and the scop with an operand in panels of three lanes."""
    plain = build_scop(specialized(text, shapes), context)
    tree = schedule_scop(plain, Fusion.MAXIMAL)
    tree = register_tile_tree(tree, plain, explicit_tile(plain, (2, 3), None), lanes=True)
    tree = vectorize_tree(tree, plain, 16, mark=True)
    return (plain, *promote_tree(tree, plain, Room(accumulator=64, operand=1 << 15)))


SHAPES = ((20, 70), (132, 70))


def test_wide_operands_lie_in_panels() -> None:
    """Rows of a panel follow the steps; it begins at a line, and the next one not in the same sets of the cache."""
    loops = map_program(specialized(TURNED, ((96, 256), (256, 256))), CpuOptions(), MACHINE).loops
    (packed,) = (buffer.layout for buffer in loops.promoted if buffer.name.startswith("packed"))
    count, lanes, steps = packed.shape
    assert count > 1
    assert steps == 256
    assert packed.strides == (lanes * steps + 16, 1, lanes)


@pytest.mark.parametrize(
    ("rows", "steps", "columns", "packed"),
    [
        (128, 64, 1024, True),  # all steps of some lanes meet in a few sets of the cache
        (128, 8, 1024, False),  # which hold so many
        (128, 64, 1000, False),  # and other rows meet in more of them
        (16, 64, 1024, False),  # and few rows do not make up for the copies
    ],
)
def test_lanes_of_rows_that_lie_pages_apart_are_packed(rows: int, steps: int, columns: int, packed: bool) -> None:
    text = "def f(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
    loops = map_program(specialized(text, ((rows, steps), (steps, columns))), CpuOptions(), MACHINE).loops
    assert any(buffer.name.endswith("_B") for buffer in loops.promoted if buffer.name.startswith("packed")) is packed


def test_operands_of_the_first_cache_lie_in_rows() -> None:
    loops = map_program(specialized(TURNED, ((96, 16), (128, 16))), CpuOptions(), MACHINE).loops
    (packed,) = (buffer.layout for buffer in loops.promoted if buffer.name.startswith("packed"))
    assert packed.shape == (128, 16)


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        (TURNED, ((37, 259), (301, 259))),
        (TURNED, ((64, 128), (192, 128))),
        (BATCHED, ((3, 17, 130), (3, 131, 130))),
        (BIASED, ((33, 301), (127, 301), (127,))),
    ],
)
def test_results_agree_with_the_oracle(text: str, shapes: tuple[tuple[int, ...], ...]) -> None:
    random = np.random.default_rng(0)
    for type in ("f4", "f8"):
        f = tc.define(text.replace("float", "double") if type == "f8" else text).single()
        arrays = [random.standard_normal(shape).astype(type) for shape in shapes]
        comparison = compare(f.oracle(*arrays)["C"], np.asarray(f(*arrays)))
        assert comparison.ok, str(comparison)


def test_places_in_panels_are_those_of_a_quotient_and_a_remainder() -> None:
    with isl_context() as context:
        place = isl.Map.read_from_str(context, "{ S[i, j] -> [j, i] }")
        wanted = isl.Map.read_from_str(context, "{ S[i, j] -> [floor(i/16), i mod 16, j] }")
        assert in_panels(place, Panels(1, 16)).is_equal(wanted)


def changed(scop: Scop, buffer: str, change: Callable[[PromotedAccess], PromotedAccess], *, copies: bool) -> Scop:
    """The scop with other accesses to a buffer: those of its copies, or of all others."""
    loads = {promotion.loads for promotion in scop.promotions}

    def accesses(statement: ScopStatement) -> tuple[PromotedAccess, ...]:
        own = (statement.name in loads) is copies
        return tuple(change(a) if own and a.buffer == buffer else a for a in statement.promoted)

    return replace(scop, statements=tuple(replace(s, promoted=accesses(s)) for s in scop.statements))


MISTAKES = {
    "narrower panels": Panels(0, 2),
    "wider panels": Panels(0, 4),
    "panels of another dimension": Panels(1, 3),
}


@pytest.mark.parametrize("copies", [True, False], ids=["copies", "reads"])
@pytest.mark.parametrize("mistake", MISTAKES)
def test_accesses_with_other_panels_are_refused(mistake: str, copies: bool) -> None:
    with isl_context() as context:
        _, tree, scop = promoted(TURNED, SHAPES, context)
        (packed,) = (own for own in scop.promotions if own.tensor == "B")
        assert packed.panels == Panels(0, 3)
        assert find_counterexample(scop, tree_execution(tree, context)) is None
        wrong = changed(scop, packed.buffer.name, lambda own: replace(own, panels=MISTAKES[mistake]), copies=copies)
        found = find_counterexample(wrong, tree_execution(tree, context))
        assert found is not None
        assert found.violation is Violation.OUT_OF_BOUNDS
        # Nor where there is room.
        room = replace(
            packed.buffer, layout=replace(packed.buffer.layout, shape=(200, 200, 200), strides=(40000, 1, 200))
        )
        promotions = tuple(replace(own, buffer=room) if own is packed else own for own in scop.promotions)
        found = find_counterexample(replace(wrong, promotions=promotions), tree_execution(tree, context))
        assert found is not None
        assert found.violation is Violation.WRONG_SCOPE


def test_arrays_with_too_few_panels_are_refused() -> None:
    with isl_context() as context:
        _, tree, scop = promoted(TURNED, SHAPES, context)
        (packed,) = (own for own in scop.promotions if own.tensor == "B")
        count, *others = packed.buffer.layout.shape
        layout = replace(packed.buffer.layout, shape=(count - 1, *others))
        small = replace(packed, buffer=replace(packed.buffer, layout=layout))
        wrong = replace(scop, promotions=tuple(small if own is packed else own for own in scop.promotions))
        assert find_counterexample(wrong, tree_execution(tree, context)) is not None


def test_copies_with_turned_subscripts_are_refused() -> None:
    with isl_context() as context:
        plain, _, scop = promoted(TURNED, SHAPES, context)
        (packed,) = (own for own in scop.promotions if own.tensor == "B")
        assert find_changed_statement(plain, scop) is None
        copy = scop.statement(packed.loads or "")
        number, within, *others = copy.body.subscripts
        for subscripts in ((within, number, *others), (number, number, *others), (number, within, *others, number)):
            body = replace(copy.body, subscripts=subscripts)
            statements = tuple(replace(s, body=body) if s is copy else s for s in scop.statements)
            assert find_changed_statement(plain, replace(scop, statements=statements)) is not None
