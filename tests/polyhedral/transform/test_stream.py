"""Large results are collected in buffers, piece by piece, from which they are written past the caches."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

import tc
from tc.language.isl.session import isl_context
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.ir.loops import Buffer, Instance, leaves
from tc.polyhedral.ir.scop import build_scop
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify import find_counterexample
from tc.polyhedral.transform.stream import PIECE_BYTES, collected_results, streamed_results
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.interpreter import results
from tests.polyhedral.mutants import mutants
from tests.polyhedral.support import MACHINE, candidate, specialized
from tests.translated import translated
from tests.turns import every

COPY = "def copy(float({0}) X) -> (O) {{ O({1}) = 2 * X({1}) }}"
CENTERED = "def center(float(N,M) X) -> (O) { S(i) +=! X(i,j) O(i,j) = X(i,j) - S(i) }"
ROOM = PIECE_BYTES // 4


def copy(*shape: int) -> tuple[str, tuple[tuple[int, ...], ...]]:
    """A definition that doubles an array, and its shape."""
    names = [f"N{n}" for n in range(len(shape))]
    return COPY.format(", ".join(names), ", ".join(name.lower() for name in names)), (shape,)


def pieces(program: tuple[str, tuple[tuple[int, ...], ...]], options: CpuOptions) -> tuple[Buffer, ...]:
    """The buffers in which results are collected; every pass is proven."""
    mapped = map_program(specialized(*program), options, MACHINE, verify_every_pass=True)
    return tuple(b for b in mapped.loops.promoted if b.name.startswith("piece"))


STREAMED = CpuOptions(nontemporal_stores=1)


@pytest.mark.parametrize(
    ("shape", "piece"),
    [
        ((100,), (100,)),
        ((4, 64), (4, 64)),
        ((3, 125), (2, 125)),  # rows lie end to end
        ((7, 256), (1, 256)),
        ((7, 512), (1, 256)),  # a divisor of the row
        ((7, 509), (1, 255)),  # a prime: two parts
        ((7, 976), (1, 256)),  # divisors that fill lines would be too short
        ((9, 64, 7, 7), (1, 4, 7, 7)),
        ((6, 48, 16), (1, 16, 16)),
        ((3000, 3), (75, 3)),
    ],
)
def test_loops_are_cut_so_that_a_piece_fits_the_buffer(shape: tuple[int, ...], piece: tuple[int, ...]) -> None:
    (found,) = pieces(copy(*shape), replace(STREAMED, schedule=ScheduleOptions(tile=())))
    assert found.layout.shape == piece
    assert math.prod(piece) <= ROOM


def test_sums_in_register_tiles_are_stored_from_there() -> None:
    """A bias that is added in place makes no array of a tile."""
    text = "def f(float(M,K) A, float(K,N) B, float(N) b) -> (C) { C(m,n) +=! A(m,k) * B(k,n) C(m,n) = C(m,n) + b(n) }"
    kernel = translated(tc.define(text).f, (16, 96), (96, 256), (256,), target="cpu:x86-64-v3", options=STREAMED)
    assert "tc_stream(" not in kernel.source.text
    assert "tc_float32x8 t_tile0_C_0_0" in kernel.source.text


@pytest.mark.parametrize("shape", [(63,), (400, 3, 2), (50, 63)])
def test_short_runs_are_collected_only_where_they_lie_end_to_end(shape: tuple[int, ...]) -> None:
    found = pieces(copy(*shape), STREAMED)
    assert bool(found) == (math.prod(shape) >= 64)


def test_only_results_that_nothing_reads_are_streamed_and_only_from_their_size_on() -> None:
    texts = {
        "def f(float(N) X) -> (O) { O(i) = X(i) }": {"O"},
        "def f(float(N) X) -> (O, P) { O(i) = X(i) P(i) = O(i) + 1 }": {"P"},
        "def f(float(N) X) -> (O) { O(i) = X(i) O(i) = O(i) + 1 }": set(),
        "def f(float(N) X) -> (O) { O(i) +=! X(j) where i in 0:N, j in 0:i+1 }": set(),
        "def f(float(N) X) -> (O) { T(i) = 2 * X(i) O(i) = T(i) + 1 }": {"O"},
    }
    for text, expected in texts.items():
        with isl_context() as context:
            scop = build_scop(specialized(text, ((256,),)), context)
            assert streamed_results(scop, 1024) == expected
            assert streamed_results(scop, 1025) == frozenset()
            assert streamed_results(scop, 0) == frozenset()


def test_results_that_change_in_place_are_collected_from_their_size_on() -> None:
    texts = {
        "def f(float(N) X) -> (O) { O(i) = X(i) O(i) = O(i) + 1 O(i) = O(i) * O(i) }": {"O"},
        "def f(float(N) X) -> (O, P) { O(i) = X(i) P(i) = O(i) + 1 }": {"P"},
        "def f(float(N) X) -> (O) { O(i) = O(i) + X(i) }": set(),
        "def f(float(N) X) -> (O) { O(i) = X(i) O(i) += X(i) }": set(),
    }
    for text, expected in texts.items():
        with isl_context() as context:
            scop = build_scop(specialized(text, ((256,),)), context)
            assert collected_results(scop, 1024) == expected
            assert collected_results(scop, 1025) == frozenset()
            assert collected_results(scop, 0) == frozenset()


def nontemporal(text: str, *shapes: tuple[int, ...], fusion: Fusion = Fusion.PRESERVE_PARALLEL) -> set[str]:
    """The results of a program that are written past the caches."""
    options = replace(STREAMED, schedule=ScheduleOptions(fusion=fusion))
    loops = map_program(specialized(text, shapes), options, MACHINE, verify_every_pass=True).loops
    stored = {leaf.statement for leaf in leaves(loops.root) if isinstance(leaf, Instance) and leaf.nontemporal}
    return {body.target for body in loops.bodies if body.name in stored}


def test_a_chain_of_statements_in_one_nest_goes_past_the_caches_once() -> None:
    chain = "def f(float(N,M) X) -> (O) { O(i,j) = X(i,j) + 3 O(i,j) = fmax(O(i,j), 0) O(i,j) = O(i,j) * O(i,j) }"
    assert nontemporal(chain, (5, 512)) == {"O"}
    ((*_, piece),) = (found.layout.shape for found in pieces((chain, ((5, 512),)), STREAMED))
    assert piece == ROOM
    # What the second nest changes must not have left the caches.
    assert nontemporal(chain, (5, 512), fusion=Fusion.MINIMAL) == set()


def test_a_machine_without_such_stores_collects_nothing() -> None:
    specialization = specialized(*copy(100, 100))
    for machine in (MACHINE, replace(MACHINE, streams=False)):
        loops = map_program(specialization, STREAMED, machine).loops
        stored = {leaf.statement for leaf in leaves(loops.root) if isinstance(leaf, Instance) and leaf.nontemporal}
        assert {body.target for body in loops.bodies if body.name in stored} == ({"O"} if machine.streams else set())
        assert bool(loops.promoted) == machine.streams


def test_tiles_of_a_transposition_have_short_runs() -> None:
    turn = "def turn(float(N,M) X) -> (O) { O(i,j) = X(j,i) }", ((300, 300),)
    assert [bool(pieces(turn, replace(STREAMED, schedule=ScheduleOptions(tile=(8, n))))) for n in (63, 64)] == [0, 1]


def test_two_results_of_one_loop_have_a_buffer_each() -> None:
    text = "def f(float(N,M) X) -> (O, P) { O(i,j) = X(i,j) P(i,j) = 2 * X(i,j) }"
    found = pieces((text, ((33, 129),)), STREAMED)
    assert [buffer.name.partition("_")[2] for buffer in found] == ["O", "P"]


def test_results_of_register_tiles_are_not_collected() -> None:
    text = "def f(float(M,K) A, float(K,N) B) -> (O) { T(m,n) +=! A(m,k) * B(k,n) O(m,n) = fmax(T(m,n), 0) }"
    assert not pieces((text, ((64, 32), (32, 256))), STREAMED)


@pytest.mark.parametrize("program", every(2, [copy(3, 25, 3), copy(2, 275), (CENTERED, ((3, 65),))]))
def test_loops_that_compute_something_else_are_refused(program: tuple[str, tuple[tuple[int, ...], ...]]) -> None:
    with isl_context() as context:
        found = candidate(specialized(*program), STREAMED, MACHINE, context)
        assert any("_store" in s.name for s in found.scop.statements)
        assert find_counterexample(found.scop, tree_execution(found.tree, context)) is None
        assert find_counterexample(found.scop, found.execution(found.loops)) is None
        expected, wrong = results(found.scop, found.loops), 0
        changed = list(mutants(found.loops))
        for change, mutant in random.Random(1).sample(changed, min(30, len(changed))):
            if results(found.scop, mutant) != expected:
                assert find_counterexample(found.scop, found.execution(mutant)) is not None, change
                wrong += 1
        assert wrong > 10
