"""Attention, interpolation and smoothing."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Array, Case, Maker, at, normal, scalar
from tests.comprehensions.formulas import Floats, attention

_UPSAMPLE = """
def upsample(
    float(N, C, H, W) X, float(1) rheight, float(1) rwidth, float(1) height, float(1) width)
    -> (output, h1, w1, h1r, w1r, h1p, w1p, h1lambda, h0lambda, w1lambda, w0lambda)
{
    h1r(i) = rheight(0) * i where i in 0:H
    h1(i) = int32(h1r(i)) where i in 0:H
    h1p(i) = (h1(i) < (height(0) - 1)) ? 1 : 0 where i in 0:H
    h1lambda(i) = h1r(i) - h1(i) where i in 0:H
    h0lambda(i) = 1.0 - h1lambda(i) where i in 0:H

    w1r(j) = rwidth(0) * j where j in 0:W
    w1(j) = int32(w1r(j)) where j in 0:W
    w1p(j) = (w1(j) < (width(0) - 1)) ? 1 : 0 where j in 0:W
    w1lambda(j) = w1r(j) - w1(j) where j in 0:W
    w0lambda(j) = 1.0 - w1lambda(j) where j in 0:W

    # Maybe: split kernels here if fusion does not occur

    output(n, c, i, j) +=! h0lambda(i) * (w0lambda(j) * X(n, c, h1(i), w1(j)) +
        w1lambda(j) * X(n, c, h1(i), w1(j) + w1p(j))) +
        h1lambda(i) * (w0lambda(j) * X(n, c, h1(i) + h1p(i), w1(j)) +
        w1lambda(j) * X(n, c, h1(i) + h1p(i), w1(j) + w1p(j)))
      where i in 0:H, j in 0:W
}
"""


def _ratio(of: str) -> Maker:
    """3 / 7 and 7 / 15 at the sizes of the original: no multiple of it that is used is an integer but for rounding."""
    return lambda rng, sizes: np.array([(sizes[of] - 1) / (2 * sizes[of] - 1)], np.float32)


def _bilinear(
    data: Floats, row_scale: Floats, column_scale: Floats, height: Floats, width: Floats
) -> tuple[Array, ...]:
    rows, columns = (
        scale[0] * np.arange(n) for scale, n in zip((row_scale, column_scale), data.shape[2:], strict=True)
    )
    row, column = rows.astype(np.int32), columns.astype(np.int32)
    row_step, column_step = (row < height[0] - 1).astype(np.int32), (column < width[0] - 1).astype(np.int32)
    padded = np.pad(data, ((0, 0), (0, 0), (0, 1), (0, 1)), mode="edge")
    along = (1 - (columns - column)) * padded[..., column] + (columns - column) * padded[..., column + column_step]
    down, up = (rows - row)[:, None], (1 - (rows - row))[:, None]
    result = up * along[:, :, row] + down * along[:, :, row + row_step]
    return (
        result,
        *(row, column, rows, columns, row_step, column_step),
        *(rows - row, 1 - (rows - row), columns - column, 1 - (columns - column)),
    )


def _attention_of_one_head(query: Floats, key: Floats, value: Floats) -> tuple[Floats]:
    return (attention(query, key, value, causal=True),)


CASES = (
    Case(
        "causal_attention",
        "attention with a triangular domain",
        """
        def causal_attention(float(T,D) Q, float(T,D) K, float(T,E) V) -> (O) {
            S(i,j) +=! Q(i,d) * K(j,d)
            S(i,j) = S(i,j) * rsqrt(float(D))
            m(i) max=! S(i,j) where j in 0:i+1
            l(i) +=! exp(S(i,j) - m(i)) where j in 0:i+1
            O(i,e) +=! exp(S(i,j) - m(i)) / l(i) * V(j,e) where j in 0:i+1
        }
        """,
        {"Q": normal("T", "D"), "K": normal("T", "D"), "V": normal("T", "E")},
        _attention_of_one_head,
        at("T D E", 64, 32, 32),
        (at("T D E", 1, 1, 1), at("T D E", 13, 7, 5), at("T D E", 129, 3, 2)),
        terms=("D", "T"),
    ),
    Case(
        "attention",
        "attention of several heads",
        """
        def attention(float(H,T,D) Q, float(H,U,D) K, float(H,U,E) V) -> (O) {
            S(h,i,j) +=! Q(h,i,d) * K(h,j,d)
            m(h,i) max=! S(h,i,j) * rsqrt(float(D))
            P(h,i,j) = exp(S(h,i,j) * rsqrt(float(D)) - m(h,i))
            l(h,i) +=! P(h,i,j)
            O(h,i,e) +=! P(h,i,j) * V(h,j,e)
            O(h,i,e) = O(h,i,e) / l(h,i)
        }
        """,
        {"Q": normal("H", "T", "D"), "K": normal("H", "U", "D"), "V": normal("H", "U", "E")},
        lambda query, key, value: (attention(query, key, value, causal=False),),
        at("H T U D E", 4, 32, 32, 16, 16),
        (at("H T U D E", 1, 1, 1, 1, 1), at("H T U D E", 2, 7, 13, 5, 3)),
        even_sizes=at("H T U D E", 24, 40, 24, 12, 12),
        terms=("D", "U"),
    ),
    Case(
        "upsample_bilinear",
        "tc/examples/upsample.cc (w0lambda(i), a slip, corrected to w0lambda(j))",
        _UPSAMPLE,
        {
            "X": normal("N", "C", "H", "W"),
            "rheight": _ratio("H"),
            "rwidth": _ratio("W"),
            "height": lambda rng, sizes: np.array([sizes["H"]], np.float32),
            "width": lambda rng, sizes: np.array([sizes["W"]], np.float32),
        },
        _bilinear,
        at("N C H W", 8, 4, 4, 8),
        (at("N C H W", 2, 3, 5, 13), at("N C H W", 1, 1, 1, 1)),
    ),
    Case(
        "exponential_average",
        "scalars that are arguments and a stencil with a guard at the border",
        """
        def smooth(float(T) x, float a) -> (y) {
            y(t) = a * x(t) + (1 - a) * (t >= 1 ? x(t - 1) : x(0)) where t in 0:T
        }
        """,
        {"x": normal("T"), "a": scalar(0.25)},
        lambda x, a: (a * x + (1 - a) * np.pad(x, (1, 0), mode="edge")[:-1],),
        at("T", 128),
        (at("T", 1), at("T", 129)),
    ),
)
