"""The oracle's results in files, which any number of processes read, and how far given ones are from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tc.base.counted import counted
from tc.base.errors import ArgumentError
from tc.base.types import ScalarType
from tc.reference.compare import compare
from tc.reference.evaluate import Result

# Elements that are compared at a time, so that comparing takes little memory beside the results.
_STEP: Final = 1 << 22

_PARTS: Final = ("values", "error", "ambiguous")


def keep_results(results: Mapping[str, Result], folder: Path, call: int = 0) -> None:
    """Writes the results of a call into a folder, in their order; ``call`` tells them from those of others."""
    for number, result in enumerate(results.values()):
        stem = f"{call}-{number:04}-{result.type.value}"
        for part in _PARTS:
            np.save(folder / f"{stem}-{part}.npy", getattr(result, part))


def kept_results(folder: Path, call: int = 0) -> tuple[Result, ...]:
    """The results of a call in ``folder``, in their order, left on disk until they are looked at."""
    stems = sorted(path.name.removesuffix("-values.npy") for path in folder.glob(f"{call}-*-values.npy"))
    return tuple(
        Result(
            ScalarType(stem.rpartition("-")[2]),
            *(np.load(folder / f"{stem}-{part}.npy", mmap_mode="r") for part in _PARTS),
        )
        for stem in stems
    )


def deviation(given: Sequence[npt.NDArray[Any]], expected: Sequence[Result]) -> float | str:
    """How much of the oracle's bound the worst element of all results uses, below 1 if they are right; else why not."""
    if len(given) != len(expected):
        return f"{counted(len(given), 'result')} instead of {len(expected)}"
    worst = 0.0
    for number, (actual, result) in enumerate(zip(given, expected, strict=True)):
        if actual.shape != result.values.shape:
            return f"result {number} has shape {actual.shape} instead of {result.values.shape}"
        values, error, ambiguous = (np.atleast_1d(getattr(result, part)) for part in _PARTS)
        for rows in steps(values):
            try:
                comparison = compare(
                    Result(result.type, values[rows], error[rows], ambiguous[rows]), np.atleast_1d(actual)[rows]
                )
            except ArgumentError as error:
                return f"result {number}: {error}"
            if not comparison.ok:
                return f"result {number}, counted from row {rows.start}: {comparison}"
            worst = max(worst, comparison.worst)
    return worst


def steps(array: npt.NDArray[Any]) -> Iterator[slice]:
    """Slices of the first dimension, which must be there, that hold some millions of elements each."""
    rows = max(1, _STEP // max(1, array[:1].size))
    return (slice(start, start + rows) for start in range(0, len(array), rows))
