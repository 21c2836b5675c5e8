"""The fuzzer itself: the same programs from the same seed, failures seen, failures made small."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import pytest

import tc
from tc.reference.bounded import Array
from tests.fuzz.arrays import make
from tests.fuzz.describe import describe
from tests.fuzz.execute import HUNG, Outcome, Verdict, execute
from tests.fuzz.generate import generate
from tests.fuzz.recipe import Content, Layout, Recipe, TensorArgument
from tests.fuzz.shrink import shrink
from tests.fuzz.workers import run
from tests.waiting import PATIENCE

FLOAT = tc.ScalarType.FLOAT32
TEXT = """
def g(float(N) A) -> (B) { B(i) = A(i) }
def f(float(N) A, float(N) X) -> (C, D) {
  T = g(A)
  C(i) = sin(T(i)) + (T(i) > 0 ? 2 * X(i) : 1) where i in 0:N
  D +=! A(i) * A(i)
}
"""


def recipe(text: str = TEXT, layout: Layout = Layout.CONTIGUOUS) -> Recipe:
    argument = TensorArgument(FLOAT, ("N",), layout, Content.ORDINARY)
    options = tc.CpuOptions(schedule=tc.ScheduleOptions(tile=(2,), unroll=4))
    outputs = (("C", Layout.OFFSET),)
    return Recipe(0, 0, text, "f", (("N", 8),), (("A", argument), ("X", argument)), outputs, (), options)


def corrupt(monkeypatch: pytest.MonkeyPatch, damage: Callable[[tuple[object, ...], tuple[Array, ...]], None]) -> None:
    """Lets every call do some damage to its arguments or results when it is done."""
    honest = tc.Comprehension.__call__

    def call(self: tc.Comprehension, *arguments: object, out: object, target: str, options: tc.CpuOptions) -> object:
        results = honest(self, *arguments, out=out, target=target, options=options)
        assert isinstance(results, tuple)
        damage(arguments, results)
        return results

    monkeypatch.setattr(tc.Comprehension, "__call__", call)


def test_a_seed_gives_the_same_programs() -> None:
    assert [generate(3, number) for number in range(20)] == [generate(3, number) for number in range(20)]
    assert generate(3, 0) != generate(4, 0)


def test_an_honest_kernel_agrees() -> None:
    assert execute(recipe()) == Outcome(Verdict.AGREED, elements=9)


def test_an_ill_formed_text_is_refused_and_a_broken_one_fails() -> None:
    assert execute(recipe(TEXT.replace("A(i) * A(i)", "A(i, i)"))).verdict is Verdict.REFUSED
    assert execute(recipe(TEXT.replace("def f", "deff"))).kind == "ParseError"


def _change_value(arguments: tuple[object, ...], results: tuple[Array, ...]) -> None:
    results[0][3] += 0.5


def _change_argument(arguments: tuple[object, ...], results: tuple[Array, ...]) -> None:
    assert isinstance(arguments[1], np.ndarray)
    arguments[1][0] += 1


def _write_outside(arguments: tuple[object, ...], results: tuple[Array, ...]) -> None:
    assert results[0].base is not None
    results[0].base[:] += 1
    results[0][...] -= 1


def _die(arguments: tuple[object, ...], results: tuple[Array, ...]) -> None:
    raise ZeroDivisionError


@pytest.mark.parametrize(
    ("damage", "kind"),
    [
        (_change_value, "values"),
        (_change_argument, "argument"),
        (_write_outside, "outside"),
        (_die, "ZeroDivisionError"),
    ],
)
def test_damage_is_seen(
    monkeypatch: pytest.MonkeyPatch,
    damage: Callable[[tuple[object, ...], tuple[Array, ...]], None],
    kind: str,
) -> None:
    corrupt(monkeypatch, damage)
    outcome = execute(recipe())
    assert (outcome.verdict, outcome.kind) == (Verdict.FAILED, kind)
    assert "f(float(N) A, float(N) X)" in describe(recipe(), outcome)


def test_other_bits_are_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[None] = []

    def drift(arguments: tuple[object, ...], results: tuple[Array, ...]) -> None:
        calls.append(None)
        results[1][...] += len(calls) - 1

    corrupt(monkeypatch, drift)
    assert execute(recipe()).kind == "bits"


def test_an_index_outside_is_reported_by_both() -> None:
    text = "def f(float(N) A, int(N) X) -> (C, D) { C(i) = A(X(i)) D(i) = A(i) }"
    plain = recipe(text)
    for below, verdict in ((8, Verdict.AGREED), (99, Verdict.FAULTED)):
        indices = TensorArgument(tc.ScalarType.INT32, ("N",), below=below)
        arguments = (plain.arguments[0], ("X", indices))
        assert execute(Recipe(0, 0, text, "f", plain.sizes, arguments, (), (), plain.options)).verdict is verdict


def test_failures_shrink_to_what_fails() -> None:
    def fails(candidate: Recipe) -> bool:
        outcome = execute(candidate)
        return outcome.verdict is Verdict.AGREED and "sin(" in candidate.text and dict(candidate.sizes)["N"] > 1

    small = shrink(recipe(layout=Layout.STRIDED), fails)
    assert re.sub(r"\s+", " ", small.text).strip() == (
        "def g(float(N) A) -> (B) { B(i) = A(i) } def f(float(N) A) -> (C) { T = g(A) C(i) = sin(T(i)) }"
    )
    assert small.sizes == (("N", 2),)
    assert small.options == tc.CpuOptions()
    assert small.outputs == ()
    assert [argument.layout for _, argument in small.arguments if isinstance(argument, TensorArgument)] == [
        Layout.CONTIGUOUS
    ]


@pytest.mark.parametrize("layout", Layout)
def test_layouts_hold_the_same_values(layout: Layout) -> None:
    for shape in ((), (0, 3), (5,), (4, 1, 3)):
        plain = make(np.random.default_rng(1), TensorArgument(FLOAT, shape), shape)
        placed = make(np.random.default_rng(1), TensorArgument(FLOAT, shape, layout), shape)
        assert placed.view.shape == shape
        assert np.shares_memory(placed.view, placed.base) or not placed.view.size
        assert placed.view.flags.writeable == (layout is not Layout.READ_ONLY)
        if layout is not Layout.BROADCAST:
            np.testing.assert_array_equal(placed.view, plain.view)


def test_programs_run_in_other_processes() -> None:
    recipes = [generate(3, number) for number in range(3)]
    outcomes = {recipe.number: outcome for recipe, outcome in run(recipes, jobs=2, limit=PATIENCE)}
    assert outcomes == {recipe.number: execute(recipe) for recipe in recipes}


def test_a_program_that_takes_too_long_is_given_up() -> None:
    outcomes = [outcome for _, outcome in run([generate(3, 0)], jobs=1, limit=0.0)]
    assert [(outcome.verdict, outcome.kind) for outcome in outcomes] == [(Verdict.FAILED, HUNG)]


def test_every_option_is_drawn() -> None:
    recipes = [generate(5, number) for number in range(500)]
    for kind in (tc.CpuOptions, tc.GpuOptions):
        drawn = [recipe.options for recipe in recipes if isinstance(recipe.options, kind)]
        for field in fields(kind):
            assert len({getattr(options, field.name) for options in drawn}) > 1, field.name
    for field in fields(tc.ScheduleOptions):
        assert len({getattr(recipe.options.schedule, field.name) for recipe in recipes}) > 1, field.name
    assert len({recipe.target for recipe in recipes}) > 1
