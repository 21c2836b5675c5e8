"""Compares kernels whose first sizes stay open with what the points of a case say, for each of their sizes."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

import tc
from tests.quasi_affine.families import Family, random_family
from tests.quasi_affine.judge import describe

# N stays open up to this, and M is another number.
MOST = 6
OTHER = 4

# What cannot stay open, whatever the sizes are.
_LIMITS = ("the strides of `y` depend on", "have quotients of 4 at most", "iterators are never negative")


def faults_of_open_sizes(families: int, seed: int, target: str) -> Iterator[str]:
    """What is wrong with so many random families, of those that can have an open size."""
    rng = random.Random(seed)
    for _ in range(families):
        family = random_family(rng)
        if family.operator == "+=" or "N" in family.shape_of_x[1:]:
            continue
        try:
            f = tc.define(family.definition()).single()
        except tc.SemanticError:
            continue
        cases = [family.of(size, OTHER) for size in range(1, MOST + 1)]
        fault = _fault(f, cases, target)
        if fault is not None:
            yield f"{target}: {fault}\n    {describe(cases[0])}, M = {OTHER}"


def _fault(f: tc.Comprehension, cases: list[Family], target: str) -> str | None:
    shape = tuple(tc.dynamic(MOST) if name == "N" else OTHER for name in cases[0].shape_of_x)
    x = tc.ArraySpec(shape, tc.ScalarType.INT32)
    try:
        kernel = f.compile((tc.dynamic(MOST),), (OTHER,), x, target=target)
    except (tc.RangeError, tc.ArgumentError) as error:
        # Without instances an extent like N + K - 1 may not be 0.
        fitting = all(case.runs() and case.fits() for case in cases)
        is_limit = any(limit in str(error) for limit in _LIMITS)
        return f"refused, though it fits: {error}" if fitting and not is_limit else None
    for case in cases:
        if case.runs() and not case.fits():
            return f"accepted, though it does not fit for N = {case.size}"
        found, expected = np.asarray(kernel(*case.arguments())), case.result()
        if case.written() and not (found.shape == expected.shape and np.array_equal(found, expected)):
            return f"{found.tolist()} instead of {expected.tolist()} for N = {case.size}"
        if not case.written() and found.any():
            return f"{found.tolist()} without instances for N = {case.size}"
    return None
