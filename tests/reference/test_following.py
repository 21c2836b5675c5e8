"""Each step of a recurrence is judged by what a kernel gave for those before it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import tc
from tc.reference.compare import Comparison, compare
from tc.reference.following import followed
from tests.comprehensions.recurrence import CASES
from tests.turns import one_in

Array = npt.NDArray[np.float32]

_CASES = {case.name: case for case in CASES}
_TEXTS = {case.name: case.text for case in CASES}
_GATES = {"recurrent_network": 1, "lstm": 4, "gru": 3}


def arguments(name: str, steps: int, batch: int, inputs: int, hidden: int) -> tuple[Array, ...]:
    """With weights as PyTorch begins with, which may magnify errors in every step."""
    random, gates = np.random.default_rng(7), _GATES[name]

    def weights(*shape: int) -> Array:
        scale = 1 / np.sqrt(hidden)
        return random.uniform(-scale, scale, shape).astype(np.float32)

    x, h = random.standard_normal((steps, batch, inputs)).astype(np.float32), np.zeros((batch, hidden), np.float32)
    if gates == 1:
        return x, weights(inputs, hidden), weights(hidden, hidden), h
    products = x, weights(gates, hidden, inputs), weights(gates, hidden, hidden), weights(gates, hidden)
    return (*products, h, h) if gates == 4 else (*products, weights(gates, hidden), h)


def judged(f: tc.Comprehension, given: tuple[np.ndarray, ...], *arrays: object) -> list[tuple[Comparison, float]]:
    """Every result beside what must come of the ones before it, and its greatest bound."""
    expected = f.oracle(*arrays, given=given)
    found = zip(expected.values(), given, strict=True)
    return [(compare(result, values), float(result.error.max())) for result, values in found]


def called(f: tc.Comprehension, *arrays: object, target: str = "cpu") -> tuple[np.ndarray, ...]:
    found = f(*arrays, target=target)
    return tuple(np.asarray(own) for own in (found if isinstance(found, tuple) else (found,)))


@pytest.mark.parametrize(
    ("name", "steps"),
    [
        ("recurrent_network", 500),
        ("lstm", 40),
        ("gru", 40),
        pytest.param("lstm", 500, marks=pytest.mark.slow),
        pytest.param("gru", 500, marks=pytest.mark.slow),
    ],
)
def test_bounds_stay_useful_with_weights_that_magnify(name: str, steps: int) -> None:
    f, arrays = tc.define(_TEXTS[name]).single(), arguments(name, steps, 2, 5, 37)
    exact = _CASES[name].expected(*(array.astype(np.float64) for array in arrays))
    given = tuple(np.asarray(result).astype(np.float32) for result in exact)
    for comparison, bound in judged(f, given, *arrays):
        assert comparison.ok
        assert comparison.ambiguous == 0
        assert bound < 2e-5
    if (name, steps) == ("lstm", 40):
        assert max(result.error.max() for result in f.oracle(*arrays).values()) > 0.05, "bounds of all steps together"


def test_a_step_that_is_wrong_is_seen_and_no_other_one() -> None:
    f = tc.define(_TEXTS["recurrent_network"]).single()
    x, w, u, h = arguments("recurrent_network", 30, 2, 5, 13)
    states = [h]
    for t, step in enumerate(x):
        states.append(np.tanh(step @ w + states[-1] @ u + np.float32(1e-4 * (t == 20))))
    given = np.array(states)
    ((comparison, _),) = judged(f, (given,), x, w, u, h)
    assert not comparison.ok
    expected = f.oracle(x, w, u, h, given=given)["h"]
    wrong = np.abs(given - expected.values) > expected.error
    assert wrong[21].all()
    assert not np.delete(wrong, 21, axis=0).any()


@pytest.mark.parametrize(
    ("body", "names"),
    [
        ("y(0,b) = x(0,b) for t in 1:T { y(t,b) = y(t-1,b) + x(t,b) }", {"y"}),
        ("y(T,b) = x(0,b) for t in 0:T { y(T-1-t,b) = y(T-t,b) + x(t,b) }", {"y"}),
        ("for t in 0:T { y(t,b) = x(t,b) y(t,b) += t > 0 ? y(t-1,b) : 0 }", {"y"}),
        ("for t in 0:T { for b in 0:B { y(t,b) = x(t,b) + (b > 0 ? y(t,b-1) : 0) } }", {"y"}),
        ("for t in 0:T { for s in 0:2 { y(t,b) = x(t,b) + s } }", set()),  # several steps write one element
        ("y(b) = x(0,b) for t in 0:T { y(b) = y(b) + x(t,b) }", set()),
        ("for t in 0:T { y(t,b) = x(t,b) } y(t,b) = y(t,b) * 2", set()),  # what was read is not what is stored
        ("for t in 0:T { y(2*t,b) = x(t,b) y(2*t+1,b) = y(2*t,b) }", set()),
        ("y(t,b) = x(t,b)", set()),
    ],
)
def test_which_results_are_followed(body: str, names: set[str]) -> None:
    program = tc.define(f"def f(float(T,B) x) -> (y) {{ {body} }}").single().specialize((4, 3)).program
    assert set(followed(program)) == names


@one_in(2)
@pytest.mark.parametrize(
    ("case", "target"), [("second_order_filter", "cpu"), ("wave_equation", "emulator"), ("viterbi", "cpu")]
)
def test_kernels_are_accepted(case: str, target: str) -> None:
    own = _CASES[case]
    arrays = own.make_inputs(np.random.default_rng(1), own.large_ragged_sizes).values()
    f = tc.define(own.text).single()
    assert all(found.ok for found, _ in judged(f, called(f, *arrays, target=target), *arrays))


def test_halves_go_on_unrounded_or_not() -> None:
    text = "def f(half(T,N) x) -> (y) { y(0,i) = x(0,i) for t in 1:T { y(t,i) = half(0.5) * y(t-1,i) + x(t,i) } }"
    f, x = tc.define(text).single(), np.random.default_rng(2).standard_normal((60, 9)).astype(np.float16)
    rounded, kept = [x[0]], [x[0].astype(np.float32)]
    for step in x[1:]:
        rounded.append(np.float16(0.5) * rounded[-1] + step)
        kept.append(np.float32(0.5) * kept[-1] + step)
    for given in (np.array(rounded), np.array(kept).astype(np.float16), *called(f, x)):
        assert all(found.ok for found, _ in judged(f, (given,), x))


def test_what_is_given_must_be_the_results() -> None:
    f = tc.define("def f(float(T) x) -> (y, z) { for t in 0:T { y(t) = x(t) z(t) = y(t) } }").single()
    x = np.ones(3, np.float32)
    with pytest.raises(tc.ArgumentError, match="f: 1 result given, the definition has 2; pass what a call returned"):
        f.oracle(x, given=x)
    with pytest.raises(tc.ArgumentError, match=r"for z must be float32 of shape \(3,\), got float64 of shape \(3,\)"):
        f.oracle(x, given=(x, x.astype(np.float64)))
    with pytest.raises(tc.ArgumentError, match=r"for y must be float32 of shape \(3,\), got float32 of shape \(2,\)"):
        f.oracle(x, given=(x[:2], x))
