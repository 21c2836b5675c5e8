"""Gradients are texts that people can read: what a few of them say, and what each statement is there for."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import tc
from tests.gradient.differences import as_tuple

TEXTS = {
    "a product": (
        "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }",
        """
        def mm_gradient(float32(M, K) A, float32(K, N) B, float32(M, N) d_C) -> (d_A, d_B) {
            d_A(m, k) +=! d_C(m, n) * B(k, n) where m in 0:M, k in 0:K, n in 0:N
            d_B(k, n) +=! d_C(m, n) * A(m, k) where k in 0:K, n in 0:N, m in 0:M
        }
        """,
    ),
    "an affine layer": (
        """
        def affine(float(B,I) x, float(O,I) W, float(O) b) -> (y) {
            y(n,o) = b(o) where n in 0:B
            y(n,o) += x(n,i) * W(o,i)
        }
        """,
        """
        def affine_gradient(float32(B, I) x, float32(O, I) W, float32(O) b, float32(B, O) d_y) -> (d_x, d_W, d_b) {
            d_x(n, i) +=! d_y(n, o) * W(o, i) where n in 0:B, i in 0:I, o in 0:O
            d_W(o, i) +=! d_y(n, o) * x(n, i) where o in 0:O, i in 0:I, n in 0:B
            d_b(o) +=! d_y(n, o) where o in 0:O, n in 0:B
        }
        """,
    ),
    "a scale, which is multiplied with what is invariant first": (
        "def scale(float(N,C) x, float(N) r, float() s) -> (y) { y(n,i) = x(n,i) * r(n) * s }",
        """
        def scale_gradient(float32(N, C) x, float32(N) r, float32() s, float32(N, C) d_y) -> (d_x, d_r, d_s) {
            d_x(n, i) = s * r(n) * d_y(n, i) where n in 0:N, i in 0:C
            d_r(n) +=! d_y(n, i) * s * x(n, i) where n in 0:N, i in 0:C
            d_s() +=! d_y(n, i) * (x(n, i) * r(n)) where n in 0:N, i in 0:C
        }
        """,
    ),
    "an embedding": (
        "def emb(float(E,D) T, int32(B) I) -> (O) { O(b,d) = T(I(b),d) }",
        """
        def emb_gradient(float32(E, D) T, int32(B) I, float32(B, D) d_O) -> (d_T) {
            d_T(I(b), d) +=! d_O(b, d) where b in 0:B, d in 0:D, I(b) in 0:E
        }
        """,
    ),
    "a sum of squares": (
        "def loss(float(N) x, float(N) t) -> (l) { l +=! (x(i) - t(i)) * (x(i) - t(i)) }",
        """
        def loss_gradient(float32(N) x, float32(N) t, float32() d_l) -> (d_x, d_t) {
            d_x(i) = d_l * 2.0 * (x(i) - t(i)) where i in 0:N
            d_t(i) = -(d_l * 2.0) * (x(i) - t(i)) where i in 0:N
        }
        """,
    ),
    "the logarithm of a softmax": (
        """
        def log_softmax(float(N,D) x) -> (y) {
            m(n) max=! x(n,d)
            e(n,d) = exp(x(n,d) - m(n))
            s(n) +=! e(n,d)
            y(n,d) = x(n,d) - m(n) - log(s(n))
        }
        """,
        """
        def log_softmax_gradient(float32(N, D) x, float32(N, D) d_y) -> (d_x) {
            m(n) max=! x(n, d) where n in 0:N, d in 0:D
            e(n, d) = exp(x(n, d) - m(n)) where n in 0:N, d in 0:D
            s(n) +=! e(n, d) where n in 0:N, d in 0:D
            d_s(n) +=! -(d_y(n, d) / s(n)) where n in 0:N, d in 0:D
            d_x(n, d) = d_y(n, d) + d_s(n) * e(n, d) where n in 0:N, d in 0:D
        }
        """,
    ),
    "a loss": (
        "def loss(float(N,D) y, int32(N) t) -> (l) { l +=! -y(n,t(n)) / N }",
        """
        def loss_gradient(float32(N, D) y, int32(N) t, float32() d_l) -> (d_y) {
            d_y(n, t(n)) +=! -(d_l / float32(N)) where n in 0:N, t(n) in 0:D
        }
        """,
    ),
    "a sigmoid": (
        "def s(float(N) x) -> (y) { y(i) = 1 / (1 + exp(-x(i))) }",
        """
        def s_gradient(float32(N) x, float32(N) d_y) -> (d_x) {
            y(i) = 1.0 / (1.0 + exp(-x(i))) where i in 0:N
            d_x(i) = d_y(i) * y(i) / (1.0 + exp(-x(i))) * exp(-x(i)) where i in 0:N
        }
        """,
    ),
    "a convolution": (
        "def conv(float(C,W) I, float(F,C,KW) K) -> (O) { O(f,w) +=! I(c,w+k) * K(f,c,k) }",
        """
        def conv_gradient(float32(C, W) I, float32(F, C, KW) K, float32(F, O1) d_O) -> (d_I, d_K) {
            d_O_padded(i0, i1) = i1 >= KW - 1 && i1 < W ? d_O(i0, i1 - KW + 1) : 0.0 where i0 in 0:F, \
i1 in 0:W + KW - 1, O1 == max(W - KW + 1, 0)
            d_I(c, w) +=! d_O_padded(f, w + k) * K(f, c, KW - k - 1) where c in 0:C, w in 0:W, f in 0:F, k in 0:KW
            d_K(f, c, k) +=! d_O(f, w) * I(c, w + k) where f in 0:F, c in 0:C, k in 0:KW, w in 0:W - KW + 1
        }
        """,
    ),
    "a convolution with strides": (
        "def conv(float(W) I, float(KW) K) -> (O) { O(w) +=! I(2*w+k) * K(k) }",
        """
        def conv_gradient(float32(W) I, float32(KW) K, float32(O0) d_O) -> (d_I, d_K) {
            d_I(i0) = float32(0.0) where i0 in 0:W, O0 == max((W - KW + 2) / 2, 0)
            d_I(2 * w + k) += d_O(w) * K(k) where w in 0:(W - KW + 2) / 2, k in 0:KW
            d_K(k) +=! d_O(w) * I(2 * w + k) where k in 0:KW, w in 0:(W - KW + 2) / 2
        }
        """,
    ),
    "what is replaced": (
        "def f(float(N) A) -> (O) { O(i) = 2 * A(i)  O(i) = fmax(O(i), 0) }",
        """
        def f_gradient(float32(N) A, float32(N) d_O) -> (d_A) {
            O_0(i) = 2.0 * A(i) where i in 0:N
            d_O_1(i) = O_0(i) > 0.0 ? d_O(i) : 0.0 where i in 0:N
            d_A(i) = d_O_1(i) * 2.0 where i in 0:N
        }
        """,
    ),
}


@pytest.mark.parametrize("name", TEXTS)
def test_what_gradients_say(name: str) -> None:
    text, wanted = TEXTS[name]
    gradient = tc.define(text).single().gradient()
    assert str(gradient).strip() == inspect.cleandoc(wanted).strip()
    assert tc.define(str(gradient)).single().program == gradient.program


def test_derivations_say_what_statements_are_there_for() -> None:
    gradient = tc.define(TEXTS["a sigmoid"][0]).gradient()
    assert gradient.derivation == inspect.cleandoc(
        """
        # a value that derivatives are computed from
        y(i) = 1.0 / (1.0 + exp(-x(i))) where i in 0:N
        # adjoint of x
        d_x(i) = d_y(i) * y(i) / (1.0 + exp(-x(i))) * exp(-x(i)) where i in 0:N
        """
    )
    assert pickle.loads(pickle.dumps(gradient)).derivation == gradient.derivation
    assert tc.define(TEXTS["a sigmoid"][0]).single().derivation == ""


def test_directional_derivatives_read_as_well() -> None:
    forward = tc.define(TEXTS["a product"][0]).jvp("B")
    assert str(forward).strip() == inspect.cleandoc(
        """
        def mm_derivative(float32(M, K) A, float32(K, N) B, float32(K, N) t_B) -> (t_C) {
            t_C(m, n) +=! t_B(k, n) * A(m, k) where m in 0:M, n in 0:N, k in 0:K
        }
        """
    )


MM = TEXTS["a product"][0]
OF_INTEGERS = "def f(int32(N) x) -> (y) { y(i) = 0.5 * x(i) }"


@pytest.mark.parametrize(
    ("text", "names", "message"),
    [
        (MM, ("D",), "`D` is no argument of `mm` with a gradient: its floating tensors are A, B"),
        (MM, ("A", "A"), "`A` is named twice"),
        ("def f(int32(N) x) -> (y) { y(i) = 0.5 * x(i) }", (), "`f` has no floating tensor as an argument"),
        (
            "def f(int32(N) x) -> (y) { y(i) = 0.5 * x(i) }",
            ("x",),
            "`x` is no argument of `f` with a gradient: it has none",
        ),
        ("def f(float(N) x) -> (y) { y(i) = int32(x(i)) }", (), "`f` has no floating result"),
    ],
)
def test_what_has_no_gradient(text: str, names: tuple[str, ...], message: str) -> None:
    f = tc.define(text).single()
    for derive in (f.gradient, f.jvp):
        with pytest.raises(tc.GradientError) as raised:
            derive(*names)
        assert message in str(raised.value)


def test_ties_are_called_by_their_names() -> None:
    with pytest.raises(tc.OptionsError, match="ties must be 'split' or 'first', got 'all'"):
        tc.define(MM).gradient(ties="all")


def test_values_that_are_compared_keep_their_bits() -> None:
    """What a maximum has chosen is found again only if it is computed as it was."""
    f = tc.define(
        "def f(double(N) c, double() a, double() w) -> (m) { m max=! c(i) * a * w where i % 2 == 0 }"
    ).single()
    assert "c(i) * a * w == m" in str(f.gradient())


def test_indices_that_data_choose_have_the_extents_of_their_dimensions() -> None:
    f = tc.define(
        "def f(double(K,M) A, double(N,L,P) B, int32(R) I) -> (y) { y(r) = A(I(r),I(r)) * B(I(r),2,I(r)) }"
    ).single()
    gradient = f.gradient()
    shapes = (3, 5), (6, 4, 7)
    values = (*(np.ones(shape) for shape in shapes), np.array([2, 0, 2], np.int32), np.ones(3))
    assert tuple(own.shape for own in as_tuple(gradient(*values))) == shapes
    assert tc.define(str(gradient)).single().program == gradient.program
