"""Storage contraction: temporaries hold the steps that are still needed, and the proof refuses fewer of them."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
import pytest

import tc
from tc.language.isl.session import isl_context
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.proof.rewrites.verify_contraction import find_wrong_contraction
from tc.polyhedral.schedule.contract import contracted, contractions
from tc.reference.compare import compare
from tests.polyhedral.support import specialized
from tests.turns import one_in

STENCIL: Final = "u(t,i) + 0.25 * (u(t,(i+N-1)%N) - 2 * u(t,i) + u(t,(i+1)%N)) where i in 0:N"
HEAT: Final = f"def heat(float(N) x) -> (y) {{ u(0,i) = x(i) for t in 0:9 {{ u(t+1,i) = {STENCIL} }}"
WAVE: Final = """
def wave(float(N) x) -> (y) {
    u(0,i) = x(i)
    u(1,i) = 0.5 * x(i)
    for t in 1:12 { u(t+1,i) = 2 * u(t,i) - u(t-1,i) + 0.25 * (u(t,(i+N-1)%N) - 2 * u(t,i)) where i in 0:N }
    y(i) = u(12,i)
}"""
NETWORK: Final = """
def network(float(T,B,H) x, float(H,H) U) -> (y) {
    h(0,b,i) = 0.0 where b in 0:B, i in 0:H
    for t in 0:T {
        h(t+1,b,i) +=! h(t,b,j) * U(i,j)
        h(t+1,b,i) = tanh(x(t,b,i) + h(t+1,b,i))
    }
    y(b,i) = h(T,b,i)
}"""
SHAPES: Final[dict[str, tuple[tuple[int, ...], ...]]] = {"network": ((7, 3, 5), (5, 5))}
# What is kept, of what would be there without.
CASES: Final[dict[str, tuple[str, tuple[int, int] | None]]] = {
    "the last state": (f"{HEAT} y(i) = u(9,i) }}", (2, 10)),
    "an earlier one": (f"{HEAT} y(i) = u(9,i) + u(7,i) }}", (3, 10)),
    "two steps back": (WAVE, (2, 13)),  # the older one is read by what overwrites it
    "in place": (
        "def f(float(N) x) -> (y) { u(0,i) = x(i) for t in 0:9 { u(t+1,i) = 2 - u(t,i) * t } y(i) = u(9,i) }",
        (1, 10),
    ),
    "sums": (NETWORK, (2, 8)),
    "the first state": (f"{HEAT} y(i) = u(9,i) + u(0,i) }}", None),
    "all of them": (f"{HEAT} y(t,i) = u(t,i) where t in 0:10, i in 0:N }}", None),
    "half of them": (f"{HEAT} y(i) = u(9,i) + u(4,i) }}", None),
    # Steps do not wait for it, so that it leaves the block.
    "no state": (
        "def f(float(N) x) -> (y) { for t in 0:9 { v(t,i) = t * x(i)\n w(t,i) = 2 * v(t,i) } y(i) = w(8,i) }",
        None,
    ),
    "no state, in place": (
        "def f(float(N) x) -> (y) { for t in 0:9 { v(t,i) = t * x(i)\n v(t,i) = 2 * v(t,i) } y(i) = v(8,i) }",
        None,
    ),
}


def program(name: str) -> Specialization:
    text = CASES[name][0]
    return specialized(text, SHAPES["network"] if text is NETWORK else ((6,),))


def is_proven(before: Specialization, own: Contraction) -> bool:
    with isl_context() as context:
        return find_wrong_contraction(before, contracted(before, own), own, context) is None


def proven(before: Specialization) -> list[Contraction]:
    """The first of each that is proven."""
    found = (next((own for own in proposals if is_proven(before, own)), None) for proposals in contractions(before))
    return [own for own in found if own is not None]


@pytest.mark.parametrize("name", CASES)
def test_steps_that_nothing_reads_any_more_are_overwritten(name: str) -> None:
    before = program(name)
    found = proven(before)
    assert [(own.size, own.extent) for own in found] == ([CASES[name][1]] if CASES[name][1] else [])
    for own in found:
        assert str(own) == f"{own.tensor}: {own.size} of {own.extent} steps are kept, in dimension 0"
        assert contracted(before, own).layouts[own.tensor].shape[0] == own.size


@one_in(3)
@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_oracle(name: str, target: str) -> None:
    text, kept = CASES[name]
    rng = np.random.default_rng(0)
    shapes = SHAPES["network"] if text is NETWORK else ((6,),)
    arrays = [(rng.standard_normal(shape) / 4).astype(np.float32) for shape in shapes]
    f = tc.define(text).single()
    assert compare(f.oracle(*arrays)["y"], np.asarray(f(*arrays, target=target))).ok
    assert ("steps are kept" in str(f.explain(*arrays, target=target))) == (kept is not None)


@pytest.mark.parametrize("name", [name for name, (_, kept) in CASES.items() if kept])
def test_fewer_steps_are_refused(name: str) -> None:
    before = program(name)
    (own,) = proven(before)
    for size in range(1, own.size):
        fewer = replace(own, size=size)
        with isl_context() as context:
            found = find_wrong_contraction(before, contracted(before, fewer), fewer, context)
        assert found is not None
        assert found.violation in (Violation.REORDERED, Violation.OVERLAPPING)


def test_what_is_overwritten_too_early_is_named() -> None:
    before = program("the first state")
    own = Contraction("u", 0, 2, 10)
    with isl_context() as context:
        found = find_wrong_contraction(before, contracted(before, own), own, context)
    assert found is not None
    assert str(found).startswith("two conflicting instances run in the wrong order: S1[")
    assert "-> S2[" in str(found)


def test_other_changes_are_refused() -> None:
    before = program("the last state")
    (own,) = proven(before)
    after = contracted(before, own)
    first, *others = after.program.statements
    mutants = {
        "statement": replace(after, program=replace(after.program, statements=(replace(first, name="S9"), *others))),
        "order": replace(after, program=replace(after.program, statements=(*others, first))),
        "tensors": replace(after, program=replace(after.program, tensors=before.program.tensors)),
        "layout": replace(after, layouts=before.layouts),
        "places": replace(after, layouts={**after.layouts, "u": replace(after.layouts["u"], strides=(0, 1))}),
        "others": replace(after, layouts={**after.layouts, "y": after.layouts["u"]}),
        "nothing": before,
    }
    for name, mutant in mutants.items():
        with isl_context() as context:
            found = find_wrong_contraction(before, mutant, own, context)
        assert found is not None, name
        assert found.violation is Violation.CHANGED
    result = Contraction("y", 0, 2, 6)
    with isl_context() as context:
        assert find_wrong_contraction(before, contracted(before, result), result, context) is not None
