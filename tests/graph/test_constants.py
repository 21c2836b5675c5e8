"""Constants that planning makes are computed when they are looked at, once."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import tc.graph
from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.constants import Constants, given, later
from tc.graph.rewrite.constants import folded, laid_out

TWICE = "def twice(float(N) x) -> (y) { y(i) = 2.0 * x(i) }"
SUMS = "def sums(float(M,N) x, float(N,M) w) -> (y) { y(i) +=! x(i,j) * w(j,i) }"


class Counting:
    """What makes an array, and how often it has."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.times = 0

    def __call__(self) -> np.ndarray:
        self.times += 1
        return self.array


def test_names_are_known_before_contents() -> None:
    made = Counting(np.arange(6.0).reshape(2, 3).T)
    constants = Constants.of({"a": np.zeros(2)}).with_more({"b": later(made), "c": given(np.ones(1))})
    assert list(constants) == ["a", "b", "c"]
    assert "b" in constants
    assert list(constants.only({"b", "a"})) == ["a", "b"]
    assert Constants.of(constants) is constants
    assert made.times == 0
    # An array in order, and the same one from then on.
    assert constants["b"].flags.c_contiguous
    np.testing.assert_array_equal(constants["b"], made.array)
    assert constants.only({"b"})["b"] is constants["b"]
    assert made.times == 1


def test_what_a_constant_is_made_of_is_let_go() -> None:
    made = Counting(np.ones(3))
    held = weakref.ref(made)
    contents = later(made)
    del made
    assert contents().sum() == contents().sum() == 3
    gc.collect()
    assert held() is None


def test_a_failure_is_raised_to_whom_it_concerns_and_nothing_is_kept() -> None:
    def fails() -> np.ndarray:
        raise MemoryError("too large")

    constants = Constants({"a": later(fails), "b": given(np.ones(1))})
    assert constants["b"] == 1
    for _ in range(2):
        with pytest.raises(MemoryError, match="too large"):
            constants["a"]


def test_what_depends_on_constants_is_computed_when_it_is_looked_at() -> None:
    builder = Builder("g")
    made = Counting(np.full(3, 2, np.float32))
    held = builder.constant_later(made, ScalarType.FLOAT32, (3,))
    (once,) = builder.call(TWICE, held)
    (again,) = builder.call(TWICE, once)
    graph = builder.finish([again])
    runs = []

    def run(own: tc.graph.Graph) -> list[np.ndarray]:
        runs.append(own)
        return [4 * own.constants[held.name] for _ in own.outputs]

    changed = folded(graph, run)
    assert not changed.nodes
    assert not runs
    assert made.times == 0
    for _ in range(2):
        np.testing.assert_array_equal(changed.constants[again.name], [8, 8, 8])
    assert len(runs) == made.times == 1


def test_planning_looks_at_no_weights_and_calls_do_once() -> None:
    builder = Builder("g")
    weights = Counting(np.arange(12, dtype=np.float32).reshape(3, 4))
    x = builder.input("x", ScalarType.FLOAT32, (4, 3))
    held = builder.permute(builder.constant_later(weights, ScalarType.FLOAT32, (3, 4)), (1, 0))
    (y,) = builder.call(SUMS, builder.permute(x, (1, 0)), held)
    graph = builder.finish([y])
    assert list(laid_out(graph).constants)
    model = tc.graph.Model.of(graph)
    assert model.plan().constants == 48
    assert "sums" in model.explain()
    assert weights.times == 0
    given = np.ones((4, 3), np.float32)
    for _ in range(2):
        np.testing.assert_array_equal(np.asarray(model(given)), weights.array.sum(1))
    assert weights.times == 1
