"""From schedule trees to loops, and what isl makes of them on the way."""

from __future__ import annotations

import islpy as isl
import pytest

from tc.language.isl.session import isl_context
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.ir.loops import Guard, Instance, Loop, LoopKind
from tc.polyhedral.ir.tree import Band, Leaf, Member, ScheduleTree


def band(context: isl.Context, *members: tuple[str, LoopKind]) -> Band:
    made = [
        Member(isl.UnionPwAff.read_from_str(context, f"{{ S[i, j] -> [{value}] }}"), coincident=False, kind=kind)
        for value, kind in members
    ]
    return Band(tuple(made), permutable=False, child=Leaf())


@pytest.mark.parametrize("kind", [LoopKind.PARALLEL, LoopKind.VECTOR, LoopKind.REGISTER, LoopKind.UNROLLED])
def test_the_kind_of_a_loop_that_isl_leaves_out_is_no_other_loops(kind: LoopKind) -> None:
    with isl_context() as context:
        domain = isl.UnionSet.read_from_str(context, "{ S[i, j] : i = 3 and 0 <= j < 8 }")
        root = band(context, ("i", kind), ("j", LoopKind.SEQUENTIAL))
        found = generate_loops(ScheduleTree(domain, root), context)
    assert isinstance(found, Loop)
    assert found.kind is LoopKind.SEQUENTIAL
    assert isinstance(found.body, Instance)


def test_a_guard_between_a_mark_and_its_loop_leaves_it_its_kind() -> None:
    with isl_context() as context:
        domain = isl.UnionSet.read_from_str(context, "{ S[i, j] : 0 <= i < 80 and i mod 3 > 0 and 0 <= j <= i }")
        root = band(context, ("i", LoopKind.SEQUENTIAL), ("j", LoopKind.PARALLEL))
        outer = generate_loops(ScheduleTree(domain, root), context)
    assert isinstance(outer, Loop)
    assert outer.kind is LoopKind.SEQUENTIAL
    assert isinstance(outer.body, Guard)
    assert isinstance(outer.body.then, Loop)
    assert outer.body.then.kind is LoopKind.PARALLEL
