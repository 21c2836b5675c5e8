"""Maxima, means and sums of windows."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, scalar_size
from tests.comprehensions.formulas import average_pool, max_pool

_MAX_OVER = (at("B C H W", 1, 1, 2, 2), at("B C H W", 2, 3, 7, 13), at("B C H W", 0, 3, 4, 6))


CASES = (
    Case(
        "max_pool_2x2",
        "paper, Section 2 (maxpool2x2)",
        """
        def maxpool2x2(float(B,C,H,W) in) -> (out) {
            out(b,c,i,j) max=! in(b,c, 2 * i + kw, 2 * j + kh)
                where kw in 0:2, kh in 0:2
        }
        """,
        {"in": normal("B", "C", "H", "W")},
        lambda data: (max_pool(data, (2, 2), (2, 2)),),
        at("B C H W", 4, 16, 32, 32),
        _MAX_OVER,
        even_sizes=at("B C H W", 24, 40, 24, 8),
    ),
    Case(
        "max_pool_2x2_accumulate",
        "docs/source/introduction.rst, simple 2-D max pooling",
        """
        def maxpool2x2(float(B,C,H,W) input) -> (output) {
          output(b,c,i,j) max= input(b,c,2*i + kw, 2*j + kh)
            where kw in 0:2, kh in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data, output: (np.maximum(output, max_pool(data, (2, 2), (2, 2))),),
        at("B C H W H2 W2", 2, 3, 16, 16, 8, 8),
        (at("B C H W H2 W2", 2, 3, 7, 13, 3, 6),),
        even_sizes=at("B C H W H2 W2", 24, 40, 24, 8, 12, 4),
        in_out={"output": normal("B", "C", "H2", "W2")},
    ),
    Case(
        "max_pool",
        "layers.yaml and layers_database.rst, maxpool",
        """
        def maxpool(float(B, C, H, W) input) -> (output) {
            output(b, c, h, w) max=! input(b, c, h * 2 + kh, w * 3 + kw) where kh in 0:3, kw in 0:4
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data: (max_pool(data, (3, 4), (2, 3)),),
        at("B C H W", 2, 8, 24, 24),
        (at("B C H W", 1, 1, 3, 4), at("B C H W", 2, 3, 7, 13)),
        even_sizes=at("B C H W", 24, 40, 25, 13),
    ),
    Case(
        "max_pool_by_arguments",
        "max pooling whose window and stride are arguments",
        """
        def maxpool(float(B, C, H, W) input, int kernel, int stride) -> (output) {
            output(b, c, h, w) max=! input(b, c, h * stride + kh, w * stride + kw)
                where kh in 0:kernel, kw in 0:kernel
        }
        """,
        {"input": normal("B", "C", "H", "W"), "kernel": scalar_size("KERNEL"), "stride": scalar_size("STRIDE")},
        lambda data, kernel, stride: (max_pool(data, (kernel, kernel), (stride, stride)),),
        at("B C H W KERNEL STRIDE", 2, 8, 24, 24, 3, 2),
        (at("B C H W KERNEL STRIDE", 1, 1, 1, 1, 1, 1), at("B C H W KERNEL STRIDE", 2, 3, 7, 13, 2, 3)),
        even_sizes=at("B C H W KERNEL STRIDE", 24, 40, 25, 9, 3, 2),
    ),
    Case(
        "average_pool",
        "layers_database.rst, writing_layers.rst, python/tests/test_tc.py, test_scalar: avgpool",
        """
        def avgpool(float(B, C, H, W) input) -> (output) {
            output(b, c, h, w) +=!
                input(b, c, h * 1 + r_kh, w * 1 + r_kw) / (2 * 2)
                where r_kh in 0:2, r_kw in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data: (average_pool(data, (2, 2), (1, 1)),),
        at("B C H W", 32, 3, 10, 10),
        (at("B C H W", 1, 1, 4, 4), at("B C H W", 2, 3, 7, 13), at("B C H W", 0, 3, 7, 13)),
        even_sizes=at("B C H W", 24, 40, 13, 5),
    ),
    Case(
        "sum_pool_accumulate",
        "layers.yaml, avgpool; test_python/test_scalar_tc.py (a sum without division or initialization)",
        """
        def avgpool(float(B, C, H, W) input) -> (output) {
          output(b, c, h, w) += input(b, c, h * 2 + kh, w * 2 + kw) where kh in 0:2, kw in 0:2
        }
        """,
        {"input": normal("B", "C", "H", "W")},
        lambda data, output: (output + 4 * average_pool(data, (2, 2), (2, 2)),),
        at("B C H W H2 W2", 32, 3, 10, 10, 5, 5),
        (at("B C H W H2 W2", 2, 3, 7, 13, 3, 6),),
        even_sizes=at("B C H W H2 W2", 24, 40, 24, 8, 12, 4),
        in_out={"output": normal("B", "C", "H2", "W2")},
    ),
    Case(
        "average_pool_by_sum",
        "docs/source/inference.rst, average_pool_2 (strided indexing with offsets)",
        "def average_pool_2(float(I) B) -> (A) { A(i) = B(2*i) + B(2*i + 1) }",
        {"B": normal("I")},
        lambda b: (b[: len(b) // 2 * 2].reshape(-1, 2).sum(axis=1),),
        at("I", 64),
        (at("I", 1), at("I", 129), at("I", 0)),
        even_sizes=at("I", 240),
    ),
    Case(
        "average_pool_by_where",
        "docs/source/inference.rst, average_pool_2 (written there with '=', which reduces nothing)",
        "def average_pool_2(float(I) B) -> (A) { A(i) +=! B(2*i + k) where k in 0:2 }",
        {"B": normal("I")},
        lambda b: (b[: len(b) // 2 * 2].reshape(-1, 2).sum(axis=1),),
        at("I", 64),
        (at("I", 7),),
        even_sizes=at("I", 240),
    ),
)
