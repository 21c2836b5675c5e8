"""Operands in registers: each is read once for all points of a thread that use it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from unittest.mock import patch

import islpy as isl
import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.pieces import basic_sets_of
from tc.language.program.program import INDEX_TYPE, Binary, Literal, Read
from tc.polyhedral.gpu.promotion.promote_operands import promote_operands
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import ScheduleTree
from tc.reference.compare import compare
from tests.mutants.judge import Given, is_right
from tests.translated import translated
from tests.turns import every, one_in

TMM = "def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }"
TILES = tc.GpuOptions(tc.ScheduleOptions(tile=(16, 16, 8)), block=(4, 8), register_operands=64, stages=2)


def source(options: tc.GpuOptions, text: str = TMM, *shapes: tuple[int, ...]) -> str:
    shapes = shapes or ((64, 32), (48, 32))
    return translated(tc.define(text).single(), *shapes, target="cuda:sm_90", options=options).source.text


def reads_of_fragments(text: str) -> list[str]:
    return re.findall(r"t_fragment\d_\w+\[[^]]*\] = (\w+)\[", text)


def test_a_thread_reads_each_element_once_and_from_shared_memory() -> None:
    text = source(TILES)
    assert reads_of_fragments(text) == ["t_shared1_A", "t_shared2_B"]
    assert re.search(r"t_private0_C\[\w+ \* \w+ \+ \w+\] \+= t_fragment3_A\[\w+\] \* t_fragment4_B\[\w+\];", text)


def test_without_shared_memory_it_reads_the_tensors() -> None:
    assert reads_of_fragments(source(replace(TILES, shared_memory=0))) == ["t_A", "t_B"]


@one_in(3)
@pytest.mark.parametrize("room", [0, 1, 2, 4, 6, 64])
def test_fragments_are_no_larger_than_the_options_say(room: int) -> None:
    text = source(replace(TILES, register_operands=room))
    # Rows of 4 elements of A, of 2 elements of B.
    assert len(reads_of_fragments(text)) == (room >= 2) + (room >= 6)


def test_what_is_read_for_one_point_stays_where_it_is() -> None:
    assert not reads_of_fragments(source(replace(TILES, block=(16, 16))))
    sums = "def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }"
    assert not reads_of_fragments(source(replace(TILES, block=(8,)), sums, (64, 64)))


def test_what_is_read_through_an_index_stays_where_it_is_but_not_the_index() -> None:
    gathered = "def g(float(N,K) A, int32(M) I, float(P,K) B) -> (C) { C(m,p) +=! A(I(m),k) * B(p,k) where k in 0:K }"
    assert reads_of_fragments(source(replace(TILES, shared_memory=0), gathered, (100, 32), (64,), (48, 32))) == [
        "t_I",
        "t_B",
    ]


def test_what_is_read_on_a_condition_stays_where_it_is() -> None:
    text = "def f(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! B(n,k) * (k < 20 ? A(m,k) : 2.0) }"
    assert reads_of_fragments(source(replace(TILES, shared_memory=0), text)) == ["t_B"]


def next_place(statement: ScopStatement) -> ScopStatement:
    """A copy that reads the next place of the copy in shared memory."""
    value = statement.body.value
    assert isinstance(value, Read)
    *others, last = value.subscripts
    subscripts = (*others, Binary(BinaryOperator.ADD, last, Literal(1, INDEX_TYPE), INDEX_TYPE))
    return replace(statement, body=replace(statement.body, value=replace(value, subscripts=subscripts)))


def other_place(statement: ScopStatement) -> ScopStatement:
    """A copy that is said to read the next place."""
    source, own = statement.promoted
    dimensions = [f"d{n}" for n in range(source.location.dim(isl.dim_type.out))]
    text = f"{{ [{', '.join(dimensions)}] -> [{', '.join([*dimensions[:-1], f'{dimensions[-1]} + 1'])}] }}"
    name = source.location.get_tuple_name(isl.dim_type.out)
    shift = isl.Map.read_from_str(statement.domain.get_ctx(), text)
    shift = shift.set_tuple_name(isl.dim_type.in_, name).set_tuple_name(isl.dim_type.out, name)
    return replace(statement, promoted=(replace(source, location=source.location.apply_range(shift)), own))


def other_element(statement: ScopStatement) -> ScopStatement:
    """A copy whose two ends are said to stand for different elements."""
    source, own = statement.promoted
    shifted = isl.Map.read_from_str(statement.domain.get_ctx(), "{ A[m, k] -> A[m, k + 1] }")
    return replace(statement, promoted=(replace(source, element=source.element.apply_range(shifted)), own))


@pytest.mark.parametrize("mistake", [next_place, other_place, other_element])
def test_a_copy_of_another_element_is_refused(mistake: Callable[[ScopStatement], ScopStatement]) -> None:
    def promote(tree: ScheduleTree, scop: Scop, most: int) -> tuple[ScheduleTree, Scop]:
        tree, scop = promote_operands(tree, scop, most)
        statements = (mistake(s) if s.name == "S0_read3" else s for s in scop.statements)
        return tree, replace(scop, statements=tuple(statements))

    with patch("tc.polyhedral.grid_passes.promote_operands", promote), pytest.raises(tc.VerificationError):
        source(TILES)


@one_in(3)
@pytest.mark.parametrize("shared", [0, 48 << 10])
@pytest.mark.parametrize("stages", every(2, [1, 2, 3]))
def test_results_are_right_at_ragged_sizes(shared: int, stages: int) -> None:
    tmm = tc.define(TMM).tmm
    rng = np.random.default_rng(3)
    a, b = rng.standard_normal((37, 19), np.float32), rng.standard_normal((21, 19), np.float32)
    options = replace(TILES, shared_memory=shared, stages=stages)
    assert is_right(tmm, tmm.compile(a, b, target="emulator", options=options), Given({"A": a, "B": b}))


def test_triangles_have_ends_that_are_no_plain_quotients() -> None:
    trmm = tc.define("def trmm(float(N,N) L, float(N,M) B) -> (C) { C(i,j) +=! L(i,k) * B(k,j) where k in 0:i+1 }").trmm
    rng = np.random.default_rng(3)
    inputs = {"L": rng.standard_normal((13, 13), np.float32), "B": rng.standard_normal((13, 7), np.float32)}
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(2, 4), register_operands=64, stages=2)
    assert is_right(trmm, trmm.compile(*inputs.values(), target="emulator", options=options), Given(inputs))


def test_operands_without_dimensions_are_kept_too() -> None:
    text = "def f(float(N,N) X, float32() A) -> (Y) { Y(j,i) +=! A * X(i,k) where j in 0:N }"
    options = tc.GpuOptions(
        tc.ScheduleOptions(fusion=tc.Fusion.MAXIMAL, tile=(8, 4, 8), unroll=4),
        block=(4, 2),
        shuffles=False,
        register_operands=4,
    )
    x, a = np.random.default_rng(0).standard_normal((9, 9), np.float32), np.full((), 1.5, np.float32)
    f = tc.define(text).f
    assert "fragment3_A" in f.compile(x, a, target="emulator", options=options).source
    assert compare(f.oracle(x, a)["Y"], np.asarray(f(x, a, target="emulator", options=options))).ok


def test_copies_say_once_which_of_them_there_are() -> None:
    """A domain that says "exists" was repeated for every loop around, of which isl took seconds to make something."""
    most: list[int] = []

    def watched(tree: ScheduleTree, scop: Scop, room: int) -> tuple[ScheduleTree, Scop]:
        tree, scop = promote_operands(tree, scop, room)
        for statement in (own for own in scop.statements if "_read" in own.name):
            known = max(piece.dim(isl.dim_type.div) for piece in basic_sets_of(statement.domain))
            for access in statement.promoted:
                places = basic_sets_of(access.place.wrap())
                most.append(max(piece.dim(isl.dim_type.div) for piece in places) - known)
        return tree, scop

    tiles = tc.GpuOptions(tc.ScheduleOptions(tile=(9, 18, 4)), block=(16, 3), register_operands=16, stages=2)
    with patch("tc.polyhedral.grid_passes.promote_operands", watched):
        source(tiles, TMM, (100, 32), (26, 32))
    # One more: which slot it is.
    assert most
    assert max(most) <= 1
