"""Coherence of the rows of segments: gathers under conditions, triangles and prefix sums."""

from __future__ import annotations

import itertools

import numpy as np
import numpy.typing as npt

from tests.comprehensions.case import Array, Case, Integers, Sizes, at, integers, normal
from tests.comprehensions.formulas import Floats

_COHERENCE = """
# a scan, written as K reductions
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


CASES = (
    Case(
        "prefix_sums",
        f"{_COHERENCE_SOURCE}, make_idx",
        _COHERENCE,
        {"Segments": integers(0, 100, "K")},
        lambda segments: (np.concatenate([[0], np.cumsum(segments)]),),
        at("K", 4),
        (at("K", 1), at("K", 129), at("K", 0)),
        even_sizes=at("K", 119),
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
        even_sizes=at("N C K MAX_L", 576, 24, 24, 24),
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
)
