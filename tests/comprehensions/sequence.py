"""Attention, WaveNet blocks, coherence of segments and interpolation."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from tests.comprehensions.case import Array, Case, Integers, Sizes, at, fixed, integers, normal, scalar, uniform
from tests.comprehensions.formulas import Floats, attention, convolution

_WAVENET = """
# Original data is float(B, C, RECEPTIVE_FIELD) and undergoes a
# Conv1d to become float(B, RESIDUAL_C, RECEPTIVE_FIELD)

def wavenet1(
    float(B, RESIDUAL_C, RECEPTIVE_FIELD) Data,
    float(DILATION_C, RESIDUAL_C, 2) FilterWeight,
    float(DILATION_C) FilterBias,
    float(DILATION_C, RESIDUAL_C, 2) GateWeight,
    float(DILATION_C) GateBias,
    float(RESIDUAL_C, DILATION_C) ResWeight,
    float(RESIDUAL_C) ResBias,
    float(SKIP_C, DILATION_C) SkipWeight,
    float(SKIP_C) SkipBias,
    float(DILATION_FACTOR) Dilation)
    -> (FilterOut, GateOut, NonLin, Res, Skip)
{
    FilterOut(b, dilation_c, rf)   = FilterBias(dilation_c)
        where b in 0:B, dilation_c in 0:DILATION_C, rf in 0:RECEPTIVE_FIELD
    FilterOut(b, dilation_c, rf)  += Data(b, r_residual_c, rf) * FilterWeight(dilation_c, r_residual_c, 1) +
        (
          (rf - DILATION_FACTOR >= 0) ?
            Data(b, r_residual_c, rf - DILATION_FACTOR) * FilterWeight(dilation_c, r_residual_c, 0) :
            float(0)
        )
        where rf in 0:RECEPTIVE_FIELD

    GateOut(b, dilation_c, rf)   = GateBias(dilation_c)
        where b in 0:B, dilation_c in 0:DILATION_C, rf in 0:RECEPTIVE_FIELD
    GateOut(b, dilation_c, rf)  += Data(b, r_residual_c, rf) * GateWeight(dilation_c, r_residual_c, 1) +
        (
          (rf - DILATION_FACTOR >= 0) ?
            Data(b, r_residual_c, rf - DILATION_FACTOR) * GateWeight(dilation_c, r_residual_c, 0) :
            float(0)
        )
        where rf in 0:RECEPTIVE_FIELD

    NonLin(b, dilation_c, rf)   =         tanh(FilterOut(b, dilation_c, rf))
        where rf in 0:RECEPTIVE_FIELD
    NonLin(b, dilation_c, rf)  *= 1 / (1 + exp( -GateOut(b, dilation_c, rf)))
        where rf in 0:RECEPTIVE_FIELD

       Res(b, residual_c, rf)   =   Data(b,  residual_c, rf) + ResBias(residual_c)
       Res(b, residual_c, rf)  += NonLin(b, r_dilation_c, rf) * ResWeight(residual_c, r_dilation_c)

      Skip(b, skip, rf) +=! NonLin(b, r_dilation_c, rf) * SkipWeight(skip, r_dilation_c)
        where rf in 0:RECEPTIVE_FIELD
      Skip(b, skip, rf)  = Skip(b, skip, rf) + SkipBias(skip)
        where rf in 0:RECEPTIVE_FIELD
}
"""
_WAVENET_SIZES = "B RESIDUAL_C DILATION_C SKIP_C RECEPTIVE_FIELD DILATION_FACTOR"

_WAVENET_LAYER = """
    Dilate{0}(batch, out)   =   Bias{0}(out) where batch in 0:BATCH
    Dilate{0}(batch, out)  += Weight{0}(out, r_in, r_kern) * Data{0}(batch, r_in, r_kern)
    NonLin{0}(batch, out)   = 1 / (1 + exp(-1*(Dilate{0}(batch, out))))
    NonLin{0}(batch, out)  *= tanh(Dilate{0}(batch, out + 64))

      Skip{0}(batch, skip)  =   SkipBias{0}(skip) where batch in 0:BATCH
      Skip{0}(batch, skip) += SkipWeight{0}(skip, r_in) * NonLin{0}(batch, r_in)
            where r_in in 0:IN # necessary because r_in gets into unresolved min/max
       Res{0}(batch, out)   =   ResBias{0}(  out) where batch in 0:BATCH
       Res{0}(batch, out)  += ResWeight{0}(  out, r_in) * NonLin{0}(batch, r_in)
            where r_in in 0:IN # necessary because r_in gets into unresolved min/max
       Res{0}(batch, out)   =       Res{0}(batch,  out) + NonLin{0}(batch, out)
            where out in 0:IN # necessary because out gets into unresolved min/max
"""
_WAVENET_LAYER_ARGUMENTS = """
    float(OUT, IN, KERN) Weight{0},
    float(OUT) Bias{0},
    float(BATCH, IN, KERN) Data{0},
    float(IN, IN) ResWeight{0},
    float(IN) ResBias{0},
    float(SKIP, IN) SkipWeight{0},
    float(SKIP) SkipBias{0}"""
_WAVENET_TWO_LAYERS = (
    "def wavenet2layers("
    + ",".join(_WAVENET_LAYER_ARGUMENTS.format(layer) for layer in (0, 1))
    + ")\n    -> (Res0, Dilate0, NonLin0, Skip0, Res1, Dilate1, NonLin1, Skip1)\n{"
    + "".join(_WAVENET_LAYER.format(layer) for layer in (0, 1))
    + "}"
)

_COHERENCE = """
# TODO: this is just a scan but currently implemented as K reductions
def make_idx(int32(K) Segments) -> (Idx) {
    Idx(k) +=! (r_k < k) ? Segments(r_k) : 0 where k in 0:K+1
}
def make_alpha(int32(KP1) Idx, int32(MAX_L) SegmentsMetaData) -> (Alpha) {
    # Triangular compute
    Alpha(k, max_l_1, max_l_2) = (max_l_1 >= max_l_2) ? 0.0 :
        # This computes an approximation using the maximal segment length
        ((2 == 0 || fabs(float(max_l_1 - max_l_2)) <= float(2)) ? 1.0 :
         (5 == 0 && fabs(float(max_l_1 - max_l_2)) >= float(5)) ? -1.0 : 0.0)
    *
        # Filter against the true value of Idx
        ((Idx(k) + max_l_1 < Idx(k + 1) && Idx(k) + max_l_2 < Idx(k + 1))
         ? 1.0 : 0.0)
            where k in 0:KP1-1, max_l_1 in 0:MAX_L, max_l_2 in 0:MAX_L
}
def make_counts(float(K, MAX_L, MAX_L) Alpha, int32(MAX_L) SegmentsMetaData)
        -> (PosCount, NegCount, tmpPos, tmpNeg)
{
    tmpPos(k, max_l_1) +=! (max_l_1 >= r_max_l_2) ? 0.0 :
        (Alpha(k, max_l_1, r_max_l_2) > 0.0) ? 1.0 : 0.0
            where k in 0:K, max_l_1 in 0:MAX_L, r_max_l_2 in 0:MAX_L
    PosCount(k) +=! tmpPos(k, max_l_1)
            where k in 0:K, max_l_1 in 0:MAX_L
    tmpNeg(k, max_l_1) +=! (max_l_1 >= r_max_l_2) ? 0.0 :
        (Alpha(k, max_l_1, r_max_l_2) < 0.0) ? 1.0 : 0.0
            where k in 0:K, max_l_1 in 0:MAX_L, r_max_l_2 in 0:MAX_L
    NegCount(k) +=! tmpNeg(k, max_l_1)
            where k in 0:K, max_l_1 in 0:MAX_L
}
def make_beta(float(K, MAX_L, MAX_L) Alpha,
              float(K) PosCount,
              float(K) NegCount,
              int32(MAX_L) SegmentsMetaData) -> (Beta)
{
    Beta(k, max_l_1, max_l_2) = (max_l_1 >= max_l_2) ? 0.0 :
        (Alpha(k, max_l_1, max_l_2) ==  1.0) ?  1.0 / float(PosCount(k)) :
        (Alpha(k, max_l_1, max_l_2) == -1.0) ? -1.0 / float(NegCount(k)) :
        0.0
        where k in 0:K, max_l_1 in 0:MAX_L, max_l_2 in 0:MAX_L
}
def normalize(float(N, C) Input) -> (NormData, Square) {
    Square(n)     +=! Input(n, r_c) * Input(n, r_c)
    NormData(n, c) =  Input(n,   c) / sqrt(Square(n) + 1e-12)
}
def dots(float(N, C) NormData, int32(KP1) Idx, float(K, MAX_L, MAX_L) Beta) -> (Dots) {
    # Triangular compute
    Dots(k, max_l_1, max_l_2) +=! (max_l_1 >= max_l_2) ? 0.0 :
        # Avoid out of bounds Idx computations
        ((Idx(k) + max_l_1 >= Idx(k + 1) || Idx(k) + max_l_2 >= Idx(k + 1)) ?
          0.0 :
          NormData(Idx(k) + max_l_1, r_c) * NormData(Idx(k) + max_l_2, r_c))
            where k in 0:K, max_l_1 in 0:MAX_L, max_l_2 in 0:MAX_L
}
def result(float(K, MAX_L, MAX_L) Beta, float(K, MAX_L, MAX_L) Dots) -> (O, tmpO) {
    tmpO(k, max_l_1) +=! (max_l_1 >= r_max_l_2) ? 0.0 :
        Dots(k, max_l_1, r_max_l_2) * Beta(k, max_l_1, r_max_l_2)
    O(k) +=! tmpO(k, max_l_1)
}
"""
_COHERENCE_SOURCE = "python/examples/tum.py"

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


def _causal_filter(data: Floats, weight: Floats, bias: Floats, distance: int) -> Floats:
    """A convolution of two taps that looks ``distance`` samples back."""
    return convolution(np.pad(data, ((0, 0), (0, 0), (distance, 0))), weight, bias, dilation=distance)


def _sigmoid(x: Floats) -> Floats:
    return 0.5 * (1 + np.tanh(0.5 * x))


def _wavenet(
    data: Floats,
    filter_weight: Floats,
    filter_bias: Floats,
    gate_weight: Floats,
    gate_bias: Floats,
    residual_weight: Floats,
    residual_bias: Floats,
    skip_weight: Floats,
    skip_bias: Floats,
    dilation: Floats,
) -> tuple[Floats, ...]:
    filtered = _causal_filter(data, filter_weight, filter_bias, len(dilation))
    gate = _causal_filter(data, gate_weight, gate_bias, len(dilation))
    joined = np.tanh(filtered) * _sigmoid(gate)
    residual = data + convolution(joined, residual_weight[:, :, None], residual_bias)
    return filtered, gate, joined, residual, convolution(joined, skip_weight[:, :, None], skip_bias)


def _wavenet_layer(
    weight: Floats,
    bias: Floats,
    data: Floats,
    residual_weight: Floats,
    residual_bias: Floats,
    skip_weight: Floats,
    skip_bias: Floats,
) -> tuple[Floats, ...]:
    dilated = data.reshape(len(data), -1) @ weight.reshape(len(weight), -1).T + bias
    joined = _sigmoid(dilated)
    joined[:, : dilated.shape[1] - 64] *= np.tanh(dilated[:, 64:])
    inner = joined[:, : data.shape[1]]
    residual = inner @ residual_weight.T + residual_bias + inner
    return residual, dilated, joined, inner @ skip_weight.T + skip_bias


def _wavenet_two_layers(*arguments: Floats) -> tuple[Floats, ...]:
    return (*_wavenet_layer(*arguments[:7]), *_wavenet_layer(*arguments[7:]))


def _bounds(rng: np.random.Generator, sizes: Sizes) -> Integers:
    """Where K segments of at most MAX_L rows begin, and where the last one ends."""
    lengths = rng.integers(0, sizes["MAX_L"] + 1, sizes["K"])
    return np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32)


def _later(size: int) -> npt.NDArray[np.bool_]:
    """Where the second subscript is greater than the first."""
    return np.triu(np.ones((size, size), dtype=bool), k=1)


def _segment_weights(bounds: npt.NDArray[np.int32], like: Array) -> Floats:
    """One for pairs at most two apart, the second later than the first, both inside their segment."""
    size = len(like)
    near = np.tril(_later(size), k=2).astype(np.float64)
    inside = np.arange(size) < np.diff(bounds)[:, None]
    return near * (inside[:, :, None] & inside[:, None, :])


def _segment_counts(weights: Floats, like: Array) -> tuple[Array, ...]:
    later = _later(len(like))
    positive = ((weights > 0) & later).sum(axis=2)
    negative = ((weights < 0) & later).sum(axis=2)
    return positive.sum(axis=1), negative.sum(axis=1), positive, negative


def _segment_beta(weights: Floats, positive: Floats, negative: Floats, like: Array) -> Floats:
    scale = np.where(weights == 1, 1 / positive[:, None, None], 0) - np.where(
        weights == -1, 1 / negative[:, None, None], 0
    )
    return scale * _later(len(like))


def _segment_dots(data: Floats, bounds: npt.NDArray[np.int32], beta: Floats) -> Floats:
    products = np.zeros_like(beta)
    for segment, (begin, end) in enumerate(itertools.pairwise(bounds)):
        rows = data[begin:end]
        products[segment, : len(rows), : len(rows)] = np.triu(rows @ rows.T, k=1)
    return products


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
        terms=("D", "U"),
    ),
    Case(
        "wavenet_block",
        "tc/benchmarks/wavenet.h, dilation 1",
        _WAVENET,
        {
            "Data": normal("B", "RESIDUAL_C", "RECEPTIVE_FIELD"),
            "FilterWeight": normal("DILATION_C", "RESIDUAL_C", 2),
            "FilterBias": normal("DILATION_C"),
            "GateWeight": normal("DILATION_C", "RESIDUAL_C", 2),
            "GateBias": normal("DILATION_C"),
            "ResWeight": normal("RESIDUAL_C", "DILATION_C"),
            "ResBias": normal("RESIDUAL_C"),
            "SkipWeight": normal("SKIP_C", "DILATION_C"),
            "SkipBias": normal("SKIP_C"),
            "Dilation": uniform(0, 1, "DILATION_FACTOR"),
        },
        _wavenet,
        at(_WAVENET_SIZES, 1, 32, 32, 256, 4000, 1),
        (at(_WAVENET_SIZES, 2, 3, 5, 7, 129, 2), at(_WAVENET_SIZES, 1, 4, 4, 4, 129, 32)),
        terms=("RESIDUAL_C", "DILATION_C"),
    ),
    Case(
        "wavenet_two_layers",
        "tc/examples/wavenet.cc",
        _WAVENET_TWO_LAYERS,
        {
            f"{name}{layer}": make
            for layer in (0, 1)
            for name, make in (
                ("Weight", uniform(-0.5, 0.5, "OUT", "IN", "KERN")),
                ("Bias", uniform(-1, 1, "OUT")),
                ("Data", uniform(-1, 1, "BATCH", "IN", "KERN")),
                ("ResWeight", uniform(-1, 1, "IN", "IN")),
                ("ResBias", uniform(-1, 1, "IN")),
                ("SkipWeight", uniform(-1, 1, "SKIP", "IN")),
                ("SkipBias", uniform(-1, 1, "SKIP")),
            )
        },
        _wavenet_two_layers,
        at("BATCH OUT IN KERN SKIP", 1, 128, 64, 2, 256),
        (at("BATCH OUT IN KERN SKIP", 2, 77, 13, 3, 7),),
        terms=("IN", "KERN"),
    ),
    Case(
        "prefix_sums",
        f"{_COHERENCE_SOURCE}, make_idx",
        _COHERENCE,
        {"Segments": integers(0, 100, "K")},
        lambda segments: (np.concatenate([[0], np.cumsum(segments)]),),
        at("K", 4),
        (at("K", 1), at("K", 129), at("K", 0)),
        definition="make_idx",
    ),
    Case(
        "segment_weights",
        f"{_COHERENCE_SOURCE}, make_alpha, with distances 2 and 5",
        _COHERENCE,
        {"Idx": _bounds, "SegmentsMetaData": integers(0, 2, "MAX_L")},
        lambda bounds, like: (_segment_weights(bounds, like),),
        at("K MAX_L", 4, 100),
        (at("K MAX_L", 3, 7), at("K MAX_L", 1, 1), at("K MAX_L", 0, 5)),
        definition="make_alpha",
    ),
    Case(
        "segment_counts",
        f"{_COHERENCE_SOURCE}, make_counts",
        _COHERENCE,
        {
            "Alpha": integers(-1, 2, "K", "MAX_L", "MAX_L", dtype="float32"),
            "SegmentsMetaData": integers(0, 2, "MAX_L"),
        },
        _segment_counts,
        at("K MAX_L", 4, 100),
        (at("K MAX_L", 3, 7), at("K MAX_L", 1, 1)),
        definition="make_counts",
    ),
    Case(
        "segment_scales",
        f"{_COHERENCE_SOURCE}, make_beta",
        _COHERENCE,
        {
            "Alpha": integers(-1, 2, "K", "MAX_L", "MAX_L", dtype="float32"),
            "PosCount": integers(1, 9, "K", dtype="float32"),
            "NegCount": integers(1, 9, "K", dtype="float32"),
            "SegmentsMetaData": integers(0, 2, "MAX_L"),
        },
        lambda weights, positive, negative, like: (_segment_beta(weights, positive, negative, like),),
        at("K MAX_L", 4, 100),
        (at("K MAX_L", 3, 7),),
        definition="make_beta",
    ),
    Case(
        "normalize_rows",
        f"{_COHERENCE_SOURCE}, normalize",
        _COHERENCE,
        {"Input": normal("N", "C")},
        lambda data: (data / np.linalg.norm(data, axis=1, keepdims=True), np.square(data).sum(axis=1)),
        at("N C", 400, 128),
        (at("N C", 7, 129),),
        definition="normalize",
        terms=("C",),
    ),
    Case(
        "segment_products",
        f"{_COHERENCE_SOURCE}, dots",
        _COHERENCE,
        {
            "NormData": normal("N", "C"),
            "Idx": _bounds,
            "Beta": normal("K", "MAX_L", "MAX_L"),
        },
        lambda data, bounds, beta: (_segment_dots(data, bounds, beta),),
        at("N C K MAX_L", 400, 128, 4, 100),
        (at("N C K MAX_L", 21, 5, 3, 7),),
        definition="dots",
        terms=("C",),
    ),
    Case(
        "segment_sums",
        f"{_COHERENCE_SOURCE}, result",
        _COHERENCE,
        {"Beta": normal("K", "MAX_L", "MAX_L"), "Dots": normal("K", "MAX_L", "MAX_L")},
        lambda beta, dots: (
            np.triu(beta * dots, k=1).sum(axis=(1, 2)),
            np.triu(beta * dots, k=1).sum(axis=2),
        ),
        at("K MAX_L", 4, 100),
        (at("K MAX_L", 3, 7), at("K MAX_L", 1, 1)),
        definition="result",
        terms=("MAX_L", "MAX_L"),
    ),
    Case(
        "upsample_bilinear",
        "tc/examples/upsample.cc (w0lambda(i), a slip, corrected to w0lambda(j))",
        _UPSAMPLE,
        {
            "X": normal("N", "C", "H", "W"),
            "rheight": fixed([3 / 7], "float32"),
            "rwidth": fixed([7 / 15], "float32"),
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
