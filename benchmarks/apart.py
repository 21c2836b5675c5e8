"""``python -m benchmarks apart`` and ``backward``: contenders in processes apart.

The cases of the one are indirect accesses and recurrences, those of the other are backward passes.

Every contender runs in a process of its own, so that no thread pool disturbs another one.  The two of a case take turns
of a fraction of a second, so that what else a machine does for seconds on end meets both; the least time of all calls
counts: of the clock's on the processor, of the device's with cold caches on a GPU.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from benchmarks.problems.backward import BACKWARD
from benchmarks.problems.indirect import Histogram, Place, Rows, Sparse
from benchmarks.problems.recurrent import Heat, Lstm, Paths, SelectiveScan, Task

# A round is so many turns of each contender, of so long; threads of one that wait for work go to sleep before the next.
_TURNS: Final = 5
_SECONDS: Final = 0.25
_PAUSE: Final = 0.03

CASES: Final[tuple[Task, ...]] = (
    Rows("embedding-10^4", 1024, 10**4, 64, 1.0),
    Rows("embedding-10^6", 1024, 10**6, 64, 1.0),
    Histogram("histogram-256", 10**7, 256, 1.5),
    Histogram("histogram-65536", 10**7, 65536, 1.5),
    Sparse("sparse-vector", 10**5, 20, 0, 1.0),
    Sparse("sparse-matrix", 10**5, 20, 64, 1.0),
    Lstm("lstm-32-256", 100, 32, 256, 1.0),
    Lstm("lstm-1-64", 100, 1, 64, 2.0),
    SelectiveScan("selective-scan", 2, 512, 256, 16, 10.0),
    Paths("paths-512", 512, 1.0),
    Heat("heat-2^20", 1 << 20, 100, 1.0),
)
ALL_CASES: Final[tuple[Task, ...]] = (*CASES, *BACKWARD)
HEADER: Final = f"{'microseconds':20}{'ours':>12}{'peer':>12}{'peer/ours':>11}{'at least':>10}"


@dataclass(frozen=True, slots=True)
class Found:
    """Seconds of a call at best, of ours and of the peer."""

    case: Task
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


def mean_line(ratios: Sequence[float]) -> str:
    """The last row of the table."""
    return f"{'geometric mean':20}{statistics.geometric_mean(ratios):35.2f}"


def measure_cases(
    rounds: int,
    start: Callable[[str, str, Place], Contender] | None = None,
    names: tuple[str, ...] = (),
    place: Place = Place.CPU,
) -> Iterator[Found]:
    """The cases of ``apart``, or all those with these names, each in so many rounds of turns.

    ``start``: what makes a contender ready.
    """
    begin = start or Process
    for case in (case for case in ALL_CASES if case.name in names) if names else CASES:
        with begin(case.name, "ours", place) as ours, begin(case.name, "peer", place) as peer:
            times = [(ours.turn(), peer.turn()) for _ in range(rounds * _TURNS)]
        yield Found(case, min(own for own, _ in times), min(other for _, other in times))


class Contender(Protocol):
    """Something whose calls are timed, until the block ends."""

    def __enter__(self) -> Contender: ...

    def __exit__(self, *raised: object) -> None: ...

    def turn(self) -> float:
        """The least seconds of a call in one turn."""
        ...


class Process:
    """A contender of a case in a process of its own, which waits for its turns."""

    def __init__(self, case: str, contender: str, place: Place) -> None:
        command = [sys.executable, "-m", "benchmarks.apart", case, contender, place.value]
        self._process: Final = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *raised: object) -> None:
        self._process.communicate()

    def turn(self) -> float:
        """The least seconds of a call in one turn; CalledProcessError where the process ended."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        time.sleep(_PAUSE)
        process.stdin.write("\n")
        process.stdin.flush()
        found = process.stdout.readline()
        if not found:
            raise subprocess.CalledProcessError(process.wait(), process.args)
        return float(found)


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


def main(arguments: list[str], turns: Iterable[str] = sys.stdin) -> None:
    """Prints the least seconds of one contender of one case, for every line that comes in."""
    name, contender, where = arguments
    case, place = next(case for case in ALL_CASES if case.name == name), Place(where)
    call = case.ours(place) if contender == "ours" else case.peer(place)
    for _ in turns:
        print(least_time(call) if place is Place.CPU else min(_times_on_a_gpu(call)), flush=True)


def _times_on_a_gpu(call: Callable[[], object]) -> tuple[float, ...]:
    # Where there is no GPU, what asks for one is not imported.
    from tc.tuner.trial.cuda_clock import event_times

    return event_times(call, _SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
