"""Unrolled loops are proven as loops, and their copies by the pattern that they follow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

import tc
from tc.polyhedral.analysis.fold_index import AtValues, at_values
from tc.polyhedral.generate.constant_unroll_bounds import constant_unroll_bounds
from tc.polyhedral.generate.unroll_copies import unroll_copies
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import (
    Block,
    Guard,
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopKind,
    LoopTree,
)
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify_copies import find_false_copy
from tc.reference.compare import compare
from tc.targets.options import CpuOptions, Fusion, ScheduleOptions
from tests.polyhedral.mutants import nodes
from tests.polyhedral.support import MATMUL, machine_for, specialized

A, B = IndexVariable("a"), IndexVariable("b")


def number(value: int) -> IndexLiteral:
    return IndexLiteral(value)


def operation(operator: IndexOperator, *operands: IndexExpression) -> IndexOperation:
    return IndexOperation(operator, operands)


def copied(iterator: str, upper: IndexExpression, body: LoopTree, step: int = 1) -> Loop:
    return Loop(iterator, number(0), upper, step, LoopKind.FULLY_UNROLLED, body)


def nest() -> LoopTree:
    """Two unrolled loops around two statements, of which one has a condition, inside of one that stays a loop."""
    point = operation(IndexOperator.ADD, operation(IndexOperator.MULTIPLY, number(3), A), B)
    guarded = Guard(operation(IndexOperator.LESS_EQUAL, A, B), Instance("T", (A, B)), Instance("U", (B,)))
    inner = copied("b", number(4), Block((Instance("S", (point, IndexVariable("c"))), guarded)), step=2)
    outer = Loop("c", number(0), IndexVariable("n"), 1, LoopKind.SEQUENTIAL, copied("a", number(2), inner))
    return Block((outer, Instance("V", ())))


def instances(tree: LoopTree) -> Iterator[Instance]:
    return (node for node in nodes(tree) if isinstance(node, Instance))


def test_copies_share_what_is_equal_in_them() -> None:
    at, own = AtValues(), operation(IndexOperator.ADD, A, operation(IndexOperator.MULTIPLY, number(4), B))
    assert at(own, {}) is own
    for b in (0, 1, 2):
        here = at(own, {"b": b, "c": 7})
        assert here == at_values(own, {"b": b})
        assert here is at(own, {"b": b, "c": 8})
    assert at(own, {"a": 1, "b": 2}) == number(9)
    assert at(own, {"c": 7}) is own


def test_every_iteration_has_a_copy_and_settled_conditions_are_gone() -> None:
    copies = unroll_copies(nest())
    assert find_false_copy(nest(), copies) is None
    assert [type(node) for node in nodes(copies) if isinstance(node, Loop | Guard)] == [Loop]
    wanted = [("S", 3 * a + b) if first else ("T" if a <= b else "U", None) for a, b, first in _points()]
    found = [(i.statement, getattr(i.arguments[0], "value", None)) for i in list(instances(copies))[:-1]]
    assert [name for name, _ in found] == [name for name, _ in wanted]
    assert [value for name, value in found if name == "S"] == [value for name, value in wanted if name == "S"]


def _points() -> Iterator[tuple[int, int, bool]]:
    return ((a, b, first) for a, b, first in itertools.product(range(3), (0, 2, 4), (True, False)))


def lies() -> Iterator[LoopTree]:
    """Copies of ``nest`` with a mistake in them, anywhere."""
    copies = unroll_copies(nest())
    assert isinstance(copies, Block)
    loop, last = copies.children
    assert isinstance(loop, Loop)
    body = loop.body
    assert isinstance(body, Block)
    for position, child in enumerate(body.children):
        others = body.children[:position], body.children[position + 1 :]
        assert isinstance(child, Instance)
        wrong = replace(child, arguments=(number(77), *child.arguments[1:]))
        yield Block((replace(loop, body=Block((*others[0], wrong, *others[1]))), last))
        yield Block((replace(loop, body=Block((*others[0], *others[1]))), last))
        yield Block((replace(loop, body=Block((*others[0], child, child, *others[1]))), last))
    yield Block((replace(loop, body=Block((*body.children[1:], body.children[0]))), last))
    yield Block((replace(loop, upper=number(9)), last))
    yield Block((replace(loop, kind=LoopKind.PARALLEL), last))
    yield Block((replace(loop, body=Guard(IndexVariable("n"), body, None)), last))
    yield Block((loop,))


def test_copies_that_are_not_the_loops_are_refused() -> None:
    found = [find_false_copy(nest(), lie) for lie in lies()]
    assert len(found) > 50
    assert all(isinstance(one, Counterexample) and one.violation is Violation.MISCOPIED for one in found)
    assert str(found[-1]).startswith("an unrolled loop has another body at one of its iterations: nothing instead of")


def test_no_wrong_copy_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    def without_last(root: LoopTree) -> LoopTree:
        copies = unroll_copies(root)
        return Block(copies.children[:-1]) if isinstance(copies, Block) else Block(())

    monkeypatch.setattr("tc.polyhedral.pipeline.unroll_copies", without_last)
    options = CpuOptions(ScheduleOptions(tile=(), unroll=16), vectorize=False)
    with pytest.raises(tc.VerificationError, match="the unrolled loops are not proven correct: an unrolled loop has"):
        map_program(specialized(MATMUL, ((4, 3), (3, 5))), options, machine_for(options))


def test_loops_with_bounds_that_vary_have_guards() -> None:
    left = operation(IndexOperator.SUBTRACT, number(9), A)
    upper = operation(IndexOperator.MINIMUM, number(3), left)
    around = Loop("a", number(0), number(9), 1, LoopKind.SEQUENTIAL, copied("b", upper, Instance("S", (A, B))))
    fixed = constant_unroll_bounds(around, {}, 16)
    assert isinstance(fixed, Loop)
    wanted = Guard(operation(IndexOperator.LESS_EQUAL, B, left), Instance("S", (A, B)), None)
    assert fixed.body == copied("b", number(3), wanted)
    assert len(list(instances(unroll_copies(fixed)))) == 4
    # The trip count is unknown, or greater than was asked for.
    unknown = copied("b", IndexVariable("n"), Instance("S", (B,)))
    for loop in (unknown, copied("b", number(16), Instance("S", (B,)))):
        assert constant_unroll_bounds(loop, {}, 16) == replace(loop, kind=LoopKind.SEQUENTIAL)


VALUES = range(-3, 4)


@pytest.mark.parametrize("operator", list(IndexOperator))
def test_what_is_folded_has_the_value_that_it_had(operator: IndexOperator) -> None:
    """With one operand known, and then the others."""
    count = {IndexOperator.NEGATE: 1, IndexOperator.SELECT: 3}.get(operator, 2)
    names = ("a", "b", "c")[:count]
    divides = "/" in operator.value or "%" in operator.value
    logic = operator in (IndexOperator.AND, IndexOperator.OR)
    expression = operation(operator, *(IndexVariable(name) for name in names))
    for numbers in itertools.product(VALUES, repeat=count):
        if (divides and numbers[1] < 1) or (logic and not set(numbers) <= {0, 1}):
            continue
        values = dict(zip(names, numbers, strict=True))
        whole = at_values(expression, values)
        assert isinstance(whole, IndexLiteral)
        for name in names:
            some = at_values(expression, {name: values[name]})
            assert at_values(some, values) == whole


MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
SLOW = CpuOptions(
    ScheduleOptions(fusion=Fusion.MINIMAL, unroll=64), packed_operands=1024, vectorize=False, block_prefetch=1 << 20
)


def test_copies_cost_the_proof_nothing() -> None:
    """isl's budget of 200,000,000 operations did not suffice for 64 copies."""
    program = specialized(MATMUL, ((128, 256), (256, 192)))
    found = map_program(program, SLOW, machine_for(SLOW), max_operations=2_000_000)
    assert len(list(instances(found.loops.root))) > 64
    many = replace(SLOW, schedule=replace(SLOW.schedule, unroll=4096))
    more = map_program(program, many, machine_for(many), max_operations=2_000_000)
    assert len(list(instances(more.loops.root))) > 1000
    assert more.proof.leaves == found.proof.leaves < 30


def test_more_copies_than_anybody_waits_for_are_refused() -> None:
    """Each of the two loops holds fewer than 4,096 statements; both together do not."""
    program = specialized("def two(float(M,N) A) -> (B, C) { B(m,n) = A(m,n)  C(n,m) = A(m,n) }", ((48, 64),))
    options = CpuOptions(ScheduleOptions(fusion=Fusion.MINIMAL, tile=(), unroll=3072), vectorize=False, threads=1)
    with pytest.raises(tc.OptionsError) as caught:
        map_program(program, options, machine_for(options))
    assert str(caught.value) == (
        "unroll=3072 writes out 6144 statements, conditions and loops for two, more than 4096, the most that a kernel "
        "may hold; make it smaller"
    )


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cpu", tc.CpuOptions(tc.ScheduleOptions(tile=(5, 7, 6), unroll=64), register_tile=())),
        ("cpu", tc.CpuOptions(tc.ScheduleOptions(unroll=256), register_tile=(3, 2), vectorize=False)),
        (
            "emulator",
            tc.GpuOptions(tc.ScheduleOptions(tile=(8, 12, 5), unroll=128), block=(6, 4), register_operands=16),
        ),
    ],
    ids=["points", "registers", "threads"],
)
def test_ragged_sizes_are_right(target: str, options: tc.CpuOptions | tc.GpuOptions) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((13, 17), np.float32), rng.standard_normal((17, 11), np.float32)
    found = MM(a, b, target=target, options=options)
    assert compare(MM.oracle(a, b)["C"], np.asarray(found)).ok
