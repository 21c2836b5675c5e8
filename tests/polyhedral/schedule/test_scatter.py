"""Shared scatters: the programs that result, and what their proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.session import isl_context
from tc.language.program.program import (
    INDEX_TYPE,
    Binary,
    IteratorReference,
    Literal,
    Owned,
    Program,
    Reduction,
    Statement,
)
from tc.language.program.specialization import Specialization
from tc.language.text.print_program import program_text
from tc.polyhedral.analysis.box import bounding_box
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.ir.splits import Share
from tc.polyhedral.proof.verify_statements import find_changed_statement
from tc.polyhedral.schedule.scatter import share_scatters
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, accesses_to, promote_accesses
from tests.polyhedral.schedule.sharing import refused

ROWS = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (y) { y(I(b), d) +=! v(b, d) where I(b) in 0:V }"
SHAPES = ((20,), (20, 3), (11, 3))


def specialized(text: str = ROWS, shapes: tuple[tuple[int, ...], ...] = SHAPES) -> Specialization:
    return tc.define(text).single().specialize(*shapes)


def test_owners_are_a_loop_around_all_terms() -> None:
    changed, (shared,) = share_scatters(specialized(), (Share("S0", owners=4),))
    (statement,) = changed.program.statements
    assert [iterator.name for iterator in statement.iterators] == ["owner", "b", "d"]
    assert statement.iterators[0].end == Literal(4, INDEX_TYPE)
    begin = Binary(BinaryOperator.MULTIPLY, IteratorReference("owner"), Literal(3, INDEX_TYPE), INDEX_TYPE)
    end = Binary(BinaryOperator.ADD, begin, Literal(3, INDEX_TYPE), INDEX_TYPE)
    assert statement.owned == Owned(0, begin, end)
    assert not shared.values


def test_parts_are_two_statements() -> None:
    changed, _ = share_scatters(specialized(), (Share("S0", parts=3),))
    lines = [line.strip() for line in program_text(changed.program).splitlines()[1:-1]]
    assert lines == [
        (
            "y_parts(b_part, I(7 * b_part + b_step), d) +=! v(7 * b_part + b_step, d) where b_part in 0:3, "
            "b_step in 0:7, d in 0:3, I(7 * b_part + b_step) in 0:11, 7 * b_part + b_step < 20"
        ),
        "y(e0, d) +=! y_parts(b_part, e0, d) where e0 in 0:11, d in 0:3, b_part in 0:3",
    ]


def owned(change: Callable[[Owned], Owned]) -> Callable[[Statement], Statement]:
    def changed(statement: Statement) -> Statement:
        assert statement.owned is not None
        return replace(statement, owned=change(statement.owned))

    return changed


def shorter(statement: Statement) -> Statement:
    first, *rest = statement.iterators
    assert isinstance(first.end, Literal)
    return replace(statement, iterators=(replace(first, end=Literal(first.end.value - 1, INDEX_TYPE)), *rest))


def one_more(owned: Owned) -> Owned:
    return replace(owned, end=Binary(BinaryOperator.ADD, owned.end, Literal(1, INDEX_TYPE), INDEX_TYPE))


def fewer_terms(statement: Statement) -> Statement:
    inner = shorter(replace(statement, iterators=statement.iterators[1:])).iterators
    return replace(statement, iterators=(statement.iterators[0], *inner))


WITH_OWNERS: dict[str, Callable[[Statement], Statement]] = {
    "two owners of one element": owned(one_more),
    "all own everything": owned(lambda own: Owned(0, Literal(0, INDEX_TYPE), Literal(11, INDEX_TYPE))),
    "nobody owns the last elements": shorter,
    "another dimension": owned(lambda own: replace(own, dimension=1)),
    "ranges that depend on terms": owned(lambda own: replace(own, begin=IteratorReference("b"))),
    "no ranges": lambda statement: replace(statement, owned=None),
    "another operator": lambda statement: replace(statement, reduction=Reduction.MULTIPLY),
    "fewer terms": fewer_terms,
}


@pytest.mark.parametrize("name", WITH_OWNERS)
def test_wrong_owners_are_refused(name: str) -> None:
    def mutate(program: Program) -> Program:
        return replace(program, statements=tuple(map(WITH_OWNERS[name], program.statements)))

    assert refused(specialized(), Share("S0", owners=4), mutate)


def total(change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    return lambda program: replace(program, statements=(program.statements[0], change(program.statements[1])))


def partial(change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    return lambda program: replace(program, statements=(change(program.statements[0]), *program.statements[1:]))


IN_PARTS: dict[str, Callable[[Program], Program]] = {
    "a part that is not combined": total(
        lambda own: replace(
            own, iterators=(*own.iterators[:-1], replace(own.iterators[-1], begin=Literal(1, INDEX_TYPE)))
        )
    ),
    "a part without its terms": partial(shorter),
    "parts that are not begun": partial(lambda own: replace(own, initialize=False)),
    "the same element": partial(
        lambda own: replace(own, subscripts=(*own.subscripts[:1], *own.subscripts[2:], own.subscripts[1]))
    ),
    "another operator": total(lambda own: replace(own, reduction=Reduction.MAXIMUM)),
    "no condition": partial(lambda own: replace(own, conditions=())),
    "combined before they are there": lambda program: replace(program, statements=program.statements[::-1]),
    "terms only": lambda program: replace(program, statements=program.statements[:1]),
}


@pytest.mark.parametrize("name", IN_PARTS)
def test_wrong_parts_are_refused(name: str) -> None:
    assert refused(specialized(), Share("S0", parts=3), IN_PARTS[name])


def test_what_options_ask_for() -> None:
    f = tc.define(ROWS).single()
    plain = tc.define("def g(float(N) x) -> (y) { y(i) = x(i) }").single()
    asked = {
        "scatter_owners": tc.ScheduleOptions(scatter_owners=4),
        "scatter_parts": tc.ScheduleOptions(scatter_parts=4),
    }
    for name, schedule in asked.items():
        message = f"{name}=4: g has no left-hand side that reads a tensor; leave it out"
        with pytest.raises(tc.OptionsError, match=message):
            plain.compile((5,), options=tc.CpuOptions(schedule))
    triangle = tc.define(
        "def f(int32(B) I, float(B,B) v, float(V) z) -> (y) "
        "{ y(I(b)) +=! v(b,k) where b in 0:B, k in 0:b, I(b) in 0:V }"
    ).single()
    with pytest.raises(tc.OptionsError, match=r"the terms of S0 in f cannot be dealt to parts: .* use scatter_owners"):
        triangle.compile((5,), (5, 5), (3,), options=tc.CpuOptions(tc.ScheduleOptions(scatter_parts=2)))
    owners = f.compile(*SHAPES, options=tc.CpuOptions(tc.ScheduleOptions(scatter_owners=4)))
    assert "S0[owner, b, d]" in owners.schedule
    parts = f.compile(*SHAPES, options=tc.CpuOptions(tc.ScheduleOptions(scatter_parts=4)))
    assert "S0_total" in parts.schedule


def test_what_data_choose_is_not_promoted() -> None:
    """With one element for each owner, the relation says what is written; whether it is, only data say."""
    changed, _ = share_scatters(specialized(), (Share("S0", owners=11),))
    with isl_context() as context:
        scop = build_scop(changed, context)
        access = Access("S0", None)
        assert accesses_to(scop, "y", scop.domain) is None
        (write,) = scop.statement("S0").writes
        assert write.is_single_valued()
        box = bounding_box([write], ())
        assert box is not None
        promoted = promote_accesses(
            scop, Footprint((access,), (), box), Placement("buffer", tuple(range(len(box.extents)))), stored=True
        )
        found = find_changed_statement(scop, promoted.scop)
        assert found is not None
        assert found.violation is Violation.CHANGED
