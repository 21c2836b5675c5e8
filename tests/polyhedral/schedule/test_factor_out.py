"""Softmax weights that are normalized behind a product: which ones, what they give, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, IteratorReference, Literal, Program, Read, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.hoisted import FactoredOut
from tc.polyhedral.proof.rewrites.verify_factored import find_wrong_factoring
from tc.polyhedral.schedule.factor_out import factor_out_sums
from tc.reference.compare import compare
from tests.polyhedral.gpu.tensor.attention import EARLY, LATE
from tests.polyhedral.support import specialized
from tests.translated import translated

RESCALED = tc.Numerics(rescaled_softmax=True)
DTYPES = {"float": np.float32, "double": np.float64, "half": np.float16, "bfloat16": ml_dtypes.bfloat16}
SHAPES = ((2, 19, 16), (2, 23, 16), (2, 23, 21))
# Softmax without attention, in one statement for each step; ``{0}``: what becomes of the weights.
PLAIN = """def f(float(N,M) x, float(M,K) v, float(M) w) -> ({1}) {{
    h(n) max=! x(n,m)
    s(n) +=! exp(x(n,m) - h(n))
    p(n,m) = exp(x(n,m) - h(n)) / s(n)
    {0} }}"""
VALID = PLAIN.format("o(n,k) +=! p(n,m) * v(m,k) * w(m)", "o")


def rewritten(text: str, *shapes: tuple[int, ...]) -> list[tuple[Specialization, FactoredOut]]:
    return list(factor_out_sums(specialized(text, shapes)))


@pytest.mark.parametrize("target", ["cpu", "emulator"])
@pytest.mark.parametrize("type", DTYPES)
def test_results_are_those_of_the_oracle(type: str, target: str) -> None:
    rng = np.random.default_rng(len(type))
    f = tc.define(EARLY.format(type)).single()
    arrays = [(2 * rng.standard_normal(shape)).astype(DTYPES[type]) for shape in SHAPES]
    options = tc.CpuOptions(numerics=RESCALED) if target == "cpu" else tc.GpuOptions(numerics=RESCALED)
    text = f.explain(*arrays, target=target, options=options)
    assert "== softmax ==\nS5: its sum divides the result of S6, in S6_divided" in text
    assert compare(f.oracle(*arrays)["o"], np.asarray(f(*arrays, target=target, options=options))).ok


def test_rows_of_zeros_infinities_and_numbers_that_are_none_stay_what_they_are() -> None:
    f = tc.define(VALID).single()
    x = np.array([[-np.inf, 0, 1], [-np.inf] * 3, [0, np.nan, 0], [np.inf, 0, 0], [80, -80, 0]], np.float32)
    v, w = np.ones((3, 4), np.float32), np.ones(3, np.float32)
    exact, rescaled = (np.asarray(f(x, v, w, options=tc.CpuOptions(numerics=own))) for own in (tc.Numerics(), RESCALED))
    np.testing.assert_allclose(exact, rescaled, rtol=1e-6)


def test_without_the_option_each_weight_is_divided() -> None:
    f = tc.define(EARLY.format("float")).single()
    assert "S6_divided" not in f.explain(*SHAPES, target="cpu")


def test_matrix_instructions_need_one_pass_over_the_keys_less() -> None:
    shapes = ((1, 128, 64), (1, 192, 64), (1, 192, 64))
    early, late = (tc.define(text.format("half")).single() for text in (EARLY, LATE))
    exact = translated(early, *shapes, target="cuda:sm_90").source.text
    rescaled = translated(early, *shapes, target="cuda:sm_90", options=tc.GpuOptions(numerics=RESCALED)).source.text
    products = [text.count(" tc_multiply_float16(") for text in (exact, rescaled)]
    assert 0 < products[1] < products[0]
    assert products[1] == translated(late, *shapes, target="cuda:sm_90").source.text.count(" tc_multiply_float16(")


@pytest.mark.parametrize(
    "uses",
    [
        pytest.param(("o(n,k) +=! p(n,m) * v(m,k) * w(m)", "o, p"), id="weights that are a result"),
        pytest.param(("o(n,k) +=! p(n,m) * v(m,k)\n q(n) +=! p(n,m) * w(m)", "o, q"), id="weights for two products"),
        pytest.param(("o(n,k) +=! p(n,m) * p(n,m) * v(m,k)", "o"), id="squares of weights"),
        pytest.param(("o(n,k) +=! (p(n,m) + w(m)) * v(m,k)", "o"), id="sums with weights"),
        pytest.param(("o(n,k) max=! p(n,m) * v(m,k)", "o"), id="no sum"),
        pytest.param(("o(n,k) +=! v(m,k) / p(n,m)", "o"), id="division by weights"),
        pytest.param(("o(m) +=! p(n,m) * w(m)", "o"), id="terms with divisors of their own"),
        pytest.param(("o(n) +=! p(n,m) * w(m) where m in 1:3", "o"), id="a part of the weights"),
    ],
)
def test_other_uses_of_weights_are_left_alone(uses: tuple[str, str]) -> None:
    every = rewritten(PLAIN.format(*uses), (5, 6), (6, 7), (6,))
    assert [made.product for _, made in every] == (["S3"] if "where" in uses[0] else [])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("h(n) max=! x(n,m)", "h(n) max=! 0.5 * x(n,m)", id="the greatest of something else"),
        pytest.param("h(n) max=! x(n,m)", "h(n) min=! x(n,m)", id="the least"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "exp(h(n) - x(n,m)) / s(n)", id="numerators above 1"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "x(n,m) / s(n)", id="no exponential"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "exp(x(n,m) - h(n)) * s(n)", id="no quotient"),
        pytest.param("/ s(n)", "/ w(m)", id="divisors that differ"),
    ],
)
def test_other_weights_are_left_alone(old: str, new: str) -> None:
    assert old in VALID
    assert rewritten(VALID, (5, 6), (6, 7), (6,))
    assert not rewritten(VALID.replace(old, new), (5, 6), (6, 7), (6,))


def _with(name: str, change: Callable[[Statement], Statement]) -> Callable[[Program], Program]:
    def changed(program: Program) -> Program:
        assert any(own.name == name for own in program.statements)
        return replace(program, statements=tuple(change(s) if s.name == name else s for s in program.statements))

    return changed


def _multiplied(statement: Statement) -> Statement:
    value = statement.value
    assert isinstance(value, Binary)
    return replace(statement, value=replace(value, operator=BinaryOperator.MULTIPLY))


def _swapped(statement: Statement) -> Statement:
    value = statement.value
    assert isinstance(value, Binary)
    return replace(statement, value=replace(value, left=value.right, right=value.left))


def _at_column(statement: Statement) -> Statement:
    value = statement.value
    assert isinstance(value, Binary)
    assert isinstance(value.right, Read)
    return replace(statement, value=replace(value, right=replace(value.right, subscripts=(IteratorReference("k"),))))


def _last_first(program: Program) -> Program:
    *others, last = program.statements
    return replace(program, statements=(*others[:-1], last, others[-1]))


MUTANTS: dict[str, Callable[[Program], Program]] = {
    "the sum is multiplied": _with("S3_divided", _multiplied),
    "divisor and sum change places": _with("S3_divided", _swapped),
    "another divisor": _with("S3_divided", _at_column),
    "some elements are left out": _with(
        "S3_divided",
        lambda s: replace(
            s, iterators=(replace(s.iterators[0], begin=Literal(1, s.iterators[0].end.type)), *s.iterators[1:])
        ),
    ),
    "divided before it is summed": _last_first,
    "not divided at all": lambda program: replace(program, statements=program.statements[:-1]),
    "the least of the terms": _with("S3", lambda s: replace(s, initialize=False)),
    "other terms": _with("S3", lambda s: replace(s, value=s.value.left) if isinstance(s.value, Binary) else s),
    "weights that are still divided": _with(
        "S2", lambda s: replace(s, value=Binary(BinaryOperator.DIVIDE, s.value, s.value, s.value.type))
    ),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_rewriting_that_computes_something_else_is_refused(name: str) -> None:
    before = specialized(VALID, ((5, 6), (6, 7), (6,)))
    ((after, made),) = factor_out_sums(before)
    assert find_wrong_factoring(before, after, made) is None
    assert find_wrong_factoring(before, replace(after, program=MUTANTS[name](after.program)), made) is not None


def test_numerics_want_to_know_whether() -> None:
    with pytest.raises(tc.OptionsError, match="rescaled_softmax must be True or False, got 1"):
        tc.Numerics(rescaled_softmax=1)  # type: ignore[arg-type]
