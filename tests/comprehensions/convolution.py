"""Convolutions: plain, strided, padded, dilated, grouped, in one to three dimensions, and their gradients."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, Integers, at, indices, integers, normal, scalar_size, uniform
from tests.comprehensions.formulas import Floats, convolution, convolution_gradients, grouped_convolution

_PLANE = "N C F H W KH KW"
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
        "conv1d",
        "paper, Section 3.1 (written there with '=', which reduces nothing)",
        "def conv1d(float(M) I, float(N) K) -> (O) { O(i) +=! K(x) * I(i + x) }",
        {"I": normal("M"), "K": normal("N")},
        lambda i, k: (np.correlate(i, k, mode="valid"),),
        at("M N", 1024, 9),
        (at("M N", 1, 1), at("M N", 129, 7), at("M N", 7, 7)),
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
        terms=("KH", "KW"),
    ),
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
        terms=("C", "KH", "KW"),
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
        terms=("C", "KW"),
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
        terms=("N", "R", "T"),
        note="C cut from 100 to 1/8",
    ),
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
        terms=("K",),
    ),
)
