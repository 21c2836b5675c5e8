"""What the cache costs: lookups in warm and cold processes and in large files, and trials per minute of the tuner."""

from __future__ import annotations

import math
import os
import statistics
import subprocess
import sys
import time
import timeit
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

import numpy as np

import tc
from tc.cache.content.insertion import Conflict, insert_kernels, insert_records
from tc.cache.content.lookup import Reader
from tc.cache.content.ship import ship
from tc.cache.content.store import Store, utc_now
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Variant
from tc.cache.format.rows import row_of
from tc.cache.format.tables import VARIANTS
from tc.reference.compare import compare
from tc.tuner.session.settings import SECONDS, TuningResult
from tc.tuner.trial.host_clock import time_calls

SCALED: Final = "def scaled(float(M,K) A, float s) -> (C) { C(m,k) = s * A(m,k) }"
MATMUL: Final = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"

# So many trials a search has gone through its default, its seeds and its start.
_FEW: Final = 16

_FIRST_CALL: Final = f"""
import sys, time
import numpy as np
a, b = np.ones((64, 48), np.float32), np.ones((48, 32), np.float32)
begun = time.perf_counter()
import tc
tc.define({MATMUL!r})(a, b)
print(time.perf_counter() - begun)
assert not {{"islpy", "lark", "sqlalchemy"}} & set(sys.modules)
"""


def lookup_in_a_warm_process() -> float:
    """Seconds that finding the kernel adds to a call: a definition's call less the call of its kernel."""
    scaled = tc.define(SCALED).scaled
    a = np.ones((8, 8), np.float32)
    kernel = scaled.compile(a, 2.0)
    # A difference of two times needs the quickest of each.
    call, own = (
        min(timeit.repeat(f, number=1000, repeat=15)) for f in (lambda: scaled(a, 2.0), lambda: kernel(a, 2.0))
    )
    return (call - own) / 1000


def first_call_of_a_cold_process(rounds: int = 11) -> float:
    """Median seconds from before ``import tc`` to the end of a first call, from a shipped cache, without a compiler."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        cache, shipped = folder / "kernels.db", folder / "shipped.db"
        # With the modules of the package compiled, as after an installation.
        settings = {**os.environ, "PYTHONPYCACHEPREFIX": str(folder / "modules"), "PYTHONDONTWRITEBYTECODE": ""}
        fill = {**settings, "TC_CACHE": str(cache), "TC_CACHE_MODE": "store"}
        program = _FIRST_CALL.replace("assert", "import sys; sys.exit()\nassert")
        subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, env=fill)
        ship(cache, shipped)
        there = {**settings, "TC_CACHE": str(shipped), "TC_CACHE_MODE": "strict", "PATH": str(folder)}
        command = [sys.executable, "-c", _FIRST_CALL]
        times = [
            float(subprocess.run(command, check=True, capture_output=True, text=True, env=there).stdout)
            for _ in range(rounds + 1)
        ]
    return statistics.median(times[1:])


def lookup_among(kernels: int) -> tuple[float, float]:
    """Median seconds to find a kernel among so many, in a file that is written to and in one that was shipped."""
    with TemporaryDirectory() as name:
        live, shipped = Path(name) / "live.db", Path(name) / "shipped.db"
        some = Ingredients("def f(...)", "[]", "[]", "[]", "element", "[]", "[]", "[]", "cpu", "x86-64", "cc", "1")
        made = [replace(some, shapes=f"[[{number}]]") for number in range(kernels)]
        store = Store.open(live)
        variant = Variant("", "{}", 2, "source", b"code", "{}", "{}", "proven", "", "", "", "{}")
        with store.transaction() as connection:
            insert_kernels(connection, ((ingredients, utc_now()) for ingredients in made))
            rows = [row_of(VARIANTS, replace(variant, kernel=ingredients.key), None, utc_now()) for ingredients in made]
            insert_records(connection, VARIANTS, rows, Conflict.KEEP)
        ship(live, shipped)
        return _lookups(Reader.open(live), made), _lookups(Reader.open(shipped, immutable=True), made)


def _lookups(reader: Reader, made: list[Ingredients]) -> float:
    times = []
    for ingredients in made[:: max(1, len(made) // 500)]:
        begun = time.perf_counter()
        found = reader.best(ingredients.key, "machine", 2, otherwise="{}", needed=2)
        times.append(time.perf_counter() - begun)
        assert found is not None
    return statistics.median(times)


def trials_per_minute(trials: int = 64) -> tuple[float, float]:
    """Of a search for a matrix product with two compilations at a time, and of a loop over the same candidates.

    The loop does what people write: it compiles a candidate, compares its result and times it, then takes the next; one
    that is refused is a trial too.
    """
    mm, shapes = tc.define(MATMUL).mm, ((128, 256), (256, 192))
    with TemporaryDirectory() as name:
        # What every process and every search does once, and the comparison at its end, are not a trial's.
        _seconds_of_a_search(mm, shapes, 1, Path(name) / "one.db")
        few = _seconds_of_a_search(mm, shapes, _FEW, Path(name) / "few.db")[0]
        many, found = _seconds_of_a_search(mm, shapes, _FEW + trials, Path(name) / "many.db")
    candidates = [trial.candidate.options for trial in found.trials[_FEW:]]
    a, b = (np.random.default_rng(0).standard_normal(shape).astype(np.float32) for shape in shapes)
    expected = mm.oracle(a, b)["C"]
    begun = time.perf_counter()
    for options in candidates:
        try:
            kernel = mm.compile(a, b, options=options)
        except tc.TCError:
            continue
        result = kernel(a, b)
        assert isinstance(result, np.ndarray)
        assert compare(expected, result).ok
        time_calls(partial(kernel, a, b), SECONDS, math.inf)
    return 60 * trials / (many - few), 60 * len(candidates) / (time.perf_counter() - begun)


def _seconds_of_a_search(
    mm: tc.Comprehension, shapes: tuple[tuple[int, ...], ...], trials: int, cache: Path
) -> tuple[float, TuningResult]:
    begun = time.perf_counter()
    found = mm.tune(*shapes, budget=f"{trials} trials", cache=cache, seed=1, jobs=2, progress=False)
    return time.perf_counter() - begun, found


def report_cache() -> None:
    """Print what the cache and the tuner take, with their targets."""
    print(f"{'cached lookup, warm, on top of a call':44} {lookup_in_a_warm_process() * 1e6:10.2f} us   (target < 5 us)")
    first = first_call_of_a_cold_process() * 1e3
    print(f"{'first call of a cold process, shipped cache':44} {first:10.1f} ms   (target < 60 ms)")
    live, shipped = lookup_among(100_000)
    print(f"{'lookup among 100,000 kernels':44} {live * 1e3:10.2f} ms   (target < 1 ms)")
    print(f"{'the same, in a shipped file':44} {shipped * 1e3:10.2f} ms   (target < 1 ms)")
    search, loop = trials_per_minute()
    print(f"{'trials per minute, compiled and timed by turns':44} {loop:10.0f}")
    print(f"{'the same candidates in a search':44} {search:10.0f}      (target > {1.6 * loop:.0f})")
