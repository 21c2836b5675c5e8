"""Arguments by name."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tc
from tests.short_way import only_the_short_way

DEFINITIONS = tc.define("def sub(float(N) A, float(N) B, float c) -> (O) { O(i) = A(i) - B(i) * c }")
SUB = DEFINITIONS["sub"]
A, B = np.arange(5, dtype=np.float32), np.ones(5, np.float32)
EXPECTED = [-2.0, -1.0, 0.0, 1.0, 2.0]


@pytest.mark.parametrize("sub", [DEFINITIONS, SUB, SUB.compile((5,), (5,), 2.0)], ids=["text", "definition", "kernel"])
def test_any_order_will_do(sub: Callable[..., object]) -> None:
    for found in (sub(A, B, 2), sub(A, B, c=2), sub(A, c=2, B=B), sub(c=2, B=B, A=A)):
        assert np.asarray(found).tolist() == EXPECTED
    out = np.zeros(5, np.float32)
    assert sub(B=B, A=A, c=2, out=out) is out
    assert out.tolist() == EXPECTED


def test_named_calls_are_warm_like_others() -> None:
    twice = tc.define("def twice(float(N) A) -> (O) { O(i) = 2 * A(i) }")
    twice(A=A)
    with only_the_short_way():
        assert np.asarray(twice(A=A)).tolist() == np.asarray(twice(A)).tolist() == [0, 2, 4, 6, 8]


@pytest.mark.parametrize("sub", [DEFINITIONS, SUB], ids=["text", "definition"])
def test_everything_that_takes_arguments(sub: tc.Definitions | tc.Comprehension) -> None:
    assert sub.output_shapes(B=(5,), A=(5,), c=1.0) == {"O": (5,)}
    assert np.asarray(sub.reference(c=2.0, B=B, A=A)).tolist() == EXPECTED
    assert sub.compile(B=(5,), A=(5,), c=1.0).signature == SUB.compile((5,), (5,), 1.0).signature
    assert sub.explain(B=(5,), A=(5,), c=1.0) != ""
    with pytest.raises(tc.ArgumentError, match="sub has no argument D"):
        sub.tune(D=A, progress=False)


MESSAGES: dict[str, Callable[[], object]] = {
    "sub has no argument a; did you mean A?": lambda: SUB(a=A, B=B, c=1),
    "sub has no argument weights; it takes A, B, c": lambda: SUB(A, B, weights=1),
    "sub has no argument O; arrays for results are passed with out=": lambda: SUB(A, B, 1, O=A),
    "sub: the argument A is given twice, by its place and by its name": lambda: SUB(A, A=A, B=B, c=1),
    "sub: the argument B is missing": lambda: SUB(A=A, c=1),
    "sub: the arguments B, c are missing": lambda: SUB(A=A),
    "sub takes 3 arguments (A, B, c), got 4": lambda: SUB(A, B, 1, 2),
}


@pytest.mark.parametrize("message", MESSAGES)
def test_messages(message: str) -> None:
    with pytest.raises(tc.ArgumentError, match="^" + re.escape(message) + "$"):
        MESSAGES[message]()


def test_tensors_may_be_named_like_parameters_of_the_methods() -> None:
    plus = tc.define("def plus(float(N) self, float(N) definitions) -> (O) { O(i) = self(i) + definitions(i) }")
    for f in (plus, plus.plus, plus.compile(definitions=(5,), self=(5,))):
        assert np.asarray(f(definitions=A, self=B)).tolist() == [1, 2, 3, 4, 5]
    assert np.asarray(plus.reference(definitions=A, self=B)).tolist() == [1, 2, 3, 4, 5]
