"""Least values and where they are, in one and in two passes."""

from __future__ import annotations

import numpy as np

from tests.comprehensions.case import Case, Integers, Maker, at, indices, integers, normal, scalar
from tests.comprehensions.formulas import Floats

_NEAREST_CODE = """
# mindis as a single kernel will require grid synchronization to run efficiently
def mindis(float(M, 256) L, uint8(N, M) Codes) -> (S, v, min_idx) {
          S(n) +=! L(r_m, int32(Codes(n, r_m)))
          v  min=! S(r_n)
    min_idx  min=! (S(r_n) == v) ? r_n : N
}
def reduce_codes(float(M, 256) L, uint8(N, M) Codes) -> (S) {
    S(n) +=! L(r_m, int32(Codes(n, r_m)))
}
def min_2d(float(N) S) -> (v) {
    v min=! S(r_n)
}
def argmin_2d(float(N) S, float v) -> (min_idx) {
    min_idx min=! (S(r_n) == v) ? r_n : N
}
"""
_NEAREST_CODE_STAGED = """
def min_2d(float(D, NBYD) S) -> (V) {
    V(d) min=! S(d, r_nbyd)
}
def min_1d(float(D) V) -> (v) {
    v min=! V(r_d)
}
def argmin_2d(float(D, NBYD) S, float v) -> (MinIdx) {
    MinIdx(d) min=!
        (S(d, r_nbyd) == v) ? d * NBYD + r_nbyd : NBYD * D
}
def argmin_1d(float(N) S, int32(D) MinIdx) -> (min_idx) {
    min_idx min=! (MinIdx(r_d) < N) ? r_d : N
}
"""
_NEAREST_CODES = """
def mindis(float(K, M, 256) L, uint8(N, M) Codes) -> (S, V, MinIdx) {
         S(k, n)   +=!  L(k, r_m, int32(Codes(n, r_m)))
         V(k)    min=!  S(k, r_n)
    MinIdx(k)    min=! (S(k, r_n) == V(k)) ? r_n : N
}
"""
_NEAREST_CODES_STAGED = """
def min_2d(float(K, D, NBYD) S) -> (V2) {
    V2(k, d) min=! S(k, d, r_nbyd)
}
def min_1d(float(K, D) V2) -> (V) {
    V(k) min=! V2(k, r_d)
}
def argmin_2d(float(K, D, NBYD) S, float(K) V) -> (MinIdx2) {
    MinIdx2(k, d) min=!
        (S(k, d, r_nbyd) == V(k)) ? d * NBYD + r_nbyd : NBYD * D
}
def argmin_1d(float(K, N) S, int32(K, D) MinIdx2) -> (MinIdx) {
    MinIdx(k) min=! (MinIdx2(k, r_d) < N) ? r_d : N
}
"""
_NEAREST_SOURCE = "python/examples/min_distance.py"


def _distances(table: Floats, codes: Integers) -> Floats:
    return np.asarray(table[np.arange(len(table)), codes].sum(axis=1), dtype=np.float64)


def _first_where_equal(values: Floats, sought: float | Floats, otherwise: int) -> Integers:
    """Least index along the last axis where the value is the one sought."""
    size = values.shape[-1]
    equal = values == np.expand_dims(np.asarray(sought), -1)
    return np.asarray(np.where(equal, np.arange(size), otherwise).min(axis=-1, initial=otherwise))


def _staged_argmin(values: Floats, sought: Floats, width: int) -> Integers:
    """Least flat index per row of blocks where the value is the one sought, or the number of all values."""
    blocks = values.shape[-2]
    first = _first_where_equal(values, sought, width)
    return np.where(first == width, blocks * width, np.arange(blocks) * width + first)


def _small(*shape: str | int) -> Maker:
    """Few different values, all exact, so that extrema are attained more than once."""
    return integers(0, 9, *shape, dtype="float32")


CASES = (
    Case(
        "nearest_code",
        f"{_NEAREST_SOURCE}, mindis",
        _NEAREST_CODE,
        {"L": _small("M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda table, codes: (
            _distances(table, codes),
            np.asarray(_distances(table, codes).min()),
            np.asarray(_distances(table, codes).argmin()),
        ),
        at("N M", 1000, 32),
        (at("N M", 1, 1), at("N M", 129, 7)),
        definition="mindis",
        undecided=("min_idx",),
    ),
    Case(
        "nearest_code_distances",
        f"{_NEAREST_SOURCE}, reduce_codes",
        _NEAREST_CODE,
        {"L": normal("M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda table, codes: (_distances(table, codes),),
        at("N M", 1000, 32),
        (at("N M", 129, 7), at("N M", 3, 0)),
        definition="reduce_codes",
        terms=("M",),
    ),
    Case(
        "minimum",
        f"{_NEAREST_SOURCE}, min_2d",
        _NEAREST_CODE,
        {"S": normal("N")},
        lambda s: (s.min(initial=np.inf),),
        at("N", 1000),
        (at("N", 1), at("N", 129), at("N", 0)),
        definition="min_2d",
    ),
    Case(
        "argument_of_minimum",
        f"{_NEAREST_SOURCE}, argmin_2d",
        _NEAREST_CODE,
        # The one sought is at none, one or a few places, all over.
        {"S": indices("N", "N", dtype="float32"), "v": scalar(3.0)},
        lambda s, v: (_first_where_equal(s, v, len(s)),),
        at("N", 1000),
        (at("N", 1), at("N", 129)),
        definition="argmin_2d",
    ),
    Case(
        "minimum_of_blocks",
        f"{_NEAREST_SOURCE}, the staged min_2d",
        _NEAREST_CODE_STAGED,
        {"S": normal("D", "NBYD")},
        lambda s: (s.min(axis=1),),
        at("D NBYD", 1000, 100),
        (at("D NBYD", 7, 129),),
        definition="min_2d",
    ),
    Case(
        "minimum_of_minima",
        f"{_NEAREST_SOURCE}, the staged min_1d",
        _NEAREST_CODE_STAGED,
        {"V": normal("D")},
        lambda v: (v.min(),),
        at("D", 1000),
        (at("D", 7),),
        definition="min_1d",
    ),
    Case(
        "argument_of_minimum_of_blocks",
        f"{_NEAREST_SOURCE}, the staged argmin_2d",
        _NEAREST_CODE_STAGED,
        {"S": _small("D", "NBYD"), "v": scalar(0.0)},
        lambda s, v: (_staged_argmin(s, np.full(len(s), v), s.shape[1]),),
        at("D NBYD", 1000, 100),
        (at("D NBYD", 13, 7), at("D NBYD", 1, 1)),
        definition="argmin_2d",
    ),
    Case(
        "argument_of_minimum_of_minima",
        f"{_NEAREST_SOURCE}, the staged argmin_1d",
        _NEAREST_CODE_STAGED,
        {"S": normal("N"), "MinIdx": integers(90, 110, "D")},
        lambda s, index: (np.where(index < len(s), np.arange(len(index)), len(s)).min(initial=len(s)),),
        at("N D", 100, 10),
        (at("N D", 91, 7), at("N D", 129, 1)),
        even_sizes=at("N D", 96, 120),
        definition="argmin_1d",
    ),
    Case(
        "nearest_codes",
        f"{_NEAREST_SOURCE}, mindis with K tables",
        _NEAREST_CODES,
        {"L": _small("K", "M", 256), "Codes": integers(0, 256, "N", "M", dtype="uint8")},
        lambda tables, codes: (
            np.stack([_distances(table, codes) for table in tables]),
            np.stack([_distances(table, codes).min() for table in tables]),
            np.stack([_distances(table, codes).argmin() for table in tables]),
        ),
        at("K N M", 16, 10000, 32),
        (at("K N M", 3, 129, 7),),
        undecided=("MinIdx",),
        note="N cut from 100000 to 1/10",
    ),
    Case(
        "minima_of_blocks",
        f"{_NEAREST_SOURCE}, min_2d and min_1d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": normal("K", "D", "NBYD")},
        lambda s: (s.min(axis=2),),
        at("K D NBYD", 16, 1000, 100),
        (at("K D NBYD", 3, 7, 129),),
        definition="min_2d",
    ),
    Case(
        "arguments_of_minima_of_blocks",
        f"{_NEAREST_SOURCE}, argmin_2d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": _small("K", "D", "NBYD"), "V": integers(0, 3, "K", dtype="float32")},
        lambda s, v: (_staged_argmin(s, np.broadcast_to(v[:, None], s.shape[:2]), s.shape[2]),),
        at("K D NBYD", 16, 1000, 100),
        (at("K D NBYD", 3, 7, 13),),
        definition="argmin_2d",
    ),
    Case(
        "arguments_of_minima_of_minima",
        f"{_NEAREST_SOURCE}, min_1d and argmin_1d with K tables",
        _NEAREST_CODES_STAGED,
        {"S": normal("K", "N"), "MinIdx2": integers(90, 110, "K", "D")},
        lambda s, index: (
            np.where(index < s.shape[1], np.arange(index.shape[1]), s.shape[1]).min(axis=1, initial=s.shape[1]),
        ),
        at("K N D", 16, 1000, 1000),
        (at("K N D", 3, 91, 7),),
        even_sizes=at("K N D", 120, 96, 120),
        definition="argmin_1d",
    ),
)
