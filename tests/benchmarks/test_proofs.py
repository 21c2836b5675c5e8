"""Every kernel of the suite, at the sizes at which it is measured, is proven; and every spoiled one is refused."""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from benchmarks.problems.cases import CASES, case_called
from tc.base.errors import VerificationError
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.execution.tree_execution import tree_execution
from tc.polyhedral.generate.constant_unroll_bounds import constant_unroll_bounds
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.loops import Block, Loop, LoopKind, LoopTree, Scheduled
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify import find_counterexample, prove
from tc.polyhedral.proof.verify_copies import find_false_copy
from tc.targets.machine import CpuMachine, VectorUnit
from tc.targets.options import CpuOptions, ScheduleOptions
from tests.polyhedral.enumeration import run
from tests.polyhedral.lies import State, beyond_last, local_dimensions, without_copy, without_last
from tests.polyhedral.mutants import Edit, again, edits, ends_early, ends_late, mentions, nodes
from tests.polyhedral.support import Candidate, candidate
from tests.turns import every, one_in

AVX512 = CpuMachine(VectorUnit(bytes=64, registers=32), cores=2, streams=True)
NEON = CpuMachine(VectorUnit(bytes=16, registers=32), cores=2)

NAMES = tuple(case.name for case in CASES)
MATRICES = frozenset({"tmm-128-32-256", "tmm-1024-1024-1024", "c3", "kronecker"})


@functools.cache
def specialized(name: str) -> Specialization:
    case = case_called(name)
    return case.problem.comprehension.specialize(*case.problem.shapes(case.sizes).values())


@functools.cache
def mapped(name: str, tile: tuple[int, ...] | None = None) -> Candidate:
    """What is proven of a case; its isl objects are touched within their context only."""
    options = CpuOptions(schedule=ScheduleOptions(tile=tile))
    with isl_context() as context:
        return candidate(specialized(name), options, AVX512, context)


def spoilable(step: int) -> Iterator[tuple[str, Candidate]]:
    """Every so many cases and some matrices with the default options, these with their reduction cut, too, so that
    results are loaded again.
    """
    names = dict.fromkeys((*NAMES[::step], *sorted(MATRICES)[:: min(step, 2)]))
    for name in names:
        yield name, mapped(name)
    for name in sorted(MATRICES.intersection(names)):
        yield name, mapped(name, (64, 64, 64))


@one_in(2)
@pytest.mark.parametrize("machine", every(2, [AVX512, NEON]), ids=["64 bytes", "16 bytes"])
@pytest.mark.parametrize("name", NAMES)
def test_the_kernel_of_every_case_is_proven(name: str, machine: CpuMachine) -> None:
    found = map_program(specialized(name), CpuOptions(), machine)
    places = [node for node in nodes(found.loops.root) if isinstance(node, Scheduled)]
    assert found.proof.statements == len(found.loops.bodies)
    assert found.proof.leaves == len(places) >= found.proof.statements
    assert found.proof.conflicts > 0
    assert found.proof.accesses > found.proof.statements
    if machine is AVX512:
        fixed = constant_unroll_bounds(mapped(name).loops, {}, CpuOptions().schedule.unroll)
        false = find_false_copy(fixed, found.loops.root)
        assert false is None, "the loops that are spoiled below are not those of the kernel"


# --- loops that differ from what was meant --------------------------------------------------------------------

Rewrite = Callable[[Candidate, LoopTree], Iterator[Edit]]


def packs_less(found: Candidate, node: LoopTree) -> Iterator[Edit]:
    if isinstance(node, Loop) and below(node) <= packs(found.scop):
        yield ends_early(node)


def stores_less(found: Candidate, node: LoopTree) -> Iterator[Edit]:
    if isinstance(node, Loop) and below(node) <= stores(found.scop):
        yield ends_early(node)


def stores_pad_lane(found: Candidate, node: LoopTree) -> Iterator[Edit]:
    results = {buffer.name for buffer in found.scop.buffers}
    storing = {s.name for s in found.scop.statements if s.body.target in results}
    if isinstance(node, Loop) and node.kind is LoopKind.VECTOR and below(node) <= storing:
        yield ends_late(node)


def chunks_overlap(found: Candidate, node: LoopTree) -> Iterator[Edit]:
    if isinstance(node, Loop) and node.kind is LoopKind.PARALLEL:
        yield again(node)
        # One more chunk is empty where the loops inside end with the range.
        yield from (late for late in (ends_late(node),) if next(run(late.difference, {}, ()), None) is not None)
    if isinstance(node, Loop) and any(mentions(node, parallel) for parallel in parallel_iterators(found.loops)):
        yield ends_late(node)


def forgets_load(found: Candidate, node: LoopTree) -> Iterator[Edit]:
    if isinstance(node, Scheduled) and node.statement in loads(found.scop):
        yield Edit(Block(()), node)


@dataclass(frozen=True)
class Spoiler:
    """``violations``: how the proof may fail.  ``cases``: some that have what is spoiled, in ``places`` or more."""

    rewrite: Rewrite
    violations: frozenset[Violation]
    cases: frozenset[str]
    places: int = 1


SPOILERS = (
    # Along the rows and along the lanes.
    Spoiler(packs_less, frozenset({Violation.MISSING}), MATRICES, places=2),
    Spoiler(stores_less, frozenset({Violation.MISSING}), MATRICES, places=2),
    Spoiler(
        stores_pad_lane,
        frozenset({Violation.FOREIGN, Violation.REPEATED}),
        MATRICES | {"tbmm", "gconv-16", "lut1", "softmax"},
    ),
    Spoiler(chunks_overlap, frozenset({Violation.FOREIGN, Violation.REPEATED}), frozenset(NAMES)),
    Spoiler(forgets_load, frozenset({Violation.MISSING}), MATRICES),
)


@pytest.mark.parametrize("step", every(2, [4, 1]))
@pytest.mark.parametrize("spoiler", SPOILERS, ids=lambda spoiler: spoiler.rewrite.__name__)
def test_spoiled_loops_are_refused(spoiler: Spoiler, step: int) -> None:
    cases = list(spoilable(step))
    spoiled: Counter[str] = Counter()
    for name, found in cases:
        with isl_context(context=found.scop.context):
            for edit in edits(found.loops, functools.partial(spoiler.rewrite, found)):
                assert next(run(edit.difference, {}, ()), None) is not None, f"{name}: the mutant is the same"
                with pytest.raises(VerificationError) as refused:
                    prove(found.scop, found.execution(edit.mutant), "mutant")
                assert any(violation.value in str(refused.value) for violation in spoiler.violations), name
                spoiled[name] += 1
    expected = spoiler.cases & {name for name, _ in cases}
    assert expected
    assert all(spoiled[name] >= spoiler.places for name in expected), spoiled


def below(tree: LoopTree) -> set[str]:
    return {node.statement for node in nodes(tree) if isinstance(node, Scheduled)}


def parallel_iterators(tree: LoopTree) -> set[str]:
    return {node.iterator for node in nodes(tree) if isinstance(node, Loop) and node.kind is LoopKind.PARALLEL}


def packs(scop: Scop) -> set[str]:
    return {p.loads for p in scop.promotions if p.loads is not None and p.stores is None}


def loads(scop: Scop) -> set[str]:
    return {p.loads for p in scop.promotions if p.loads is not None and p.stores is not None}


def stores(scop: Scop) -> set[str]:
    return {p.stores for p in scop.promotions if p.stores is not None}


# --- passes that mean something else --------------------------------------------------------------------------

Lie = Callable[[State], Iterator[tuple[str, State]]]


def pack_one_short(state: State) -> Iterator[tuple[str, State]]:
    for name in sorted(packs(state[0])):
        for dimension in local_dimensions(state[0].statement(name)):
            yield f"{name}, {dimension}", without_last(state, name, dimension)


def store_one_short(state: State) -> Iterator[tuple[str, State]]:
    for name in sorted(stores(state[0])):
        for dimension in local_dimensions(state[0].statement(name)):
            yield f"{name}, {dimension}", without_last(state, name, dimension)


def store_one_more(state: State) -> Iterator[tuple[str, State]]:
    for name in sorted(stores(state[0])):
        for dimension in local_dimensions(state[0].statement(name)):
            yield f"{name}, {dimension}", beyond_last(state, name, dimension)


def no_copy(state: State) -> Iterator[tuple[str, State]]:
    for name in sorted(packs(state[0]) | loads(state[0]) | stores(state[0])):
        yield name, without_copy(state, name)


@dataclass(frozen=True)
class Liar:
    """A pass whose statements and tree agree, on something wrong."""

    lie: Lie
    violations: frozenset[Violation]
    cases: frozenset[str]


LIARS = (
    Liar(pack_one_short, frozenset({Violation.NOT_LOADED}), MATRICES),
    Liar(store_one_short, frozenset({Violation.NOT_STORED}), MATRICES | {"lut1"}),
    Liar(store_one_more, frozenset({Violation.OUT_OF_BOUNDS, Violation.STORED_UNWRITTEN}), MATRICES | {"lut1"}),
    Liar(no_copy, frozenset({Violation.NOT_LOADED, Violation.NOT_STORED}), MATRICES | {"tmm-128-4096-16384"}),
)


@pytest.mark.parametrize("step", every(2, [4, 1]))
@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.lie.__name__)
def test_passes_that_lie_about_copies_are_refused(liar: Liar, step: int) -> None:
    refused: set[str] = set()
    cases = list(spoilable(step))
    for name, found in cases:
        with isl_context(context=found.scop.context) as context:
            for what, (scop, tree) in liar.lie((found.scop, found.tree)):
                failure = find_counterexample(scop, tree_execution(tree, context))
                assert failure is not None, f"{name} is accepted: {what}"
                assert failure.violation in liar.violations, f"{name}, {what}: {failure}"
                refused.add(name)
    expected = liar.cases & {name for name, _ in cases}
    assert expected
    assert expected <= refused
