"""Tiles at borders are computed as if they were whole, and what comes of that is proven to be seen by nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, TypeVar
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import (
    Guard,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.proof.printed.verify_surplus import find_seen_surplus, prove_surplus
from tc.reference.compare import compare
from tests.polyhedral.mutants import Edit, edits, mutants, nodes
from tests.translated import translated
from tests.turns import every

Answer = TypeVar("Answer")

TEXT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }"
MM = tc.define(TEXT).mm
TMM = tc.define("def tmm(float(M,K) A, float(N,K) B) -> (C) { C(m,n) +=! A(m,k) * B(n,k) }").tmm
LARGEST = tc.define("def largest(float(M,K) A, float(K,N) B) -> (C) { C(m,n) max=! A(m,k) + B(k,n) }").largest
# The last tile of 16 rows is cut to 4, and threads have two rows and two columns of others.
TILE = tc.ScheduleOptions(tile=(16, 16, 8))
OPTIONS = tc.GpuOptions(TILE, block=(8, 8))
RUNS = tc.GpuOptions(TILE, block=(8, 8), distribution=tc.Distribution.BLOCKED, stages=3)
FRAGMENTS = tc.GpuOptions(TILE, block=(8, 8), register_operands=8)


@dataclass
class Looked(Generic[Answer]):
    """What the proof says of loops that are printed in place of those that are proven."""

    ask: Callable[[LoopTree, LoopTree, Scop], Answer]
    said: list[Answer] = field(default_factory=list)

    def __call__(self, proven: LoopTree, printed: LoopTree, scop: Scop) -> None:
        prove_surplus(proven, printed, scop)
        self.said.append(self.ask(proven, printed, scop))


def asked(
    ask: Callable[[LoopTree, LoopTree, Scop], Answer], options: tc.GpuOptions, m: int = 20, n: int = 19
) -> Answer:
    """The answer for the loops of a product."""
    looked = Looked(ask)
    with patch("tc.polyhedral.pipeline.prove_surplus", looked):
        tc.define(TEXT).mm.compile((m, 12), (12, n), target="emulator", options=options)
    (answer,) = looked.said
    return answer


def guards(tree: LoopTree, statement: str) -> int:
    """Those around an instance."""
    return sum(
        isinstance(node, Guard) and any(isinstance(n, Instance) and n.statement == statement for n in nodes(node))
        for node in nodes(tree)
    )


@pytest.mark.parametrize("options", [OPTIONS, RUNS, FRAGMENTS], ids=["cyclic", "runs", "fragments"])
def test_only_the_store_is_guarded(options: tc.GpuOptions) -> None:
    def count(proven: LoopTree, printed: LoopTree, _scop: Scop) -> tuple[list[int], list[int]]:
        names = ("S0_init", "S0_store0")
        return [guards(proven, name) for name in names], [guards(printed, name) for name in names]

    before, after = asked(count, options)
    assert min(before) > 0
    assert after == [options is RUNS, before[1]]  # some threads have no point at all


@pytest.mark.parametrize("operation", [MM, TMM, LARGEST], ids=["mm", "tmm", "largest"])
@pytest.mark.parametrize("options", [OPTIONS, RUNS, FRAGMENTS], ids=["cyclic", "runs", "fragments"])
@pytest.mark.parametrize(("m", "n"), [(20, 19), (7, 33)])
def test_nothing_else_is_stored(operation: tc.Comprehension, options: tc.GpuOptions, m: int, n: int) -> None:
    """The emulator begins with not-a-number in all memory of a block, which every other sum is then."""
    rng = np.random.default_rng(m)
    a, b = rng.standard_normal((m, 21), np.float32), rng.standard_normal((21, n), np.float32)
    b = b.T.copy() if operation is TMM else b
    for _ in range(2):
        found = operation(a, b, target="emulator", options=options)
        assert compare(operation.oracle(a, b)["C"], np.asarray(found)).ok


# Threads without a point set elements to zero that they do not use; and an iteration that a guard excludes.
HARMLESS = {"c0/c1/c2/c3/private0_C/0/guard removed", "c0/c1/c2/c3/private0_C/2/then/c4/c5 ends late"}


@pytest.mark.parametrize("step", every(2, [16, 1]), ids=["some", "all"])
def test_every_mutant_is_refused(step: int) -> None:
    """Of the loops that are printed: none runs the program, and nothing that anybody sees beyond it."""

    def accepted(proven: LoopTree, printed: LoopTree, scop: Scop) -> tuple[int, list[str]]:
        scop.context.set_max_operations(0)  # for so many proofs
        changed = [(name, tree) for name, tree in mutants(printed) if tree != printed]
        some = changed[::step]
        return len(changed), [name for name, tree in some if find_seen_surplus(proven, tree, scop) is None]

    for options in (RUNS, FRAGMENTS):
        count, wrong = asked(accepted, options)
        assert count > 100
        assert set(wrong) <= HARMLESS


def violations(edit: Callable[[LoopTree], list[LoopTree]], options: tc.GpuOptions = OPTIONS) -> set[Violation]:
    """What the proof finds in loops in which both the proven and the printed ones are changed alike, but for guards."""

    def found(proven: LoopTree, printed: LoopTree, scop: Scop) -> set[Violation]:
        changed = [e.mutant for e in edits(proven, lambda node: (Edit(tree, tree) for tree in edit(node)))]
        assert changed
        wrong = [find_seen_surplus(proven, tree, scop) for tree in changed]
        assert None not in wrong
        return {counterexample.violation for counterexample in wrong if counterexample is not None}

    return asked(found, options)


def test_a_result_that_is_stored_beyond_the_border_is_seen() -> None:
    def unguarded(node: LoopTree) -> list[LoopTree]:
        inside = [leaf.statement for leaf in nodes(node) if isinstance(leaf, Instance)]
        return [node.then] if isinstance(node, Guard) and set(inside) == {"S0_store0"} else []

    assert violations(unguarded) == {Violation.SURPLUS}


def test_steps_of_the_reduction_that_are_not_there_are_seen() -> None:
    """The last tile has four steps of eight: more would be added to what is stored."""

    def steps(node: LoopTree, *, guarded: bool) -> Iterator[Edit]:
        match node:
            case Loop(kind=LoopKind.SEQUENTIAL, upper=IndexOperation(IndexOperator.MINIMUM, (IndexLiteral(), _))):
                there = IndexOperation(IndexOperator.LESS_EQUAL, (IndexVariable(node.iterator), node.upper))
                body = Guard(there, node.body, None) if guarded else node.body
                whole = replace(node, upper=IndexLiteral(7), body=body)
                yield Edit(whole, whole)

    def found(_proven: LoopTree, printed: LoopTree, scop: Scop) -> set[Violation]:
        with_guard = (own.mutant for own in edits(printed, partial(steps, guarded=True)))
        without = (own.mutant for own in edits(printed, partial(steps, guarded=False)))
        pairs = list(zip(with_guard, without, strict=True))
        assert pairs
        assert all(find_seen_surplus(tree, tree, scop) is None for tree, _ in pairs)
        seen = [find_seen_surplus(*pair, scop) for pair in pairs]
        assert None not in seen
        return {own.violation for own in seen if own is not None}

    assert asked(found, OPTIONS) == {Violation.SURPLUS}


def test_programs_without_such_tiles_are_printed_as_they_are_proven() -> None:
    def same(proven: LoopTree, printed: LoopTree, _scop: Scop) -> bool:
        return printed is proven

    assert asked(same, OPTIONS, 32, 32)
    # Results in memory have no element for a point that is not there.
    assert asked(same, tc.GpuOptions(TILE, block=(8, 8), register_accumulators=0))


def test_what_is_read_past_shared_memory_keeps_its_guards() -> None:
    def both(proven: LoopTree, printed: LoopTree, _scop: Scop) -> tuple[int, int]:
        return guards(proven, "S0"), guards(printed, "S0")

    before, after = asked(both, tc.GpuOptions(TILE, block=(8, 8), shared_memory=0))
    assert before == after > 0


def test_tiles_of_results_that_are_no_multiple_of_a_warp_have_even_threads() -> None:
    """Sixteen threads have seven of the 112 rows each that a tile of 100 has, and the buffers have places for all."""
    source = translated(TMM, (100, 512), (16384, 512), target="cuda:sm_90").source.text
    assert "__launch_bounds__(256" in source
    before, after = source.split("// S0\n")
    steps = before[before.index("c0 >= 0") :]
    assert re.findall(r"for \(int c\d = 0; c\d < (\d+);", steps)[1:] == ["7", "8"]
    assert "if (" not in steps
    assert "// S0_store0" in after
    rng = np.random.default_rng(5)
    a, b = rng.standard_normal((97, 12), np.float32), rng.standard_normal((8200, 12), np.float32)
    assert compare(TMM.oracle(a, b)["C"], np.asarray(TMM(a, b, target="emulator"))).ok


@pytest.mark.parametrize("sides", [(26, 26), (27, 17)])
def test_threads_have_pairs_of_points_of_small_tiles_of_which_there_are_many(sides: tuple[int, int]) -> None:
    rows, columns = sides
    products = tc.define("def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }").tbmm
    source = translated(products, (600, rows, 9), (600, columns, 9), target="cuda:sm_90").source.text
    assert f"__launch_bounds__({-(-rows // 2) * -(-columns // 2)}, 1)" in source
    steps = source.split("// S0\n")
    assert len(steps) == 2
    assert re.findall(r"for \(int c\d = 0; c\d < (\d+);", steps[0])[-2:] == ["2", "2"]
    assert not re.search(r"if \([^)]*c\d", steps[0][steps[0].rindex("__syncthreads") :])
    rng = np.random.default_rng(6)
    a, b = (rng.standard_normal((270, side, 5), np.float32) for side in sides)
    assert compare(products.oracle(a, b)["Z"], np.asarray(products(a, b, target="emulator"))).ok
