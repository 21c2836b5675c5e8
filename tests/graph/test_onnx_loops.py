"""Loops whose conditions depend on what they compute, and long ones: one body, called from outside."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

import tc
import tc.graph
from tc.graph.run import stages
from tests.graph.comparison import f32, same, uniform
from tests.graph.one_node import computed, one_node

# x is multiplied until its sum is large; the matrix is carried and does not change, the factor is from outside.
GROWING = """
<ir_version: 8, opset_import: ["" : 21]>
growing (float[3] x, float[3, 3] w, float limit) => (float[3] y, float[3, 3] same, float[N, 3] all)
<float factor = {1.5}> {
    holds = Constant <value = bool {1}> ()
    y, same, all = Loop <
    body = step (int64 i, bool c, float[3] v, float[3, 3] m) => (bool on, float[3] next, float[3, 3] m, float[3] row) {
        p = MatMul(m, v)
        next = Mul(p, factor)
        row = Identity(v)
        sum = ReduceSum <keepdims = 0> (next)
        on = Less(sum, limit)
    }> (, holds, x, w)
}
"""
# A counter says which element is added; another loop inside, and a branch that depends on what was computed.
COUNTING = """
<ir_version: 8, opset_import: ["" : 21]>
counting (float[7] x, float limit) => (float sum, int64 at)
<int64 zero = {0}, int64 one = {1}, int64 two = {2}, float nothing = {0}, int64[1] axes = {0}> {
    holds = Constant <value = bool {1}> ()
    most = Constant <value = int64 {7}> ()
    sum, at = Loop <body = step (int64 i, bool c, float s, int64 k) => (bool on, float added, int64 after) {
        begin = Unsqueeze(k, axes)
        after = Add(k, one)
        end = Unsqueeze(after, axes)
        part = Slice(x, begin, end)
        element = ReduceSum <keepdims = 0> (part)
        small = Less(element, nothing)
        term = If (small) <
            then_branch = negative () => (float t) { t = Neg(element) },
            else_branch = positive () => (float u) {
                u, rest = Loop <body = halve (int64 j, bool d, float a, float b) => (bool more, float half, float b) {
                    halves = Constant <value = float {0.5}> ()
                    half = Mul(a, halves)
                    more = Less(b, half)
                }> (, holds, element, limit)
            }
        >
        added = Add(s, term)
        on = Less(added, limit)
    }> (most, holds, nothing, zero)
}
"""
LONG = """
<ir_version: 8, opset_import: ["" : 21]>
long (float[5] x, float[5] d) => (float[5] y, float[N] all) {
    trips = Constant <value = int64 {300}> ()
    y, all = Loop <body = step (int64 i, bool c, float[5] v) => (bool c, float[5] next, float largest) {
        shrunk = Mul(v, d)
        f = Cast <to = 1> (i)
        next = Add(shrunk, f)
        largest = ReduceMax <keepdims = 0> (next)
    }> (trips, , x)
}
"""


def model_of(text: str) -> onnx.ModelProto:
    found = onnx.parser.parse_model(text)
    onnx.checker.check_model(found)
    return found


def expected_of(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> list[np.ndarray]:
    found = ReferenceEvaluator(model).run(None, given)
    assert isinstance(found, list)
    return found


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The sources of the graphs that are prepared, in order."""
    found: list[str] = []
    prepare: Callable[..., object] = stages.Stages._prepared

    def noted(self: stages.Stages[stages.Stageable], request: object) -> object:
        found.append(self._source.name)
        return prepare(self, request)

    monkeypatch.setattr(stages.Stages, "_prepared", noted)
    return found


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("limit", [-10, 20, 1000])
def test_steps_decide_whether_there_is_another_one(limit: float, compiled: bool) -> None:
    model = model_of(GROWING)
    given = {"x": uniform(3, low=1, high=2), "w": f32(np.eye(3) * 1.1), "limit": f32(limit)}
    expected = expected_of(model, given)
    found = computed(tc.graph.load(model), given, compiled=compiled)
    assert len(found[2]) == len(expected[2])
    for one, other in zip(found, expected, strict=True):
        same(one, other)


def test_a_body_is_prepared_once_however_many_steps_there_are(prepared: list[str]) -> None:
    model = tc.graph.load(model_of(GROWING))
    x, w = np.ones(3, np.float32), np.eye(3, dtype=np.float32)
    lengths = [len(model.run(["all"], {"x": x, "w": w, "limit": f32(limit)})["all"]) for limit in (20, 1000)]
    assert lengths[0] < lengths[1]
    assert prepared == ["growing", "step", "growing", "growing"]  # the number of rows is a size of the last ones


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("limit", [0.25, 1.5, 100])
def test_loops_within_branches_within_loops(limit: float, compiled: bool) -> None:
    model = model_of(COUNTING)
    given = {"x": uniform(7), "limit": f32(limit)}
    expected = expected_of(model, given)
    for one, other in zip(computed(tc.graph.load(model), given, compiled=compiled), expected, strict=True):
        same(one, other)


def test_graphs_know_counters_where_slices_depend_on_them(prepared: list[str]) -> None:
    model = tc.graph.load(model_of(COUNTING))
    model(-np.ones(7, np.float32), np.float32(100))
    # For each step, what it demands of its counter, known at once, and of its branch; then the step itself.
    assert prepared.count("step") == 1 + 2 * 7
    model(-np.full(7, 0.5, np.float32), np.float32(100))
    assert prepared.count("step") == 1 + 2 * 7


@pytest.mark.parametrize("compiled", [False, True])
def test_long_loops_are_not_unrolled(compiled: bool, prepared: list[str]) -> None:
    given = {"x": uniform(5), "d": uniform(5, seed=1, low=0, high=0.5)}
    y, largest = given["x"].astype(np.float64), []
    for step in range(300):
        y = y * given["d"] + step
        largest.append(y.max())
    found = computed(tc.graph.load(model_of(LONG)), given, compiled=compiled)
    same(found[0], y.astype(np.float32))
    same(found[1], np.array(largest, np.float32))
    assert prepared == ["long", "step", "long"]


def test_what_is_wrong_with_a_loop_is_said() -> None:
    two = GROWING.replace("on = Less(sum, limit)", "on = Less(next, limit)")
    given = {"x": np.ones(3, np.float32), "w": np.eye(3, dtype=np.float32), "limit": np.float32(9)}
    model = tc.graph.load(onnx.parser.parse_model(two))
    with pytest.raises(tc.GraphError, match=r"node `y` \(Loop\): a condition has one element, got \(3,\)"):
        model.run(["y"], given)
    steps = GROWING.replace("float[3] v, ", "float[K] v, ").replace(
        "next = Mul(p, factor)", "next = Concat <axis = 0> (v, v)"
    )
    model = tc.graph.load(onnx.parser.parse_model(steps.replace("p = MatMul(m, v)", "p = Identity(v)")))
    with pytest.raises(
        tc.GraphError, match=r"node `y` \(Loop\): the steps give `row` several shapes: \[\(3,\), \(6,\)"
    ):
        model.run(["y"], given)


@pytest.mark.parametrize("number", [3.0, -7.0, 2.0**24 + 2, 2.0**31, 300.0, 0.5, np.inf, np.nan])
@pytest.mark.parametrize("to", [onnx.TensorProto.INT8, onnx.TensorProto.INT32])
def test_casts_of_what_is_known_are_those_of_kernels(number: float, to: int) -> None:
    """Counters that are floats in between become integers again."""
    given = {"X": np.array([number], np.float32)}
    (known,) = computed(one_node("Cast", given, constants=("X",), to=to), {}, compiled=True)
    (found,) = computed(one_node("Cast", given, to=to), given, compiled=True)
    np.testing.assert_array_equal(known, found)
