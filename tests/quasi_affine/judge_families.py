"""Compares what is accepted, refused and computed for several sizes of one definition with what its points say."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

import numpy as np

import tc
from tests.quasi_affine.families import SIZES, Family, random_family
from tests.quasi_affine.judge import describe, lie

# What the language leaves out, whatever the sizes.
RULES = ("which is reduced: it does not say which elements",)
ALL_TARGETS = ("reference", "cpu", "emulator")


def faults_of_families(families: int, seed: int, every: int) -> Iterator[str]:
    """What is wrong with so many random families; every so many of their cases run on all targets, too."""
    rng = random.Random(seed)
    count = 0
    for _ in range(families):
        family = random_family(rng)
        fitting: list[Family] = []
        for case, fault in _decided([family.of(*sizes) for sizes in SIZES]):
            if fault is None:
                fitting.append(case)
            else:
                yield f"{fault}\n    {describe(case)}, M = {case.other}"
        for case in fitting:
            count += 1
            for target in ALL_TARGETS if count % every == 0 else ALL_TARGETS[:1]:
                found = _computed(case, target)
                if found is not None:
                    yield f"{target}: {found}\n    {describe(case)}, M = {case.other}"


def _decided(cases: Sequence[Family]) -> Iterator[tuple[Family, str | None]]:
    """The cases that run, and those about which the product is wrong, with what is wrong."""
    try:
        f = tc.define(cases[0].definition()).single()
    except tc.SemanticError as error:
        if any(rule in str(error) for rule in RULES):
            return
        for case in cases:
            if min(case.size, case.other) > 0 and case.runs() and case.fits():
                yield case, f"refused when defined, though it fits these sizes: {error}"
        return
    for case in cases:
        try:
            f.specialize(*case.arguments())
        except tc.RangeError as error:
            fault = None
            if case.fits():
                # Without instances an extent like N + K - 1 may not be 0.
                is_empty = not case.runs() and all("is never written" in d.message for d in error.diagnostics)
                fault = None if is_empty else f"refused, though it fits: {error}"
            elif case.runs():
                fault = lie(case, error)
            if fault is not None:
                yield case, fault
            continue
        except tc.ArgumentError as error:  # a condition on sizes alone is one on the call
            if case.runs():
                yield case, f"refused, though its conditions hold: {error}"
            continue
        yield case, None if case.fits() else "accepted, though it leaves a tensor or does not write every element once"


def _computed(case: Family, target: str) -> str | None:
    """What is wrong with the shape or the values of the result."""
    f = tc.define(case.definition()).single()
    shape = f.output_shapes(*case.arguments())["y"]
    expected = case.result()
    # Conditions do not make an argument smaller that is updated.
    grows = case.operator == "+=" and case.conditions
    if case.written() and (not grows) and shape != expected.shape:
        return f"shape {shape} instead of {expected.shape}"
    out = {"y": np.zeros(shape, np.int32)} if case.operator == "+=" else None
    found: object
    if target == "reference":
        found = f.reference(*case.arguments(), out=out)
    else:
        found = f(*case.arguments(), out=out, target=target)
    actual = np.array(found)
    if not case.written():
        return None if not actual.any() else f"{actual.tolist()} without instances"
    part = actual[tuple(map(slice, expected.shape))]
    return None if np.array_equal(part, expected) else f"{actual.tolist()} instead of {expected.tolist()}"
