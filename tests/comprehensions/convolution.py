"""Convolutions: plain, strided, padded, dilated and depthwise, in one to three dimensions."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, at, normal, scalar_size
from tests.comprehensions.formulas import convolution

_PLANE = "N C F H W KH KW"


CASES = (
    Case(
        "conv1d",
        "paper, Section 3.1 (written there with '=', which reduces nothing)",
        "def conv1d(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }",
        {"I": normal("M"), "K": normal("N")},
        lambda i, k: (np.correlate(i, k, mode="valid"),),
        at("M N", 1024, 9),
        (at("M N", 1, 1), at("M N", 129, 7), at("M N", 7, 7)),
        even_sizes=at("M N", 248, 9),
        terms=("N",),
    ),
    Case(
        "conv2d",
        "paper, Section 2; docs/source/introduction.rst; test_lang.cc",
        """
        def conv2d(float(B,IP,H,W) in,
                   float(OP,IP,KH,KW) weight) -> (out) {
            out(b,op,h,w) +=! in(b,ip, h + kh, w + kw)
                * weight(op,ip,kh,kw)
        }
        """,
        {"in": normal("B", "IP", "H", "W"), "weight": normal("OP", "IP", "KH", "KW")},
        lambda data, weight: (convolution(data, weight),),
        at("B IP OP H W KH KW", 4, 3, 8, 28, 28, 3, 3),
        (
            at("B IP OP H W KH KW", 1, 1, 1, 1, 1, 1, 1),
            at("B IP OP H W KH KW", 2, 3, 5, 7, 13, 3, 2),
            at("B IP OP H W KH KW", 0, 3, 5, 7, 13, 3, 2),
        ),
        even_sizes=at("B IP OP H W KH KW", 24, 4, 40, 14, 6, 3, 3),
        terms=("IP", "KH", "KW"),
    ),
    Case(
        "conv2d_accumulate",
        "docs/source/introduction.rst, simple 2-D convolution",
        """
        def conv(float(B,IP,H,W) input, float(OP,IP,KH,KW) weight) -> (output) {
          output(b, op, h, w) += input(b, ip, h + kh, w + kw) * weight(op, ip, kh, kw)
        }
        """,
        {"input": normal("B", "IP", "H", "W"), "weight": normal("OP", "IP", "KH", "KW")},
        lambda data, weight, output: (output + convolution(data, weight),),
        at("B IP OP H W KH KW OH OW", 2, 3, 8, 14, 14, 3, 3, 12, 12),
        (at("B IP OP H W KH KW OH OW", 2, 3, 5, 7, 13, 3, 2, 5, 12),),
        even_sizes=at("B IP OP H W KH KW OH OW", 24, 4, 40, 14, 6, 3, 3, 12, 4),
        in_out={"output": normal("B", "OP", "OH", "OW")},
        terms=("IP", "KH", "KW"),
    ),
    Case(
        "convolution_with_bias",
        "layers.yaml, convolution; docs layers_database.rst; tc/benchmarks/convolution.cc",
        """
        def convolution(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(M) B) -> (O) {
          O(n, m, h, w) +=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw)
          O(n, m, h, w) = O(n, m, h, w) + B(m)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("M", "C", "KH", "KW"), "B": normal("M")},
        lambda data, weight, bias: (convolution(data, weight, bias),),
        at("N C M H W KH KW", 32, 4, 4, 56, 56, 3, 3),
        (at("N C M H W KH KW", 1, 1, 1, 3, 3, 3, 3), at("N C M H W KH KW", 2, 3, 5, 11, 7, 2, 3)),
        even_sizes=at("N C M H W KH KW", 24, 4, 40, 14, 6, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "convolution_in_two_tensors",
        "test_compile_and_run.cc, Convolution2d (a reduction without reduction indices)",
        """
        def convolution(float(N,C,H,W) I, float(O,C,KH,KW) W1, float(O) B)
        -> (tmp, O1) {
            tmp(n, o, h, w) +=!   I(n, r_c, h + r_kh, w + r_kw) * W1(o, r_c, r_kh, r_kw)
             O1(n, o, h, w) +=! tmp(n, o, h, w) + B(o)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("O", "C", "KH", "KW"), "B": normal("O")},
        lambda data, weight, bias: (convolution(data, weight), convolution(data, weight, bias)),
        at("N C O H W KH KW", 8, 16, 6, 24, 27, 3, 3),
        (at("N C O H W KH KW", 2, 3, 5, 11, 7, 2, 3),),
        even_sizes=at("N C O H W KH KW", 24, 4, 40, 14, 6, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "convolution_transposed_weight",
        "test_core.cc, Convolution",
        """
        def fun(float(N, C, H, W) I1, float(C, F, KH, KW) W1) -> (O1) {
            O1(n, f, h, w) +=! I1(n, r_c, h + r_kh, w + r_kw) * W1(r_c, f, r_kh, r_kw)
        }
        """,
        {"I1": normal("N", "C", "H", "W"), "W1": normal("C", "F", "KH", "KW")},
        lambda data, weight: (convolution(data, weight.transpose(1, 0, 2, 3)),),
        at(_PLANE, 2, 4, 8, 14, 14, 3, 3),
        (at(_PLANE, 1, 3, 5, 7, 11, 1, 3),),
        even_sizes=at(_PLANE, 24, 4, 40, 14, 6, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "strided_convolution",
        "paper, Section 2 (sconv2d): strides as arguments",
        """
        def sconv2d(int sh, int sw, float(N,C,H,W) I,
                    float(F,C,KH,KW) W, float(F) B) -> (O) {
            O(n,f,h,w) = B(f)
            O(n,f,h,w) += I(n,c, sh * h + kh, sw * w + kw)
                * W(f,c,kh,kw)
        }
        """,
        {
            "sh": scalar_size("SH"),
            "sw": scalar_size("SW"),
            "I": normal("N", "C", "H", "W"),
            "W": normal("F", "C", "KH", "KW"),
            "B": normal("F"),
        },
        lambda sh, sw, data, weight, bias: (convolution(data, weight, bias, stride=(sh, sw)),),
        at(f"{_PLANE} SH SW", 2, 3, 8, 28, 28, 3, 3, 2, 2),
        (
            at(f"{_PLANE} SH SW", 1, 1, 1, 1, 1, 1, 1, 1, 1),
            at(f"{_PLANE} SH SW", 2, 3, 5, 13, 17, 3, 2, 2, 3),
            at(f"{_PLANE} SH SW", 1, 2, 3, 9, 9, 1, 1, 3, 5),
        ),
        even_sizes=at(f"{_PLANE} SH SW", 24, 4, 40, 25, 9, 3, 3, 2, 2),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "strided_convolution_by_number",
        "tc/library/convolution.h; layers.yaml, convolution_strided",
        """
        def convolution_strided(float(N, C, H, W) I, float(M, C, KH, KW) W1, float(M) B) -> (O) {
            O(n, m, h, w) +=! I(n, r_c, 2 * h + r_kh, 3 * w + r_kw) * W1(m, r_c, r_kh, r_kw)
            O(n, m, h, w)  = O(n, m, h, w) + B(m)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("M", "C", "KH", "KW"), "B": normal("M")},
        lambda data, weight, bias: (convolution(data, weight, bias, stride=(2, 3)),),
        at("N C M H W KH KW", 2, 4, 4, 28, 28, 3, 3),
        (at("N C M H W KH KW", 1, 1, 1, 1, 1, 1, 1), at("N C M H W KH KW", 2, 3, 5, 13, 11, 2, 3)),
        even_sizes=at("N C M H W KH KW", 24, 4, 40, 25, 12, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "dilated_convolution",
        "a convolution with holes",
        """
        def dilated(float(N,C,H,W) I, float(F,C,KH,KW) K) -> (O) {
            O(n,f,h,w) +=! I(n, c, h + 2 * kh, w + 3 * kw) * K(f,c,kh,kw)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "K": normal("F", "C", "KH", "KW")},
        lambda data, weight: (convolution(data, weight, dilation=(2, 3)),),
        at(_PLANE, 2, 3, 4, 28, 28, 3, 3),
        (at(_PLANE, 1, 1, 1, 5, 7, 3, 3), at(_PLANE, 2, 3, 5, 13, 17, 3, 2)),
        even_sizes=at(_PLANE, 24, 4, 40, 16, 10, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "padded_convolution",
        "test_inference.cc, PaddedConv: its padding and stride, written with a guarded copy",
        """
        def convolution(float(N,C,H,W) I, float(M,C,KH,KW) W1, float(M) B)
        -> (pad, tmp)
        {
          pad(n, c, h, w)  = h >= 2 && h < H + 2 && w >= 3 && w < W + 3 ? I(n, c, h - 2, w - 3) : 0.0
              where n in 0:N, c in 0:C, h in 0:H+5, w in 0:W+7
          tmp(n, m, h, w) +=! pad(n, c, 2 * h + kh, 3 * w + kw) * W1(m, c, kh, kw)
          tmp(n, m, h, w) = tmp(n, m, h, w) + B(m)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("M", "C", "KH", "KW"), "B": normal("M")},
        lambda data, weight, bias: (
            np.pad(data, ((0, 0), (0, 0), (2, 3), (3, 4))),
            convolution(np.pad(data, ((0, 0), (0, 0), (2, 3), (3, 4))), weight, bias, stride=(2, 3)),
        ),
        at("N C M H W KH KW", 2, 3, 4, 14, 14, 3, 3),
        (at("N C M H W KH KW", 1, 1, 1, 1, 1, 1, 1), at("N C M H W KH KW", 2, 3, 5, 7, 11, 2, 3)),
        even_sizes=at("N C M H W KH KW", 24, 8, 24, 20, 5, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "same_convolution",
        "padding as a domain: the border is what the guard leaves out",
        """
        def same(float(N,C,H,W) I, float(F,C,3,3) K) -> (O) {
            O(n,f,h,w) +=! I(n, c, h + kh - 1, w + kw - 1) * K(f,c,kh,kw)
                where h in 0:H, w in 0:W, h + kh - 1 in 0:H, w + kw - 1 in 0:W
        }
        """,
        {"I": normal("N", "C", "H", "W"), "K": normal("F", "C", 3, 3)},
        lambda data, weight: (convolution(data, weight, padding=1),),
        at("N C F H W", 2, 3, 4, 28, 28),
        (at("N C F H W", 1, 1, 1, 1, 1), at("N C F H W", 2, 3, 5, 7, 11)),
        even_sizes=at("N C F H W", 24, 4, 40, 12, 4),
        terms=("C",),
    ),
    Case(
        "depthwise_convolution",
        "layers.yaml, small_mobilenet: its first half",
        """
        def depthwise(float(N,C,H,W) I, float(C,KH,KW) K, float(C) B) -> (O) {
            O(n,c,h,w) +=! I(n, c, h + kh, w + kw) * K(c,kh,kw)
            O(n,c,h,w) = fmax(O(n,c,h,w) + B(c), 0)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "K": normal("C", "KH", "KW"), "B": normal("C")},
        lambda data, weight, bias: (np.maximum(convolution(data, weight[:, None], bias, groups=data.shape[1]), 0),),
        at("N C H W KH KW", 2, 16, 28, 28, 3, 3),
        (at("N C H W KH KW", 1, 1, 1, 1, 1, 1), at("N C H W KH KW", 2, 3, 7, 13, 3, 2)),
        even_sizes=at("N C H W KH KW", 24, 40, 14, 10, 3, 3),
        terms=("KH", "KW"),
    ),
    Case(
        "convolution_3d",
        "a convolution in three dimensions",
        """
        def conv3d(float(N,C,T,H,W) I, float(F,C,KT,KH,KW) K) -> (O) {
            O(n,f,t,h,w) +=! I(n, c, t + kt, h + kh, w + kw) * K(f,c,kt,kh,kw)
        }
        """,
        {"I": normal("N", "C", "T", "H", "W"), "K": normal("F", "C", "KT", "KH", "KW")},
        lambda data, weight: (convolution(data, weight),),
        at("N C F T H W KT KH KW", 2, 3, 4, 8, 12, 12, 3, 3, 3),
        (at("N C F T H W KT KH KW", 1, 2, 3, 5, 7, 11, 2, 3, 1),),
        even_sizes=at("N C F T H W KT KH KW", 24, 2, 8, 14, 6, 4, 3, 3, 3),
        terms=("C", "KT", "KH", "KW"),
    ),
    Case(
        "batched_conv1d",
        "a convolution of sequences, strided and with channels",
        """
        def conv1d(float(N,C,W) I, float(F,C,KW) K, float(F) B) -> (O) {
            O(n,f,w) = B(f)
            O(n,f,w) += I(n, c, 2 * w + kw) * K(f,c,kw)
        }
        """,
        {"I": normal("N", "C", "W"), "K": normal("F", "C", "KW"), "B": normal("F")},
        lambda data, weight, bias: (convolution(data, weight, bias, stride=2),),
        at("N C F W KW", 4, 8, 8, 128, 5),
        (at("N C F W KW", 1, 1, 1, 1, 1), at("N C F W KW", 3, 2, 5, 129, 7)),
        even_sizes=at("N C F W KW", 24, 8, 40, 27, 5),
        terms=("C", "KW"),
    ),
    Case(
        "convolution_with_reversed_kernel",
        "test_tc_mapper_bugs.cc, NestedExpressions",
        """
        def convolution(float(X) A, float(Xp) K) -> (B) {
            B(x) +=! A(xp) * K(X - 1 + x - xp) where xp in 0:X
        }
        """,
        {"A": normal("X"), "K": normal("Xp")},
        lambda a, k: (np.convolve(k, a, mode="valid"),),
        at("X Xp", 33, 65),
        (at("X Xp", 1, 7), at("X Xp", 7, 7), at("X Xp", 13, 129)),
        even_sizes=at("X Xp", 120, 239),
        terms=("X",),
    ),
)
