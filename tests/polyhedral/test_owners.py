"""What a thread keeps in registers is not seen by other threads until it is stored."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from unittest.mock import patch

import islpy as isl
import pytest

import tc
from tc.polyhedral.analysis.box import bounding_box, own_space
from tc.polyhedral.analysis.copies import copy_band
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.grid_passes import MAP
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.pipeline import _Run
from tc.polyhedral.transform.promotion import Access, Footprint, Placement, Promoted, promote_accesses, relation_of

Made = tuple[ScheduleTree, Scop]


def refusal(text: str, make: Callable[[Scop], Made]) -> str:
    """What the proof has against this schedule in place of the one that a kernel would have."""

    def passes(_run: _Run, _tree: ScheduleTree, scop: Scop) -> Iterator[tuple[str, ScheduleTree, Scop]]:
        yield MAP, _tree, scop
        yield "place barriers", *place_barriers(*make(scop))

    with patch.object(_Run, "passes", passes), pytest.raises(tc.VerificationError) as refused:
        tc.define(text).single().compile((8,), target="emulator", options=tc.GpuOptions(split_k_threads=()))
    return str(refused.value)


def threads(scop: Scop, functions: str) -> tuple[Member, ...]:
    """One block, and a loop over threads with these functions of the instances."""
    zero = "; ".join(f"{s.name}{'[i]' if s.domain.dim(isl.dim_type.set) else '[]'} -> [(0)]" for s in scop.statements)
    kinds = ((zero, LoopKind.BLOCK), (functions, LoopKind.THREAD))
    return tuple(
        Member(isl.UnionPwAff.read_from_str(scop.context, f"{{ {text} }}"), coincident=True, kind=kind)
        for text, kind in kinds
    )


def kept(scop: Scop, members: tuple[Member, ...], *statements: str) -> Promoted:
    """Every thread keeps what these statements write, and stores it."""
    accesses = [Access(name, None) for name in statements]
    box = bounding_box([relation_of(scop.statement(a.statement), a) for a in accesses], members, strided=True)
    assert box is not None
    return promote_accesses(
        scop, Footprint(accesses, members, box), Placement("kept", tuple(range(len(box.extents)))), stored=True
    )


def only(scop: Scop, name: str, child: Node | None = None) -> Filter:
    return Filter(own_space(scop.statement(name).domain), child or Leaf())


def test_what_another_thread_keeps_is_not_read_past_it() -> None:
    text = """
def f(float(N) x) -> (T, o) {
  T(i) = x(i)
  o(i) = T(7 - i) where i in 0:8
  T(i) += x(i)
}
"""

    def make(scop: Scop) -> Made:
        members = threads(scop, "S0[i] -> [(i)]; S1[i] -> [(i)]; S2[i] -> [(i)]")
        promoted = kept(scop, members, "S0", "S2")
        assert promoted.stores is not None
        last = Filter(own_space(promoted.stores.domain), copy_band(promoted.stores, 2))
        every = Sequence((*(only(promoted.scop, name) for name in ("S0", "S1", "S2")), last))
        return ScheduleTree(
            scop.domain, Band(members, True, Extension("kept", promoted.instances, every))
        ), promoted.scop

    assert "an access bypasses the buffer that holds its element: S" in refusal(text, make)


def test_no_two_threads_keep_what_one_of_them_writes() -> None:
    def make(scop: Scop) -> Made:
        members = threads(scop, "S0_init[] -> [(0)]; S0[i] -> [(i)]")
        promoted = kept(scop, members, "S0")
        assert promoted.loads is not None
        assert promoted.stores is not None
        space = isl.LocalSpace.from_space(promoted.stores.domain.get_space())
        thread = isl.UnionPwAff.from_pw_aff(isl.PwAff.from_aff(isl.Aff.var_on_domain(space, isl.dim_type.set, 1)))
        in_turns = Band((Member(thread, coincident=False),), True, Leaf())
        every = Sequence(
            (
                Filter(own_space(promoted.loads.domain), Leaf()),
                only(promoted.scop, "S0"),
                Filter(own_space(promoted.stores.domain), in_turns),
            )
        )
        sums = only(scop, "S0", Extension("kept", promoted.instances, every))
        return ScheduleTree(scop.domain, Band(members, True, Sequence((only(scop, "S0_init"), sums)))), promoted.scop

    text = "def total(float(N) x) -> (o) { o +=! x(i) }"
    assert "an access bypasses the buffer that holds its element: kept on several threads" in refusal(text, make)
