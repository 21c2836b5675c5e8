"""``python -m benchmarks scatters``: scatters beside PyTorch's ``index_add_`` and NumPy's ``bincount``.

Every contender runs in processes of its own, which take turns, so that no thread pool disturbs another one; the least
time of all its calls counts.  Sums include what sets the result to 0.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

import tc

Array = npt.NDArray[Any]
_SEED: Final = 1
_SECONDS: Final = 1.0
_THREADS: Final = 2

_GRADIENT: Final = "def f(int32(B) I, float(B,D) v, float(V,D) z) -> (float(V,D) y) { y(I(b), d) +=! v(b,d) }"


@dataclass(frozen=True, slots=True)
class Rows:
    """The gradient of a lookup: ``terms`` rows of ``width`` numbers are added to some of ``rows``."""

    name: str
    terms: int
    rows: int
    width: int
    minimum: float

    def ours(self) -> Callable[[], object]:
        """A call of ours."""
        index, values, result = self._arguments()
        f = tc.define(_GRADIENT).single()
        return lambda: f(index, values, result, out=result)

    def peer(self) -> Callable[[], object]:
        """A call of PyTorch's."""
        import torch

        torch.set_num_threads(_THREADS)
        index, values, result = map(torch.from_numpy, self._arguments())
        index = index.long()
        return lambda: result.zero_().index_add_(0, index, values)

    def _arguments(self) -> tuple[Array, Array, Array]:
        random = np.random.default_rng(_SEED)
        index = random.integers(0, self.rows, self.terms).astype(np.int32)
        values = random.standard_normal((self.terms, self.width), np.float32)
        return index, values, np.zeros((self.rows, self.width), np.float32)


@dataclass(frozen=True, slots=True)
class Histogram:
    """How often each of so many bins is met."""

    name: str
    terms: int
    bins: int
    minimum: float

    def ours(self) -> Callable[[], object]:
        """A call of ours."""
        numbers = self._numbers()
        text = f"def f(int64(N) x) -> (h) {{ h(x(i)) +=! 1 where x(i) in 0:{self.bins} }}"
        f = tc.define(text).single()
        return lambda: f(numbers)

    def peer(self) -> Callable[[], object]:
        """A call of NumPy's."""
        numbers = self._numbers()
        return lambda: np.bincount(numbers, minlength=self.bins)

    def _numbers(self) -> Array:
        return np.random.default_rng(_SEED).integers(0, self.bins, self.terms)


CASES: Final[tuple[Rows | Histogram, ...]] = (
    Rows("embedding-10^4", 1024, 10**4, 64, 1.0),
    Rows("embedding-10^6", 1024, 10**6, 64, 1.0),
    Histogram("histogram-256", 10**7, 256, 1.5),
    Histogram("histogram-65536", 10**7, 65536, 1.5),
)
HEADER: Final = f"{'microseconds':20}{'ours':>12}{'peer':>12}{'peer/ours':>11}{'at least':>10}"


@dataclass(frozen=True, slots=True)
class Found:
    """Seconds of a call at best, of ours and of the peer."""

    case: Rows | Histogram
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """Of the peer's time to ours."""
        return self.peer / self.ours

    @property
    def line(self) -> str:
        """A row of the table that ``HEADER`` begins."""
        times = f"{self.ours * 1e6:12,.0f}{self.peer * 1e6:12,.0f}"
        return f"{self.case.name:20}{times}{self.ratio:11.2f}{self.case.minimum:10.2f}"


def measure_cases(rounds: int, measure: Callable[[str, str], float] | None = None) -> Iterator[Found]:
    """All cases, each contender in so many processes; ``measure``: what takes the time of one process."""
    take = measure or measure_apart
    for case in CASES:
        times = [(take(case.name, "ours"), take(case.name, "peer")) for _ in range(rounds)]
        yield Found(case, min(ours for ours, _ in times), min(peer for _, peer in times))


def measure_apart(case: str, contender: str) -> float:
    """The least seconds of a call in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.scattering", case, contender]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def least_time(call: Callable[[], object], seconds: float = _SECONDS) -> float:
    """The least seconds of a call, of as many as there is time for, and two at least."""
    least, end = float("inf"), time.perf_counter() + seconds
    for number in range(1_000_000):
        started = time.perf_counter()
        if number > 2 and started > end:
            break
        call()
        least = min(least, time.perf_counter() - started)
    return least


def main(arguments: list[str]) -> None:
    """Prints the least seconds of one contender of one case."""
    name, contender = arguments
    case = next(case for case in CASES if case.name == name)
    print(least_time(case.ours() if contender == "ours" else case.peer()))


if __name__ == "__main__":
    main(sys.argv[1:])
