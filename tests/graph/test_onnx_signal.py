"""Fourier transforms, windows and mel weights of ONNX, beside NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper

import tc
from tc.graph.onnx.functions import body_of
from tests.graph.comparison import uniform, whole
from tests.graph.one_node import check, computed, one_node

F = np.float32


def pairs(x: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs in a last dimension."""
    return np.stack((x.real, x.imag), -1).astype(F)


def complexes(*shape: int, seed: int = 0) -> np.ndarray:
    return uniform(*shape, seed=seed) + 1j * uniform(*shape, seed=seed + 1)


def refused(kind: str, arrays: dict[str, np.ndarray], message: str, **given: Any) -> None:
    with pytest.raises(tc.GraphError, match=message):
        computed(one_node(kind, arrays, **given), arrays)


# --- transforms ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", [0, 1, 2, -2])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft_along_an_axis(axis: int, inverse: int) -> None:
    x = complexes(3, 4, 5)
    wanted = (np.fft.ifft if inverse else np.fft.fft)(x, axis=axis if axis >= 0 else axis + 1)
    arrays = {"X": pairs(x), "L": None, "A": np.array(axis)}
    check("DFT", arrays, {"Y": pairs(wanted)}, opset=20, inverse=inverse)
    if axis >= 0:
        check("DFT", {"X": pairs(x)}, {"Y": pairs(wanted)}, opset=17, inverse=inverse, axis=axis)


@pytest.mark.parametrize("length", [None, 1, 3, 8, 11])
@pytest.mark.parametrize("half", [0, 1])
def test_dft_of_real_signals_with_a_length(length: int | None, half: int) -> None:
    x = uniform(2, 8, 3)
    wanted = (np.fft.rfft if half else np.fft.fft)(x, length, 1)
    arrays = {"X": x[..., None], "L": None if length is None else np.array(length), "A": np.array(1)}
    check("DFT", arrays, {"Y": pairs(wanted)}, onesided=half)


@pytest.mark.parametrize("length", [None, 7, 8, 9, 12])
def test_dft_back_to_real_signals(length: int | None) -> None:
    x = complexes(2, 5)
    wanted = np.fft.irfft(x, 8 if length is None else length, 1).astype(F)[..., None]
    arrays = {"X": pairs(x)} if length is None else {"X": pairs(x), "L": np.array(length)}
    check("DFT", arrays, {"Y": wanted}, inverse=1, onesided=1)


@pytest.mark.parametrize("length", [65, 72, 101, 128, 210, 4096])
@pytest.mark.parametrize("inverse", [0, 1])
def test_dft_that_is_taken_apart(length: int, inverse: int) -> None:
    x = complexes(2, length)
    wanted = pairs((np.fft.ifft if inverse else np.fft.fft)(x, axis=1))
    check("DFT", {"X": pairs(x)}, {"Y": wanted}, inverse=inverse, tolerance=1e-4)


def test_dft_compiled() -> None:
    x = uniform(2, 70)
    check("DFT", {"X": x[..., None]}, {"Y": pairs(np.fft.rfft(x))}, onesided=1, compiled=True, tolerance=1e-4)
    back = np.fft.irfft(np.fft.rfft(x)).astype(F)[..., None]
    check("DFT", {"X": pairs(np.fft.rfft(x))}, {"Y": back}, onesided=1, inverse=1, compiled=True, tolerance=1e-4)
    half = x.astype(np.float16)
    wanted = pairs(np.fft.fft(half.astype(F))).astype(np.float16)
    check("DFT", {"X": half[..., None]}, {"Y": wanted}, tolerance=1e-2)
    wide = x.astype(np.float64)
    exact = np.fft.fft(wide)
    check("DFT", {"X": wide[..., None]}, {"Y": np.stack((exact.real, exact.imag), -1)}, tolerance=1e-12)


def test_dft_refuses() -> None:
    refused("DFT", {"X": uniform(2, 3)}, "the last dimension of the signal has the real part, or the real and the imag")
    refused("DFT", {"X": uniform(2, 3, 1), "L": None, "A": np.array(2)}, "axis 2 has the parts of complex numbers")  # type: ignore[dict-item]


def frames(x: np.ndarray, length: int, step: int) -> np.ndarray:
    return np.stack([x[:, at : at + length] for at in range(0, x.shape[1] - length + 1, step)], 1)


@pytest.mark.parametrize("half", [0, 1])
@pytest.mark.parametrize("step", [1, 3])
@pytest.mark.parametrize("weighted", [False, True])
def test_stft(half: int, step: int, weighted: bool) -> None:
    x, window = uniform(2, 17), uniform(6, seed=2)
    parts = frames(x, 6, step) * (window if weighted else 1)
    wanted = pairs((np.fft.rfft if half else np.fft.fft)(parts))
    arrays = {"X": x[..., None], "S": np.array(step), "W": window if weighted else None, "L": np.array(6)}
    check("STFT", arrays, {"Y": wanted}, onesided=half, compiled=half == 1 and weighted)


def test_stft_of_complex_signals_and_whole_ones() -> None:
    x = complexes(1, 9)
    arrays = {"X": pairs(x), "S": np.array(2, np.int32), "W": np.ones(4, F)}
    check("STFT", arrays, {"Y": pairs(np.fft.fft(frames(x, 4, 2)))}, onesided=0)
    real = uniform(2, 5)
    check("STFT", {"X": real, "S": np.array(1)}, {"Y": pairs(np.fft.rfft(real))[:, None]})


def test_stft_refuses() -> None:
    x = uniform(1, 4, 1)
    refused("STFT", {"X": x, "S": np.array(0)}, "`frame_step` is 0; it must be 1 at least")
    refused("STFT", {"X": x, "S": np.array(1), "W": np.ones(5, F)}, "a frame has 5 elements, and the signal 4")


# --- windows and weights ---------------------------------------------------------------------------------


def blackman(x: np.ndarray) -> np.ndarray:
    found: np.ndarray = 0.42 - 0.5 * np.cos(x) + 0.08 * np.cos(2 * x)
    return found


WINDOWS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "HannWindow": lambda x: 0.5 - 0.5 * np.cos(x),
    "HammingWindow": lambda x: 25 / 46 - 21 / 46 * np.cos(x),
    "BlackmanWindow": blackman,
}


@pytest.mark.parametrize("kind", WINDOWS)
@pytest.mark.parametrize("size", [0, 1, 2, 9])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(kind: str, size: int, periodic: int) -> None:
    turns = 2 * np.pi * np.arange(size) / max(size if periodic else size - 1, 1)
    wanted = WINDOWS[kind](turns)
    check(kind, {"N": np.array(size)}, {"Y": wanted.astype(F)}, periodic=periodic, compiled=size == 9)
    exact = {"N": np.array([size], np.int32)}
    check(kind, exact, {"Y": wanted}, periodic=periodic, output_datatype=11, tolerance=1e-14, constants=["N"])
    short = {"Y": wanted.astype(ml_dtypes.bfloat16)}
    check(kind, {"N": np.array(size)}, short, periodic=periodic, output_datatype=16, tolerance=1e-2)


def test_bodies_of_operators_have_the_defaults_of_their_attributes() -> None:
    node = helper.make_node("HannWindow", ["N"], ["Y"])
    body = body_of(node, "", 17, None)
    assert body is not None
    (cast,) = [part for part in body.nodes(node) if part.output[0] in body.outputs]
    assert [(attribute.name, attribute.i) for attribute in cast.attribute] == [("to", 1)]


def mel_weights(bands: int, length: int, rate: int, low: float, high: float) -> np.ndarray:
    scale = 2595 * np.log10(1 + np.array([low, high]) / 700)
    marks = scale[0] + np.arange(bands + 2) * (scale[1] - scale[0]) / (bands + 2)
    corners = ((length + 1) * 700 * (10 ** (marks / 2595) - 1) // rate).astype(int)
    weights = np.zeros((length // 2 + 1, bands), F)
    for band, (first, middle, last) in enumerate(zip(corners, corners[1:], corners[2:], strict=False)):
        for place in range(first, middle + 1):
            weights[place, band] = 1 if middle == first else (place - first) / (middle - first)
        for place in range(middle, last):
            weights[place, band] = (last - place) / (last - middle)
    return weights


@pytest.mark.parametrize(
    ("bands", "length", "rate", "low", "high"), [(8, 16, 8192, 0, 4096), (20, 100, 16000, 80, 7000)]
)
def test_mel_weights(bands: int, length: int, rate: int, low: float, high: float) -> None:
    arrays = {
        "B": np.array(bands), "N": np.array(length), "R": np.array(rate), "L": np.array(low, F), "H": np.array(high, F)
    }  # fmt: skip
    wanted = mel_weights(bands, length, rate, low, high)
    check("MelWeightMatrix", arrays, {"Y": wanted}, compiled=bands == 8)
    check("MelWeightMatrix", arrays, {"Y": wanted.astype(np.float64)}, output_datatype=11)


# --- n-grams ---------------------------------------------------------------------------------------------

# Two unigrams, three bigrams, one trigram.
POOL = {
    "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 1, 2, 3],
    "ngram_counts": [0, 2, 8],
    "ngram_indexes": [0, 1, 4, 3, 2, 5],
}
GRAMS = [(2,), (3,), (5, 4), (5, 6), (7, 8), (1, 2, 3)]


def gram_counts(row: np.ndarray, least: int, most: int, skip: int) -> np.ndarray:
    found = np.zeros(6)
    for gram, place in zip(GRAMS, POOL["ngram_indexes"], strict=True):
        if least <= len(gram) <= most:
            for apart in range(1, skip + 2 if len(gram) > 1 else 2):
                places = range(len(row) - apart * (len(gram) - 1))
                found[place] += sum(all(row[i + k * apart] == x for k, x in enumerate(gram)) for i in places)
    return found


@pytest.mark.parametrize(("least", "most", "skip"), [(1, 1, 0), (2, 2, 0), (1, 3, 2), (3, 3, 1)])
@pytest.mark.parametrize("mode", ["TF", "IDF", "TFIDF"])
@pytest.mark.parametrize("length", [0, 1, 2, 12])
def test_tfidf(least: int, most: int, skip: int, mode: str, length: int) -> None:
    x = whole(3, length, low=1, high=9)
    attributes: dict[str, Any] = {
        **POOL,
        "min_gram_length": least,
        "max_gram_length": most,
        "max_skip_count": skip,
        "mode": mode,
    }
    counts = np.array([gram_counts(row, least, most, skip) for row in x])
    weights = np.arange(1, 7) / 2
    plain = counts > 0 if mode == "IDF" else counts
    check("TfIdfVectorizer", {"X": x}, {"Y": plain.astype(F)}, opset=9, **attributes)
    weighed = plain if mode == "TF" else plain * weights
    given = {**attributes, "weights": weights.tolist()}
    compiled = (least, mode, length) == (1, "TFIDF", 12)
    check("TfIdfVectorizer", {"X": x[0].astype(np.int64)}, {"Y": weighed[0].astype(F)}, compiled=compiled, **given)


def test_tfidf_refuses() -> None:
    arrays = {"X": whole(4)}
    given = {**POOL, "min_gram_length": 1, "max_gram_length": 1, "max_skip_count": 0}
    refused("TfIdfVectorizer", arrays, "the mode `ALL` is not known; use TF, IDF or TFIDF", mode="ALL", **given)
    message = "there are 6 n-grams, and 2 in `ngram_indexes`"
    refused("TfIdfVectorizer", arrays, message, mode="TF", **{**given, "ngram_indexes": [0, 1]})
    words = {**given, "pool_strings": ["a"]}
    del words["pool_int64s"]
    refused("TfIdfVectorizer", arrays, "n-grams of texts are not supported; give `pool_int64s`", mode="TF", **words)
