"""Is a result right?  The oracle's results are computed once per case and kept in files that every contender reads."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.measuring.messages import Refused
from benchmarks.problems.case import Case
from benchmarks.problems.problem import Array
from tc.base.counted import counted
from tc.reference.evaluate import Result
from tc.reference.kept import deviation, keep_results, steps
from tc.tuner.roofline.roofline import Work
from tc.tuner.roofline.work import work

# Peers have algorithms of their own (Winograd's for convolutions, one pass for variances), so this only tells that
# they compute the same thing: the largest error, as a part of the largest value.
PEER_TOLERANCE: Final = 1e-4
# Of halves, which libraries round where they like.
_HALF_TOLERANCE: Final = 2e-2


def judge(case: Case, folder: Path, seed: int) -> Work:
    """Keeps the results that the oracle computes in ``folder``; what work they are."""
    comprehension = case.problem.comprehension
    arguments = case.problem.arguments(case.sizes, seed)
    results = comprehension.oracle(*arguments.values())
    keep_results(results, folder)
    return work(comprehension.specialize(*arguments.values()), arguments, case.problem.indices)


def deviation_of_ours(given: Sequence[Array], expected: Sequence[Result]) -> float | Refused:
    """How much of the oracle's bound the worst element uses, of every element of every result; below 1 is right."""
    found = deviation(given, expected)
    return Refused(found, wrong=True) if isinstance(found, str) else found


def deviation_of_peer(given: Sequence[Array], expected: Sequence[Result]) -> float | Refused:
    """The largest error as a part of the largest value; refused above ``PEER_TOLERANCE``, more where we give halves.

    A peer may give fewer results than ours, in the same order, with dimensions joined or split, but not transposed:
    what only looks transposed would leave work to others.
    """
    if not 0 < len(given) <= len(expected):
        return Refused(f"{counted(len(given), 'result')} instead of {len(expected)}", wrong=True)
    worst = 0.0
    for number, (actual, result) in enumerate(zip(given, expected, strict=False)):
        if actual.size != result.values.size:
            return Refused(f"result {number} has shape {actual.shape}, ours {result.values.shape}", wrong=True)
        if not actual.flags.c_contiguous:
            return Refused(f"result {number} is a view of something laid out differently", wrong=True)
        shaped, right = np.atleast_1d(actual.reshape(result.values.shape)), np.atleast_1d(result.values)
        errors, values = zip(*(_largest(shaped[r], right[r]) for r in steps(shaped)), strict=True)
        deviation = max(errors) / max(*values, 1e-30)
        if not deviation <= (_HALF_TOLERANCE if result.type.is_half else PEER_TOLERANCE):
            return Refused(f"result {number} deviates by {deviation:.2g} of the largest value", wrong=True)
        worst = max(worst, deviation)
    return worst


def _largest(actual: Array, values: Array) -> tuple[float, float]:
    """The largest error and the largest value; NaN is an infinite error."""
    gap = np.abs(actual.astype(np.float64) - values)
    return float(np.where(np.isnan(gap), np.inf, gap).max()), float(np.abs(values).max())
