"""Gradients that a text gives itself."""

from __future__ import annotations

import pickle
import re

import numpy as np
import pytest
import torch

import tc
from tests.gradient.differences import as_array, as_tuple

TEXT = """
def clip(float(N) x, float a) -> (y) { y(i) = fmin(fmax(x(i), -a), a) }
def straight(float(N) x, float a, float(N) d_y) -> (d_x) { d_x(i) = d_y(i) where i in 0:N }
def cut(float(N) x, float a, float(N) d_y) -> (d_x) { d_x(i) = fmin(fmax(d_y(i), -a), a) where i in 0:N }
def twice(float(N) x) -> (y) { t = clip(x, 1.0)  y(i) = 2 * t(i) }
def mul(float(N) x, float(N) w) -> (y, z) { y(i) = x(i) * w(i)  z +=! x(i) }
def mul_grad(float(N) x, float(N) w, float(N) d_y, float d_z) -> (d_x, d_w) {
    d_x(i) = d_y(i) * w(i)
    d_w(i) = d_y(i) * x(i)
}
def mul_adjoint(float(N) x, float(N) w, float(N) d_y, float() d_z) -> (d_x, d_w) {
    d_x(i) = 10 * d_y(i) * w(i) + d_z
    d_w(i) = 100 * d_y(i) * x(i)
}
"""
DEFINITIONS = tc.define(TEXT, gradients={"clip": "straight", "mul": "mul_adjoint"})
X = np.asarray([-2, 0.5, 3], np.float32)
ONES = np.ones(3, np.float32)


def test_the_given_gradient_is_taken() -> None:
    clip = DEFINITIONS["clip"]
    assert clip.gradient() is clip.gradient("x") is DEFINITIONS["straight"]
    np.testing.assert_array_equal(as_array(clip.gradient()(X, 1.0, 7 * ONES)), 7 * ONES)
    np.testing.assert_array_equal(as_array(tc.define(TEXT)["clip"].gradient()(X, 1.0, 7 * ONES)), [0, 7, 0])
    forward, backward, kept = clip.with_gradient()
    assert (forward, backward, kept) == (clip, DEFINITIONS["straight"], ())


def test_some_of_its_results() -> None:
    mul = DEFINITIONS["mul"]
    assert mul.gradient("w").interface.results == ("d_w",)
    np.testing.assert_array_equal(as_array(mul.gradient("w")(X, ONES, ONES, np.float32(1))), 100 * X)
    assert mul.gradient("w", "x").interface.results == ("d_w", "d_x")
    assert mul.with_gradient("x", "w", only=("x",)).backward.interface.results == ("d_x",)


def test_the_forward_mode_is_its_transpose() -> None:
    y, z = as_tuple(DEFINITIONS["mul"].jvp("x")(X, ONES, ONES))
    np.testing.assert_array_equal(y, 10 * ONES)
    assert float(z) == 3
    cut = tc.define(TEXT, gradients={"clip": "cut"})["clip"]
    with pytest.raises(tc.GradientError, match="the gradient of `clip` is not linear in the adjoints that it is given"):
        cut.jvp()


def test_pytorch_takes_it_too() -> None:
    x = torch.tensor(X, requires_grad=True)
    result = DEFINITIONS["clip"](x, 1.0)
    assert isinstance(result, torch.Tensor)
    assert torch.autograd.grad(result.sum(), x)[0].tolist() == [1, 1, 1]


def test_pytorch_takes_some_of_its_results() -> None:
    mul = DEFINITIONS["mul"]
    operator = mul.torch_op("tests::mul_with_its_own_gradient")
    for call in (mul, operator):
        x, w = torch.tensor(X, requires_grad=True), torch.ones(3, requires_grad=True)
        result = call(x, w)
        assert isinstance(result, tuple)
        assert torch.autograd.grad(result[0].sum(), w)[0].tolist() == (100 * X).tolist()


def test_copies_keep_it() -> None:
    copy = pickle.loads(pickle.dumps(DEFINITIONS["clip"]))
    np.testing.assert_array_equal(as_array(copy.gradient()(X, 1.0, ONES)), ONES)
    with pytest.raises(tc.GradientError, match="`twice` calls `clip`"):
        pickle.loads(pickle.dumps(DEFINITIONS["twice"])).gradient()


@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        ({"clap": "straight"}, "gradients name `clap`, which the text does not define; did you mean 'clip'?"),
        ({"clip": "mn"}, "gradients name `mn`, which the text does not define; defined: clip, straight, cut, twice"),
        (
            {"mul": "mul_grad"},
            (
                "`mul_grad` is no gradient of `mul`: it must take (float32(*), float32(*), float32(*), float32()), the "
                "arguments and the adjoints of the results, and return (float32(*), float32(*)), the adjoints of x, w; "
                "it takes (float32(*), float32(*), float32(*), float32) and returns (float32(*), float32(*))"
            ),
        ),
    ],
)
def test_what_is_no_gradient(gradients: dict[str, str], message: str) -> None:
    with pytest.raises(tc.GradientError, match=re.escape(message)):
        tc.define(TEXT, gradients=gradients)


def test_what_it_has_no_choice_of() -> None:
    clip = DEFINITIONS["clip"]
    with pytest.raises(tc.GradientError, match="`clip` has a gradient of its own, `straight`, which takes no ties"):
        clip.gradient(ties="first")
    with pytest.raises(tc.GradientError, match="`clip` has a gradient of its own, `straight`, which takes no save"):
        clip.with_gradient(save=())


def test_callers_have_none() -> None:
    message = "`twice` calls `clip`, whose own gradient `straight` is not part of it; give `twice` a gradient, too"
    for derive in (DEFINITIONS["twice"].gradient, DEFINITIONS["twice"].jvp, DEFINITIONS["twice"].with_gradient):
        with pytest.raises(tc.GradientError, match=re.escape(message)):
            derive()
