"""Softmax weights that are normalized behind a product: which ones, what they give, and what the proof refuses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

import tc
from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import Binary, IteratorReference, Literal, Program, Read, Statement, reads_in
from tc.language.program.specialization import Specialization
from tc.polyhedral.ir.hoisted import FactoredOut
from tc.polyhedral.proof.rewrites.verify_factored import find_wrong_factoring
from tc.polyhedral.schedule import factor_out
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
        pytest.param(("o(n) +=! p(n,m) * w(m) where m in 0:n", "o"), id="rows without terms"),
        pytest.param(("o(n+k) +=! p(n,m) * v(m,k)", "o"), id="elements with terms of several rows"),
        pytest.param(("o(n/2,k) +=! p(n,m) * v(m,k)", "o"), id="two rows for one element"),
        pytest.param(("o(k) +=! p(m,m) * v(m,k) where m in 0:N", "o"), id="the diagonal"),
    ],
)
def test_other_uses_of_weights_are_left_alone(uses: tuple[str, str]) -> None:
    assert not rewritten(PLAIN.format(*uses), (5, 6), (6, 7), (6,))


def test_sums_of_nothing_are_not_divided() -> None:
    assert rewritten(VALID, (5, 1), (1, 7), (1,))
    assert not rewritten(VALID, (5, 0), (0, 7), (0,))
    x, v, w = np.ones((5, 0), np.float32), np.ones((0, 7), np.float32), np.ones(0, np.float32)
    result = tc.define(VALID).single()(x, v, w, options=tc.CpuOptions(numerics=RESCALED))
    np.testing.assert_array_equal(result, np.zeros((5, 7), np.float32))


def test_rows_of_an_open_number_of_weights_are_left_alone() -> None:
    f, options, size = tc.define(VALID).single(), tc.CpuOptions(numerics=RESCALED), tc.dynamic(64)
    assert "== softmax ==" not in f.explain((5, size), (size, 7), (size,), target="cpu", options=options)
    rows = f.explain((size, 6), (6, 7), (6,), target="cpu", options=options)
    assert "S2: its sum divides the result of S3" in rows


def test_one_row_and_halves_that_are_summed_are_softmaxes_too() -> None:
    one = """def f(float(M) x, float(M) v) -> (o) {
        h max=! x(m)  e(m) = half(exp(x(m) - h))  s +=! float(e(m))  p(m) = half(float(e(m)) / s)
        o +=! float(p(m)) * v(m) }"""
    assert [made.product for _, made in rewritten(one, (6,), (6,))] == ["S4"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("h(n) max=! x(n,m)", "h(n) max=! 0.5 * x(n,m)", id="the greatest of something else"),
        pytest.param("h(n) max=! x(n,m)", "h(n) min=! x(n,m)", id="the least"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "exp(h(n) - x(n,m)) / s(n)", id="numerators above 1"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "x(n,m) / s(n)", id="no exponential"),
        pytest.param("exp(x(n,m) - h(n)) / s(n)", "exp(x(n,m) - h(n)) * s(n)", id="no quotient"),
        pytest.param("/ s(n)", "/ w(m)", id="divisors that differ"),
        pytest.param("h(n) max=! x(n,m)", "h(n) max=! x(n,m) where m in 0:2", id="the greatest of a part"),
        pytest.param("s(n) +=! exp(x(n,m) - h(n))", "s(n) +=! exp(x(n,m) - h(n)) where m in 1:2", id="a part's sum"),
        pytest.param("s(n) +=! exp(x(n,m) - h(n))", "s(n) +=! x(n,m)", id="the sum of something else"),
        pytest.param(
            "s(n) +=! exp(x(n,m) - h(n))", "s(n) +=! exp(x(n,m) - h(n))\n s(n) = 2 * s(n)", id="twice the sum"
        ),
    ],
)
def test_other_weights_are_left_alone(old: str, new: str) -> None:
    assert old in VALID
    assert rewritten(VALID, (5, 6), (6, 7), (6,))
    assert not rewritten(VALID.replace(old, new, 1), (5, 6), (6, 7), (6,))


def test_what_changes_behind_its_maximum_is_left_alone() -> None:
    text = """def f(float(N,M) y, float(M,K) v, float(M) w) -> (o) {
        x(n,m) = y(n,m)
        h(n) max=! x(n,m)
        x(n,m) += 85.0
        s(n) +=! exp(x(n,m) - h(n))
        p(n,m) = exp(x(n,m) - h(n)) / s(n)
        o(n,k) +=! p(n,m) * v(m,k) * w(m) }"""
    assert rewritten(text.replace("x(n,m) += 85.0", ""), (5, 6), (6, 7), (6,))
    assert not rewritten(text, (5, 6), (6, 7), (6,))


def test_a_divisor_that_the_program_is_given_is_left_alone() -> None:
    text = """def f(float(N,M) x, float(N) s, float(M,K) v) -> (o) {
        h(n) max=! x(n,m)
        p(n,m) = exp(x(n,m) - h(n)) / s(n)
        o(n,k) +=! p(n,m) * v(m,k) }"""
    assert not rewritten(text, (5, 6), (5,), (6, 7))


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
    "a sum that begins with what is there": _with("S3", lambda s: replace(s, initialize=False)),
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


FORGED = {
    "weights that a second statement writes": "p(n,m) = x(n,m) / s(n)  p(n,m+M) = x(n,m)  o(n) +=! p(n,k) * w(k)",
    "weights that are changed": "p(n,m) = x(n,m) / s(n)  p(n,m) += x(n,m)  o(n) +=! p(n,m) * w(m)",
    "weights that are products": "p(n,m) *=! (x(n,m) * w(k)) / s(n)  o(n) +=! p(n,m) * w(m)",
    "terms of several rows": "p(n,m) = x(n,m) / s(n)  o(n+k) +=! p(n,m) * w(m) where k in 0:2",
    "rows without terms": "p(n,m) = x(n,m) / s(n)  o(n) +=! p(n,m) * w(m) where m in 0:n",
}


@pytest.mark.parametrize("name", FORGED)
def test_the_proof_refuses_what_the_pass_does_not_propose(name: str) -> None:
    before = specialized(
        f"def f(float(N,M) x, float(N) s, float(M) w) -> (o) {{ {FORGED[name]} }}", ((5, 6), (5,), (6,))
    )
    weights = next(own for own in before.program.statements if own.target == "p")
    product = before.program.statements[-1]
    read = next(own for own in reads_in(product.value) if own.tensor == "p")
    after, made = factor_out._factored(before, factor_out._Found(product, weights, read))
    assert find_wrong_factoring(before, after, made) is not None


def test_numerics_want_to_know_whether() -> None:
    with pytest.raises(tc.OptionsError, match="rescaled_softmax must be True or False, got 1"):
        tc.Numerics(rescaled_softmax=1)  # type: ignore[arg-type]
