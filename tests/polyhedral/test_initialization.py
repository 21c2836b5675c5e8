"""What reductions start from: one instance for every element, and a proof that notices every other initialization."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import islpy as isl
import pytest

from tc.base.errors import VerificationError
from tc.base.types import ScalarType
from tc.grammar.syntax import BinaryOperator
from tc.language.isl.session import isl_context
from tc.language.program.program import INDEX_TYPE, Binary, Expression, IteratorReference, Literal
from tc.polyhedral import schedules
from tc.polyhedral.ir.counterexample import Violation
from tc.polyhedral.ir.scop import Scop, ScopStatement, build_scop
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.proof.verify_initialization import find_wrong_initialization
from tc.targets.options import CpuOptions
from tests.polyhedral.support import MACHINE, specialized

PRODUCT = "def product(float(N) A, float(M) B) -> (C) { C(i+j) +=! A(i) * B(j) }"
HALVES = "def pairs(half(N) A) -> (C) { C(i/2) max=! A(i) }"
LOADED = "def turns(half(N) A) -> (C) { C(i%3) += A(i) }"
MATVEC = "def mv(float(M,N) A, float(N) x) -> (y) { y(i) +=! A(i,k) * x(k) }"


@pytest.mark.parametrize(
    ("text", "shapes", "expected"),
    [
        (PRODUCT, ((5,), (3,)), "{ S0_init[d0] : 0 <= d0 <= 6 }"),
        (HALVES, ((7,),), "{ S0_init[d0] : 0 <= d0 <= 3 }"),
        # A single term leaves the subscripts injective: the iterators stay.
        (PRODUCT, ((5,), (1,)), "{ S0_init[i, j] : j = 0 and 0 <= i <= 4 }"),
        (MATVEC, ((5, 4), (4,)), "{ S0_init[i] : 0 <= i <= 4 }"),
        (
            "def holes(float(N,M) A) -> (C) { C(2*i+4*j) +=! A(i,j)  C(2*i+1) = 1 where i in 0:7 }",
            ((4, 3),),
            "{ S0_init[d0] : d0 mod 2 = 0 and 0 <= d0 <= 14 }",
        ),
    ],
)
def test_an_initialization_has_an_instance_for_every_element(
    text: str, shapes: tuple[tuple[int, ...], ...], expected: str
) -> None:
    with isl_context() as context:
        first, *_ = build_scop(specialized(text, shapes), context).statements
        assert first.domain.is_equal(isl.Set.read_from_str(context, expected))


# --- lies ----------------------------------------------------------------------------------------------------


def without(scop: Scop, position: int) -> Scop:
    return replace(scop, statements=(*scop.statements[:position], *scop.statements[position + 1 :]))


def swapped(scop: Scop, first: int, second: int) -> Scop:
    statements = list(scop.statements)
    statements[first], statements[second] = statements[second], statements[first]
    return replace(scop, statements=tuple(statements))


def changed(scop: Scop, position: int, change: Callable[[ScopStatement], ScopStatement]) -> Scop:
    statements = list(scop.statements)
    statements[position] = change(statements[position])
    return replace(scop, statements=tuple(statements))


def within(statement: ScopStatement, text: str) -> ScopStatement:
    """Only the instances of a set: what it touches is left out, too."""
    kept = isl.Set.read_from_str(statement.domain.get_ctx(), text)
    reads, writes = (tuple(r.intersect_domain(kept) for r in rs) for rs in (statement.reads, statement.writes))
    return replace(statement, domain=statement.domain.intersect(kept), reads=reads, writes=writes)


def running(statement: ScopStatement, domain: str, write: str) -> ScopStatement:
    """Other instances that write elsewhere."""
    context = statement.domain.get_ctx()
    return replace(
        statement,
        domain=isl.Set.read_from_str(context, domain),
        writes=(isl.Map.read_from_str(context, write),),
    )


def with_value(statement: ScopStatement, value: float, type: ScalarType = ScalarType.FLOAT32) -> ScopStatement:
    return replace(statement, body=replace(statement.body, value=Literal(value, type)))


def over_pairs(statement: ScopStatement) -> ScopStatement:
    """An instance for every pair of iterators, as if no two of them wrote one element."""
    pairs = "0 <= i < 5 and 0 <= j < 3"
    sum = Binary(BinaryOperator.ADD, IteratorReference("i"), IteratorReference("j"), INDEX_TYPE)
    body = replace(statement.body, iterators=("i", "j"), subscripts=(sum,))
    moved = running(statement, f"{{ S0_init[i, j] : {pairs} }}", f"{{ S0_init[i, j] -> C[i + j] : {pairs} }}")
    return replace(moved, body=body)


def shifted(statement: ScopStatement) -> ScopStatement:
    (subscript,) = statement.body.subscripts
    following: Expression = Binary(BinaryOperator.ADD, subscript, Literal(1, INDEX_TYPE), INDEX_TYPE)
    return replace(statement, body=replace(statement.body, subscripts=(following,)))


LIES: dict[str, tuple[str, tuple[tuple[int, ...], ...], Callable[[Scop], Scop], Violation]] = {
    "nothing is initialized": (PRODUCT, ((5,), (3,)), lambda s: without(s, 0), Violation.CHANGED),
    "nothing is updated": (PRODUCT, ((5,), (3,)), lambda s: without(s, 1), Violation.CHANGED),
    "the initialization comes last": (PRODUCT, ((5,), (3,)), lambda s: swapped(s, 0, 1), Violation.CHANGED),
    "the last element is left out": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, lambda own: within(own, "{ S0_init[e] : e < 6 }")),
        Violation.NOT_INITIALIZED,
    ),
    "every other element is left out": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, lambda own: within(own, "{ S0_init[e] : e mod 2 = 0 }")),
        Violation.NOT_INITIALIZED,
    ),
    "an element too many": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(
            s, 0, lambda own: running(own, "{ S0_init[e] : 0 <= e < 8 }", "{ S0_init[e] -> C[e] : 0 <= e < 8 }")
        ),
        Violation.FOREIGN,
    ),
    "an instance for every pair": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, over_pairs),
        Violation.WRITTEN_TWICE,
    ),
    "the text writes elsewhere than the relation": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, shifted),
        Violation.CHANGED,
    ),
    "it starts from one": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, lambda own: with_value(own, 1.0)),
        Violation.NOT_INITIALIZED,
    ),
    "it starts from zero of another type": (
        PRODUCT,
        ((5,), (3,)),
        lambda s: changed(s, 0, lambda own: with_value(own, 0.0, ScalarType.FLOAT64)),
        Violation.NOT_INITIALIZED,
    ),
    "a maximum starts from zero": (
        HALVES,
        ((7,),),
        lambda s: changed(s, 0, lambda own: with_value(own, 0.0)),
        Violation.NOT_INITIALIZED,
    ),
    "nothing is loaded": (LOADED, ((7,),), lambda s: without(s, 0), Violation.CHANGED),
    "nothing is stored": (LOADED, ((7,),), lambda s: without(s, 2), Violation.CHANGED),
    "it is stored before the update": (LOADED, ((7,),), lambda s: swapped(s, 1, 2), Violation.CHANGED),
    "an element is not loaded": (
        LOADED,
        ((7,),),
        lambda s: changed(s, 0, lambda own: within(own, "{ S0_load[e] : e > 0 }")),
        Violation.NOT_INITIALIZED,
    ),
    "an element is not stored": (
        LOADED,
        ((7,),),
        lambda s: changed(s, 2, lambda own: within(own, "{ S0_round[e] : e < 2 }")),
        Violation.NOT_INITIALIZED,
    ),
    "a sum of halves starts from zero in place of what comes in": (
        LOADED,
        ((7,),),
        lambda s: changed(s, 0, lambda own: replace(with_value(own, 0.0), reads=())),
        Violation.NOT_INITIALIZED,
    ),
    "an instance of the update is left out": (
        MATVEC,
        ((5, 4), (4,)),
        lambda s: changed(s, 1, lambda own: within(own, "{ S0[i, k] : k > 0 }")),
        Violation.CHANGED,
    ),
    "an element of plain subscripts is left out": (
        MATVEC,
        ((5, 4), (4,)),
        lambda s: changed(s, 0, lambda own: within(own, "{ S0_init[i] : i > 0 }")),
        Violation.NOT_INITIALIZED,
    ),
}


@pytest.mark.parametrize("text", [PRODUCT, HALVES, LOADED, MATVEC])
def test_honest_initialization_is_proven(text: str) -> None:
    shapes = {PRODUCT: ((5,), (3,)), HALVES: ((7,),), LOADED: ((7,),), MATVEC: ((5, 4), (4,))}[text]
    with isl_context() as context:
        specialization = specialized(text, shapes)
        assert find_wrong_initialization(specialization, build_scop(specialization, context)) is None


@pytest.mark.parametrize("name", LIES)
def test_a_wrong_initialization_is_noticed(name: str) -> None:
    text, shapes, lie, expected = LIES[name]
    with isl_context() as context:
        specialization = specialized(text, shapes)
        found = find_wrong_initialization(specialization, lie(build_scop(specialization, context)))
    assert found is not None
    assert found.violation is expected


def test_a_witness_is_an_uninitialized_element() -> None:
    text, shapes, lie, _ = LIES["the last element is left out"]
    with isl_context() as context:
        specialization = specialized(text, shapes)
        found = find_wrong_initialization(specialization, lie(build_scop(specialization, context)))
    assert str(found) == "an element is updated that is not set to the neutral element before: C[6]"


def test_no_kernel_is_made_from_a_wrong_initialization(monkeypatch: pytest.MonkeyPatch) -> None:
    text, shapes, lie, _ = LIES["the last element is left out"]
    monkeypatch.setattr(schedules, "build_scop", lambda s, context, wide: lie(build_scop(s, context, wide)))
    with pytest.raises(VerificationError, match=r"the initialization of reductions is not proven correct: .*C\[6\]"):
        map_program(specialized(text, shapes), CpuOptions(), MACHINE)
