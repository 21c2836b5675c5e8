"""Is a result right?  The oracle's results are computed once per case and kept in files that every contender reads."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.bound import Work
from benchmarks.cases import Case
from benchmarks.messages import Refused
from benchmarks.problem import Array
from benchmarks.work import work
from tc.errors import ArgumentError
from tc.reference.compare import compare
from tc.reference.evaluate import Result
from tc.types import ScalarType

# Peers have algorithms of their own (Winograd's for convolutions, one pass for variances), so this only tells that
# they compute the same thing: the largest error, as a part of the largest value.
PEER_TOLERANCE: Final = 1e-4

# Elements that are compared at a time, so that comparing takes little memory beside the results.
_STEP: Final = 1 << 22


def judge(case: Case, folder: Path, seed: int) -> Work:
    """Keeps the results that the oracle computes in ``folder``; what work they are."""
    comprehension = case.problem.comprehension
    arguments = case.problem.arguments(case.sizes, seed)
    results = comprehension.oracle(*arguments.values())
    for number, result in enumerate(results.values()):
        stem = f"{number}-{result.type.value}"
        np.save(folder / f"{stem}-values.npy", result.values)
        np.save(folder / f"{stem}-error.npy", result.error)
        np.save(folder / f"{stem}-ambiguous.npy", result.ambiguous)
    return work(comprehension.specialize(*arguments.values()), arguments, case.problem.indices)


def kept(folder: Path) -> tuple[Result, ...]:
    """The results in ``folder``, in the order of the definition, left on disk until they are looked at."""
    stems = sorted(path.name.removesuffix("-values.npy") for path in folder.glob("*-values.npy"))
    return tuple(
        Result(ScalarType(stem.partition("-")[2]), *(_load(folder, stem, part) for part in _PARTS)) for stem in stems
    )


_PARTS: Final = ("values", "error", "ambiguous")


def _load(folder: Path, stem: str, part: str) -> Array:
    array: Array = np.load(folder / f"{stem}-{part}.npy", mmap_mode="r")
    return array


def deviation_of_ours(given: Sequence[Array], expected: Sequence[Result]) -> float | Refused:
    """How much of the oracle's bound the worst element uses, of every element of every result; below 1 is right."""
    if len(given) != len(expected):
        return Refused(f"{len(given)} results instead of {len(expected)}", wrong=True)
    worst = 0.0
    for number, (actual, result) in enumerate(zip(given, expected, strict=True)):
        if actual.shape != result.values.shape:
            return Refused(f"result {number} has shape {actual.shape} instead of {result.values.shape}", wrong=True)
        for rows in _steps(actual):
            part = Result(result.type, result.values[rows], result.error[rows], result.ambiguous[rows])
            try:
                comparison = compare(part, actual[rows])
            except ArgumentError as error:
                return Refused(f"result {number}: {error}", wrong=True)
            if not comparison.ok:
                return Refused(f"result {number}, counted from row {rows.start}: {comparison}", wrong=True)
            worst = max(worst, comparison.worst)
    return worst


def deviation_of_peer(given: Sequence[Array], expected: Sequence[Result]) -> float | Refused:
    """The largest error as a part of the largest value; refused above ``PEER_TOLERANCE``.

    A peer may give fewer results than ours, in the same order, with dimensions joined or split, but not transposed:
    what only looks transposed would leave work to others.
    """
    if not 0 < len(given) <= len(expected):
        return Refused(f"{len(given)} results instead of {len(expected)}", wrong=True)
    worst = 0.0
    for number, (actual, result) in enumerate(zip(given, expected, strict=False)):
        if actual.size != result.values.size:
            return Refused(f"result {number} has shape {actual.shape}, ours {result.values.shape}", wrong=True)
        if not actual.flags.c_contiguous:
            return Refused(f"result {number} is a view of something laid out differently", wrong=True)
        shaped = actual.reshape(result.values.shape)
        errors, values = zip(*(_largest(shaped[r], result.values[r]) for r in _steps(shaped)), strict=True)
        deviation = max(errors) / max(*values, 1e-30)
        if not deviation <= PEER_TOLERANCE:
            return Refused(f"result {number} deviates by {deviation:.2g} of the largest value", wrong=True)
        worst = max(worst, deviation)
    return worst


def _steps(array: Array) -> Iterator[slice]:
    """Slices of the first dimension that hold about ``_STEP`` elements each."""
    rows = max(1, _STEP // max(1, array[:1].size))
    return (slice(start, start + rows) for start in range(0, len(array), rows))


def _largest(actual: Array, values: Array) -> tuple[float, float]:
    """The largest error and the largest value; NaN is an infinite error."""
    gap = np.abs(actual.astype(np.float64) - values)
    return float(np.where(np.isnan(gap), np.inf, gap).max()), float(np.abs(values).max())
