"""A forward and its gradient as a pair: what they share, and that they agree with the definition and its gradient."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

import numpy as np
import pytest

import tc
from tests.comprehensions.case import Argument, Case
from tests.gradient.differences import Array, as_tuple, is_floating
from tests.gradient.differentiable import DIFFERENTIABLE, gradient_call, in_double, least_sizes, wide
from tests.turns import every

SOFTMAX = """
def softmax(float(N,D) x) -> (y) {
    m(n) max=! x(n,d)
    e(n,d) = exp(x(n,d) - m(n))
    s(n) +=! e(n,d)
    y(n,d) = e(n,d) / s(n)
}"""


@pytest.mark.parametrize("case", every(16, DIFFERENTIABLE), ids=lambda case: case.name)
def test_pairs_agree_with_definitions_and_their_gradients(case: Case) -> None:
    f = in_double(case)
    rng = np.random.default_rng(1)
    inputs: Mapping[str, Argument] = case.make_inputs(rng, least_sizes(case))
    outputs = case.make_outputs(rng, least_sizes(case))
    arguments = [wide(name, value, f) for name, value in inputs.items()]
    incoming = [np.asarray(wide(name, value, f)) for name, value in outputs.items()]
    expected = as_tuple(f.reference(*arguments, out=dict(zip(outputs, incoming, strict=True)) or None))
    weights = [
        rng.standard_normal(value.shape)
        for name, value in zip(f.program.results, expected, strict=True)
        if is_floating(f, name)
    ]
    adjoints = as_tuple(f.gradient().reference(*arguments, *incoming, *weights))
    found, given = through(f.with_gradient(), [*arguments, *incoming], weights)
    for value, own in zip((*expected, *adjoints), (*found[: len(expected)], *given), strict=True):
        np.testing.assert_allclose(own, value, rtol=1e-9, atol=1e-9 * max(1.0, np.abs(value).max(initial=0)))


def through(
    pair: tc.Pair, arguments: list[Argument | Array], weights: list[Array]
) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """The results of both calls, one after the other."""
    forward, backward, kept = pair
    if forward.program.results and any(tensor.in_out for tensor in forward.interface.tensors):
        count = len(forward.interface.arguments)
        names = [tensor.name for tensor in forward.interface.tensors if tensor.in_out]
        found = as_tuple(forward(*arguments[:count], out=dict(zip(names, arguments[count:], strict=True))))
    else:
        found = as_tuple(forward(*arguments))
    results = dict(zip(forward.interface.results, found, strict=True))
    return found, as_tuple(backward(*arguments, *(results[name] for name in kept), *weights))


def test_reductions_are_saved_and_the_maximum_of_softmax_has_no_adjoint() -> None:
    pair = tc.define(SOFTMAX).with_gradient("x")
    assert pair.kept == ("m", "s")
    assert pair.forward.interface.results == ("y", "m", "s")
    assert str(pair.backward).strip() == inspect.cleandoc(
        """
        def softmax_backward(float32(N, D) x, float32(N) m, float32(N) s, float32(N, D) d_y) -> (d_x) {
            e(n, d) = exp(x(n, d) - m(n)) where n in 0:N, d in 0:D
            y(n, d) = e(n, d) / s(n) where n in 0:N, d in 0:D
            d_s(n) +=! -(d_y(n, d) * y(n, d) / s(n)) where n in 0:N, d in 0:D
            d_e(n, d) = d_y(n, d) / s(n) + d_s(n) where n in 0:N, d in 0:D
            d_x(n, d) = d_e(n, d) * e(n, d) where n in 0:N, d in 0:D
        }
        """
    )


@pytest.mark.parametrize(
    ("text", "save", "kept"),
    [
        (SOFTMAX, ("y", "e"), ("e", "y")),
        (SOFTMAX, (), ()),
        # What is read once is not saved only because it could be: the sign of the result is that of the argument.
        ("def relu(float(N) x) -> (y) { y(i) = fmax(x(i), 0) }", None, ("y",)),
        (
            (
                "def mlp(float(B,M) I, float(N,M) W, float(N) C) -> (O) "
                "{ O(b,n) +=! I(b,m) * W(n,m)  O(b,n) = fmax(O(b,n) + C(n), 0) }"
            ),
            None,
            ("O",),
        ),
        # Of a sum and what it is computed to, the smaller.
        (
            "def f(float(N,M) x, float(N) b) -> (y) { h(n) +=! x(n,m)  y(n,m) = exp(h(n) * b(n)) * x(n,m) }",
            None,
            ("h",),
        ),
        # Elements of a value that no step writes are none of its own.
        (
            (
                "def f(float(S,S) A, float(T,S) E) -> (v) "
                "{ v(0,i) = E(0,i) for t in 1:T { p(t,j) +=! v(t-1,i) * A(i,j)  v(t,j) = p(t,j) * E(t,j) } }"
            ),
            None,
            ("v", "p"),
        ),
    ],
)
def test_what_is_kept(text: str, save: tuple[str, ...] | None, kept: tuple[str, ...]) -> None:
    f = tc.define(text).single()
    pair = f.with_gradient(save=save)
    assert pair.kept == kept
    rng = np.random.default_rng(0)
    sizes = dict.fromkeys(f.program.sizes, 4)
    tensors = {tensor.name: tensor for tensor in f.program.tensors}
    arguments = [rng.standard_normal([sizes[e.name] for e in tensors[n].shape]) for n in f.program.arguments]  # type: ignore[union-attr]
    arguments = [value.astype(np.float32) for value in arguments]
    expected = as_tuple(f(*arguments))
    weights = [rng.standard_normal(value.shape).astype(np.float32) for value in expected]
    found, adjoints = through(pair, [*arguments], weights)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-6)
    for own, value in zip(adjoints, as_tuple(f.gradient().reference(*arguments, *weights)), strict=True):
        np.testing.assert_allclose(own, value, rtol=1e-4, atol=1e-5)


def test_forwards_that_keep_nothing_are_the_definition() -> None:
    f = tc.define(SOFTMAX).single()
    assert f.with_gradient(save=()).forward is f
    assert (
        str(f.with_gradient(save=()).backward).splitlines()[1:]
        == str(f.with_gradient("x", save=()).backward).splitlines()[1:]
    )


def test_some_of_the_adjoints() -> None:
    f = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").single()
    pair = f.with_gradient("A", "B", only=("B",))
    assert pair.backward.interface.results == ("d_B",)
    assert pair.backward.interface.arguments == ("A", "B", "d_C")


def test_some_of_the_adjoints_are_of_those_asked_for() -> None:
    f = tc.define(SOFTMAX).single()
    with pytest.raises(tc.GradientError, match="`s` is not among the arguments asked for: x"):
        f.with_gradient("x", only=("s",))


def test_values_to_save_are_values_of_the_definition() -> None:
    f = tc.define(SOFTMAX).single()
    with pytest.raises(tc.GradientError, match="`z` cannot be saved by `softmax`: it computes m, e, s, y"):
        f.with_gradient(save=("z",))


@pytest.mark.parametrize(
    "text",
    [
        "def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n) = log(s(n)) + m(n) }",
        (
            "def f(float(N,D) x) -> (y) "
            "{ m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = x(n,d) - m(n) - log(s(n)) }"
        ),
        (
            "def f(float(N,D) x, float(D) v, float c) -> (y) "
            "{ m(n) min=! c * x(n,d)  e(n,d) = exp(m(n) - c * x(n,d))  s(n) +=! e(n,d)  y(n) +=! e(n,d) / s(n) * v(d) }"
        ),
        "def f(float(N,D) x) -> (y) { m max=! x(n,d)  s +=! exp(x(n,d) - m)  y(n,d) = exp(x(n,d) - m) / s }",
    ],
    ids=["the logarithm of a sum", "log-softmax", "expectations", "over all"],
)
def test_maxima_that_cancel_out_have_no_adjoint(text: str) -> None:
    gradient = tc.define(text).gradient()
    assert "ties" not in str(gradient)
    assert "d_m" not in str(gradient)


@pytest.mark.parametrize(
    "text",
    [
        # A part of the maximum remains.
        "def f(float(N,D) x) -> (y) { m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - 2 * m(n))  y(n) = log(s(n)) + m(n) }",
        # Something is added to the sum.
        (
            "def f(float(N,D) x) -> (y) "
            "{ m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n))  y(n,d) = exp(x(n,d) - m(n)) / (s(n) + 1) }"
        ),
        # Another range.
        (
            "def f(float(N,D) x) -> (y) "
            "{ m(n) max=! x(n,d)  s(n) +=! exp(x(n,d) - m(n)) where d in 1:D  y(n,d) = exp(x(n,d) - m(n)) / s(n) }"
        ),
    ],
    ids=["a part", "more", "another range"],
)
def test_maxima_that_do_not_cancel_out_have_one(text: str) -> None:
    assert "ties" in str(tc.define(text).gradient())


def bits_by_threads(gradient: tc.Comprehension, values: Sequence[Argument | Array]) -> list[list[bytes]]:
    """What one binary computes with 1, 2 and 4 threads: a compiler may contract other binaries differently."""
    options = tc.CpuOptions(threads=4)
    before = tc.get_threads()
    try:
        found = []
        for threads in (1, 2, 4):
            tc.set_threads(threads)
            found.append([own.tobytes() for own in as_tuple(gradient(*values, options=options))])
    finally:
        tc.set_threads(before)
    return found


@pytest.mark.parametrize("case", every(40, DIFFERENTIABLE), ids=lambda case: case.name)
def test_bits_do_not_depend_on_the_number_of_threads(case: Case) -> None:
    gradient, values = gradient_call(case, seed=3)
    alone, *others = bits_by_threads(gradient, values)
    assert all(own == alone for own in others)


# Large enough that cores share the work.
LARGE = {
    "softmax": (SOFTMAX, ((300, 400),)),
    "columns": ("def f(float(N,D) x, float(D) g) -> (y) { y(n,d) = x(n,d) * g(d) * g(d) }", ((500, 300), (300,))),
    "rows of a table": (
        "def f(float(E,D) T, int32(B,K) I) -> (O) { O(b,d) +=! T(I(b,k),d) }",
        ((100, 64), (60, 20)),
    ),
    "convolution": (
        "def f(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) { O(n,f,h,w) +=! I(n,c,h+i,w+j) * K(f,c,i,j) }",
        ((4, 8, 20, 20), (8, 8, 3, 3)),
    ),
    "recurrence": (
        (
            "def f(float(T,B,D) x, float(B,D) a) -> (h) "
            "{ h(0,b,d) = x(0,b,d) for t in 1:T { h(t,b,d) = a(b,d) * h(t-1,b,d) + x(t,b,d) } }"
        ),
        ((40, 30, 50), (30, 50)),
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_cores_that_share_gradients_compute_the_same_bits(name: str) -> None:
    text, shapes = LARGE[name]
    f = tc.define(text).single()
    rng = np.random.default_rng(0)
    types = {tensor.name: tensor.type for tensor in f.program.tensors}
    arguments = [
        rng.standard_normal(shape).astype(np.float32)
        if types[own].is_floating
        else rng.integers(0, 100, shape, np.int32)
        for own, shape in zip(f.program.arguments, shapes, strict=True)
    ]
    (shape,) = f.output_shapes(*arguments).values()
    values = (*arguments, rng.standard_normal(shape).astype(np.float32))
    gradient = f.gradient()
    alone, *others = bits_by_threads(gradient, values)
    assert "parallel_for" in str(gradient.compile(*values, options=tc.CpuOptions(threads=2)).source)
    assert all(own == alone for own in others)
