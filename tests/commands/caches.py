"""Kernels for tests of commands: how they come into a cache, and what is in it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Final

from tc.cache.content.contents import Contents
from tc.cache.content.lookup import Reader
from tc.cache.content.store import Store
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement, Trial, Variant
from tc.cache.format.tables import VARIANTS
from tc.commands.contents.kernel_summary import KernelSummary, summaries
from tc.runtime.host.threads import available_threads
from tc.targets.target import processor

MM: Final = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
PICK: Final = """
def pick(double(N) X, int32(M) I, double s) -> (Y, total) {
    Y(i) = X(I(i)) * s
    total +=! Y(r_i)
}
"""
# The first is large enough for several threads and packed operands.
CALLS: Final = f"""
import numpy as np, tc
a, b = np.ones((96, 300), np.float32), np.ones((300, 200), np.float32)
np.testing.assert_array_equal(tc.define({MM!r}).mm(a, b), np.full((96, 200), 300, np.float32))
y, total = tc.define({PICK!r}).pick(np.arange(9.0), np.array([1, 2, 8], np.int32), 2.0)
assert total == 22
"""
AT: Final = "2026-01-01T00:00:00.000000+00:00"


@contextmanager
def contents(path: Path, key: bytes | None = None) -> Iterator[Contents]:
    reader = Reader.open(path, key=key)
    with reader.database.session() as session:
        yield Contents(session, reader.database.place, key)


def summary(path: Path, name: str) -> KernelSummary:
    """That of the definition with this name."""
    with contents(path) as found:
        (one,) = (one for one in summaries(found) if one.name == name)
        return one


def measure(path: Path, name: str, seconds: float = 0.0015, machine: str = "") -> Variant:
    """Measures the first variant of a kernel, on this machine unless another one is named; adds trials too."""
    (variant, *_), store = summary(path, name).variants, Store.open(path)
    store.add_measurement(measurement(variant, seconds, machine))
    store.add_trials((trial(variant, 1, seconds), trial(variant, 2, None)))
    return variant


def measurement(variant: Variant, seconds: float, machine: str = "") -> Measurement:
    return Measurement(
        kernel=variant.kernel,
        options=variant.options,
        threads=available_threads(),
        machine=machine or processor().model,
        policy="warm",
        seconds=seconds,
        low=seconds * 0.9,
        high=seconds * 1.2,
        default_seconds=seconds * 2.5,
        samples=11,
        run="cafe0123456789",
        at=AT,
    )


def trial(variant: Variant, number: int, seconds: float | None) -> Trial:
    return Trial(
        kernel=variant.kernel,
        options=f'{{"number": {number}}}',
        threads=available_threads(),
        machine=processor().model,
        outcome="illegal" if seconds is None else "measured",
        reason="",
        origin="random",
        source="",
        numerics="",
        seconds=seconds,
        samples=() if seconds is None else (seconds,),
        run="cafe0123456789",
        number=number,
        generation=0,
        at=AT,
    )


def add_variant(path: Path, ingredients: Ingredients, variant: Variant) -> Variant:
    """Stores a variant, which is moved to the kernel of these ingredients."""
    moved = replace(variant, kernel=ingredients.key)
    Store.open(path).add_variant(ingredients, moved)
    return moved


def variants(path: Path) -> list[Variant]:
    with contents(path) as found:
        return [variant for variant, _ in found.records(VARIANTS)]


def command(module: str, *arguments: object) -> list[str]:
    """The command line that runs a command of ``tc.commands`` in a process of its own."""
    return [sys.executable, "-m", f"tc.commands.{module}", *map(str, arguments)]
