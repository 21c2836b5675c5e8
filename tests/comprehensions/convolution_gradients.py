"""Gradients of convolutions, with the domains that keep them inside."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal
from tests.comprehensions.formulas import Floats, convolution_gradients


def _gradients(data: Floats | None, weight: Floats | None, gradient: Floats) -> tuple[Floats, Floats]:
    """Both gradients; a missing operand does not influence the gradient that is asked for."""
    height, width = gradient.shape[2:]
    if weight is None:
        assert data is not None
        weight = np.zeros((gradient.shape[1], data.shape[1], data.shape[2] - height + 1, data.shape[3] - width + 1))
    if data is None:
        data = np.zeros((len(gradient), weight.shape[1], height + weight.shape[2] - 1, width + weight.shape[3] - 1))
    return convolution_gradients(data, weight, gradient)


def _transposed(gradient: Floats, weight: Floats) -> Floats:
    """The gradient of a convolution of stride 2 in one dimension, through a dummy second dimension."""
    batch, _, length = gradient.shape
    size = weight.shape[2]
    data = np.zeros((batch, weight.shape[1], 2 * (length - 1) + size, 1))
    return convolution_gradients(data, weight[..., None], gradient[..., None], stride=2)[0][..., 0]


CASES = (
    Case(
        "convolution_data_gradient",
        "layers.yaml, convolution_strided grad; python/tests/test_tc.py, convolution_igrad: with its domain",
        """
        def convolution_igrad(float(M,C,KH,KW) W1, float(N,M,OH,OW) d_O) -> (d_I)
        {
            d_I(n, c, h, w) +=! d_O(n, r_m, h - r_kh, w - r_kw) * W1(r_m, c, r_kh, r_kw)
                where h in 0:OH+KH-1, w in 0:OW+KW-1, h - r_kh in 0:OH, w - r_kw in 0:OW
        }
        """,
        {"W1": normal("M", "C", "KH", "KW"), "d_O": normal("N", "M", "OH", "OW")},
        lambda weight, gradient: (_gradients(None, weight, gradient)[0],),
        at("N C M OH OW KH KW", 2, 4, 8, 14, 14, 3, 3),
        (at("N C M OH OW KH KW", 1, 1, 1, 1, 1, 1, 1), at("N C M OH OW KH KW", 2, 3, 5, 7, 11, 3, 2)),
        even_sizes=at("N C M OH OW KH KW", 24, 40, 4, 10, 2, 3, 3),
        terms=("M", "KH", "KW"),
    ),
    Case(
        "convolution_weight_gradient",
        "python/tests/test_tc.py, convolution_wgrad: with its domain",
        """
        def convolution_wgrad(float(N,C,H,W) I, float(N,M,OH,OW) d_O) -> (d_W1)
        {
            d_W1(m, c, kh, kw) +=! d_O(r_n, m, r_h - kh, r_w - kw) *  I(r_n, c,  r_h,  r_w)
                where kh in 0:H-OH+1, kw in 0:W-OW+1, r_h - kh in 0:OH, r_w - kw in 0:OW
        }
        """,
        {"I": normal("N", "C", "H", "W"), "d_O": normal("N", "M", "OH", "OW")},
        lambda data, gradient: (_gradients(data, None, gradient)[1],),
        at("N C M H W OH OW", 2, 4, 8, 16, 16, 14, 14),
        (at("N C M H W OH OW", 1, 1, 1, 1, 1, 1, 1), at("N C M H W OH OW", 2, 3, 5, 9, 12, 7, 11)),
        even_sizes=at("N C M H W OH OW", 4, 40, 24, 14, 6, 12, 4),
        terms=("N", "OH", "OW"),
    ),
    Case(
        "convolution_gradients",
        "docs/.../autograd_with_tc.rst, convolution_grad: guarded with ternaries, and the gradient of the bias",
        """
        def convolution_grad(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(N, M, OH, OW) d_O)
        -> (d_I, d_W1, d_B) {
           d_I(n, c,  h,  w) +=! h >= r_kh && h - r_kh < OH && w >= r_kw && w - r_kw < OW
                ? d_O(n, r_m, h - r_kh, w - r_kw) * W1(r_m, c, r_kh, r_kw) : 0.0
                where h in 0:H, w in 0:W
          d_W1(m, c, kh, kw) +=! d_O(r_n, m, r_h, r_w) * I(r_n, c, r_h + kh, r_w + kw)
                where kh in 0:KH, kw in 0:KW
          d_B(m) +=! d_O(n, m, h, w)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("M", "C", "KH", "KW"), "d_O": normal("N", "M", "OH", "OW")},
        lambda data, weight, gradient: (
            *convolution_gradients(data, weight, gradient),
            gradient.sum(axis=(0, 2, 3)),
        ),
        at("N C M H W KH KW OH OW", 2, 4, 8, 16, 16, 3, 3, 14, 14),
        (at("N C M H W KH KW OH OW", 2, 3, 5, 9, 12, 3, 2, 7, 11),),
        even_sizes=at("N C M H W KH KW OH OW", 24, 8, 8, 12, 4, 3, 3, 10, 2),
        terms=("N", "M", "OH", "OW"),
    ),
    Case(
        "strided_convolution_data_gradient",
        "layers.yaml, convolution_strided grad: a transposed convolution of stride 2",
        """
        def transposed(float(N,M,OH) d_O, float(M,C,KH) W1) -> (d_I) {
            d_I(n, c, h) +=! d_O(n, m, o) * W1(m, c, h - 2 * o) where h in 0:2*OH+KH-2, h - 2 * o in 0:KH
        }
        """,
        {"d_O": normal("N", "M", "OH"), "W1": normal("M", "C", "KH")},
        lambda gradient, weight: (_transposed(gradient, weight),),
        at("N M C OH KH", 2, 8, 4, 32, 5),
        (at("N M C OH KH", 1, 1, 1, 1, 2), at("N M C OH KH", 2, 3, 5, 13, 3)),
        even_sizes=at("N M C OH KH", 24, 8, 40, 11, 4),
        terms=("M", "KH"),
    ),
    Case(
        "gradient_of_conv1d",
        "the convolution gradient of the language's description",
        "def dconv(float(M) dy, float(K) w, float(N) like) -> (dx) {"
        " dx(r) +=! dy(r-k) * w(k) where r in 0:N, r-k in 0:M }",
        {"dy": normal("M"), "w": normal("K"), "like": normal("N")},
        lambda dy, w, like: (np.convolve(dy, w, mode="full")[: len(like)],),
        at("M K N", 256, 9, 264),
        (at("M K N", 1, 1, 1), at("M K N", 123, 7, 129), at("M K N", 13, 5, 7)),
        even_sizes=at("M K N", 232, 9, 240),
        terms=("K",),
    ),
)
