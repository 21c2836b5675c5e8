"""Grouped, masked, sampled and otherwise unusual convolutions."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, Integers, at, indices, integers, normal, uniform
from tests.comprehensions.formulas import Floats, convolution, grouped_convolution

_GROUPS = "N G C F H W KH KW"
_GROUPED_INPUTS = {
    "I": normal("N", "G", "C", "H", "W"),
    "W1": normal("G", "F", "C", "KH", "KW"),
    "B": normal("G", "F"),
}


def _skewed(data: Floats, weight: Floats) -> Floats:
    """Samples of the dense convolution at rows ``2 h + 3 w`` and columns ``2 w``."""
    dense = convolution(data, weight)
    columns = np.arange((dense.shape[3] + 1) // 2)
    rows = np.arange((dense.shape[2] - 1 - 3 * columns[-1]) // 2 + 1)
    return dense[:, :, 2 * rows[:, None] + 3 * columns[None, :], 2 * columns[None, :]]


def _perforated(data: Floats, weight: Floats, index: Integers) -> Floats:
    """Samples of the dense convolution at the diagonal places ``(index, index)`` of each image."""
    dense = convolution(data, weight)
    images = np.arange(len(data))[:, None]
    return dense[images, :, index, index].transpose(0, 2, 1)


def _folded(weight: Floats, channels: int) -> Floats:
    """The weights of the channels that ``kc % c`` names, summed over every divisor ``c`` below ``channels``."""
    folded = np.zeros((len(weight), channels, *weight.shape[2:]))
    for divisor in range(1, channels):
        for remainder in range(divisor):
            folded[:, remainder] += weight[:, remainder::divisor].sum(axis=1)
    return folded


def _products_of_windows(data: Floats, weight: Floats) -> Floats:
    """Product instead of sum over all terms of a convolution."""
    windows = np.lib.stride_tricks.sliding_window_view(data, weight.shape[2:], axis=(2, 3))
    of_data = np.asarray(windows.prod(axis=(1, 4, 5)), dtype=np.float64)
    of_weight = np.asarray(weight.prod(axis=(1, 2, 3)), dtype=np.float64)
    return of_data[:, None] * of_weight[None, :, None, None]


def _depthwise_and_outer_product(data: Floats, other: Floats, weight: Floats) -> tuple[Floats, Floats]:
    channels = other.shape[1]
    blurred = convolution(other, np.broadcast_to(weight, (channels, 1, *weight.shape)), groups=channels)
    height, width = np.minimum(data.shape[2:], blurred.shape[2:])
    return blurred, np.einsum(
        "nahw,nbhw->ab", data[:, :, :height, :width], blurred[:, :, :height, :width], optimize=True
    )


CASES = (
    Case(
        "grouped_convolution",
        "paper, Section 7 (gconv), with the bias of the public library, B(G,F)",
        """
        def gconv(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1,
                  float(G,F) B) -> (O) {
            O(n,g,o,h,w) +=! I(n,g,i, h + kh, w + kw)
                * W1(g,o,i,kh,kw)
            O(n,g,o,h,w) = O(n,g,o,h,w) + B(g,o)
        }
        """,
        _GROUPED_INPUTS,
        lambda data, weight, bias: (grouped_convolution(data, weight, bias),),
        at(_GROUPS, 4, 32, 16, 16, 14, 14, 3, 3),
        (at(_GROUPS, 1, 1, 1, 1, 1, 1, 1, 1), at(_GROUPS, 2, 3, 2, 5, 7, 11, 3, 2)),
        even_sizes=at(_GROUPS, 24, 8, 4, 12, 6, 6, 3, 3),
        terms=("C", "KH", "KW"),
        note="N cut from 32 to 1/8",
    ),
    Case(
        "grouped_convolution_strided",
        "tc/library/group_convolution.h; layers.yaml, group_convolution_strided",
        """
        def group_convolution(float(N,G,C,H,W) I, float(G,F,C,KH,KW) W1, float(G,F) B)
        -> (O)
        {
          O(n, g, f, h, w) +=!
            I(n, g, c, 2 * h + kh, 2 * w + kw) * W1(g, f, c, kh, kw)
          O(n, g, f, h, w) = O(n, g, f, h, w) + B(g, f)
        }
        """,
        _GROUPED_INPUTS,
        lambda data, weight, bias: (grouped_convolution(data, weight, bias, stride=2),),
        at(_GROUPS, 4, 32, 16, 16, 14, 14, 3, 3),
        (at(_GROUPS, 2, 3, 2, 5, 7, 11, 3, 2),),
        even_sizes=at(_GROUPS, 24, 8, 4, 12, 9, 9, 3, 3),
        terms=("C", "KH", "KW"),
        note="N cut from 32 to 1/8",
    ),
    Case(
        "grouped_convolution_transposed_weight",
        "test_core.cc, GroupConvolution",
        """
        def fun(float(N, G, C, H, W) I1, float(G, C, F, KH, KW) W1) -> (O1) {
            O1(n, g, f, h, w) +=! I1(n, g, r_c, h + r_kh, w + r_kw) * W1(g, r_c, f, r_kh, r_kw)
        }
        """,
        {"I1": normal("N", "G", "C", "H", "W"), "W1": normal("G", "C", "F", "KH", "KW")},
        lambda data, weight: (
            grouped_convolution(data, weight.transpose(0, 2, 1, 3, 4), np.zeros(weight.shape[0] * weight.shape[2])),
        ),
        at(_GROUPS, 2, 4, 4, 4, 9, 9, 3, 3),
        (at(_GROUPS, 2, 3, 2, 5, 7, 11, 3, 2),),
        even_sizes=at(_GROUPS, 24, 8, 4, 12, 6, 6, 3, 3),
        terms=("C", "KH", "KW"),
    ),
    Case(
        "skewed_convolution",
        "test_inference.cc, WeirdConv",
        """
        def fun(float(B,IP,H,W) input, float(OP,IP,KH,KW) weight) -> (output) {
          output(b, op, h, w) +=! input(b, ip, 2 * h + 3 * w + kh, 2 * w + kw) *
                                 weight(op, ip, kh, kw)
        }
        """,
        {"input": normal("B", "IP", "H", "W"), "weight": normal("OP", "IP", "KH", "KW")},
        lambda data, weight: (_skewed(data, weight),),
        at("B IP OP H W KH KW", 2, 3, 4, 28, 14, 3, 3),
        (at("B IP OP H W KH KW", 1, 2, 3, 29, 13, 2, 3),),
        even_sizes=at("B IP OP H W KH KW", 24, 4, 40, 34, 9, 3, 3),
        terms=("IP", "KH", "KW"),
    ),
    Case(
        "masked_convolution",
        "python/examples/masked_conv.py",
        """
        def masked_convolve(float(B, C, H, W) Input,
                            float(F, C, K, K) Weights,
                            uint8(F, C) Mask) -> (Output) {
            Output(b, f, h, w) +=! (Mask(f, r_c) == 1) ?
                fmax(0.0, Input(b, r_c, h + r_k1, w + r_k2)) *
                Weights(f, r_c, r_k1, r_k2) :
                0.0
        }
        """,
        {
            "Input": normal("B", "C", "H", "W"),
            "Weights": normal("F", "C", "K", "K"),
            "Mask": integers(0, 2, "F", "C", dtype="uint8"),
        },
        lambda data, weight, mask: (convolution(np.maximum(data, 0), weight * mask[:, :, None, None]),),
        at("B C F H W K", 4, 128, 32, 28, 28, 1),
        (at("B C F H W K", 2, 5, 3, 11, 7, 3),),
        even_sizes=at("B C F H W K", 24, 24, 40, 12, 4, 1),
        terms=("C", "K", "K"),
        note="B cut from 32 to 1/8, H and W from 56 to 1/2",
    ),
    Case(
        "perforated_convolution",
        "test_cuda_mapper.cc, PerforatedConvolution",
        """
        def perforatedConvolution(float(N, C, H, W) input, float(M, C, KH, KW) weights,
                                  int32(N, L) index) -> (output) {
          output(n, m, l) +=! input(n, c, index(n, l) + kh, index(n, l) + kw) * weights(m, c, kh, kw) where l in 0:L
         }
        """,
        {
            "input": normal("N", "C", "H", "W"),
            "weights": normal("M", "C", "KH", "KW"),
            "index": indices("S", "N", "L"),
        },
        lambda data, weight, index: (_perforated(data, weight, index),),
        at("N C M H W KH KW L S", 2, 4, 4, 16, 16, 3, 3, 11, 14),
        (at("N C M H W KH KW L S", 3, 2, 5, 7, 11, 3, 2, 13, 5),),
        even_sizes=at("N C M H W KH KW L S", 24, 4, 40, 16, 16, 3, 3, 12, 14),
        terms=("C", "KH", "KW"),
        note="S bounds the places so that every window stays inside",
    ),
    Case(
        "local_sparse_convolution",
        "test_cuda_mapper.cc, ModulusVariableRHS",
        """
        def local_sparse_convolution(float(N, C, H, W) I, float(O, KC, KH, KW) W1) -> (O1) {
          O1(n, o, h, w) +=! I(n, kc % c, h + kh, w + kw) * W1(o, kc, kh, kw) where c in 1:C
        }
        """,
        {"I": normal("N", "C", "H", "W"), "W1": normal("O", "KC", "KH", "KW")},
        lambda data, weight: (convolution(data, _folded(weight, data.shape[1])),),
        at("N C O KC H W KH KW", 2, 4, 4, 8, 14, 14, 3, 3),
        (at("N C O KC H W KH KW", 1, 5, 3, 7, 7, 11, 3, 2),),
        even_sizes=at("N C O KC H W KH KW", 24, 5, 8, 4, 14, 6, 3, 3),
        terms=("C", "KC", "KH", "KW"),
    ),
    Case(
        "product_convolution",
        "test_python/layers/test_multiply_reduction.py",
        """
        def conv_mult(float(N,C,H,W) I, float(M,C,KH,KW) W1) -> (O) {
            O(n, m, h, w) *=! I(n, c, h + kh, w + kw) * W1(m, c, kh, kw)
        }
        """,
        {
            "I": uniform(0.9, 1.1, "N", "C", "H", "W"),
            "W1": uniform(0.9, 1.1, "M", "C", "KH", "KW"),
        },
        lambda data, weight: (_products_of_windows(data, weight),),
        at("N C M H W KH KW", 8, 10, 10, 24, 24, 7, 7),
        (at("N C M H W KH KW", 1, 3, 5, 7, 11, 3, 2),),
        even_sizes=at("N C M H W KH KW", 24, 4, 8, 18, 8, 7, 7),
        terms=("C", "KH", "KW"),
        note="N cut from 64 to 1/8",
    ),
    Case(
        "depthwise_and_outer_product",
        "test_tc_mapper_bugs.cc, MinInUpperBound",
        """
        def graph2(float(N, C, H, W) I, float(N, C, R, T) J, float(KH, KW) W1) -> (O, Out) {
              O(n, c, h, w) +=! J(n,  c, h + r_kh, w + r_kw) * W1(r_kh, r_kw)
            Out(c0, c1)     +=! I(n, c0,        h,        w) *  O(   n,   c1, h, w)
        }
        """,
        {"I": normal("N", "C", "H", "W"), "J": normal("N", "C", "R", "T"), "W1": normal("KH", "KW")},
        _depthwise_and_outer_product,
        at("N C H W R T KH KW", 1, 12, 184, 184, 186, 186, 3, 3),
        (
            at("N C H W R T KH KW", 2, 3, 7, 11, 6, 14, 3, 2),
            at("N C H W R T KH KW", 1, 2, 5, 3, 11, 7, 1, 1),
        ),
        even_sizes=at("N C H W R T KH KW", 24, 24, 12, 4, 14, 6, 3, 3),
        terms=("N", "R", "T"),
        note="C cut from 100 to 1/8",
    ),
)
