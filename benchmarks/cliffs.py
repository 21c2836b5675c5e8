"""``python -m benchmarks cliffs``: sizes at which a kernel is much slower than at those beside them.

Random shapes are drawn for each operator.  The time of a call, as a multiple of what the machine needs at least for its
operations and bytes, is set against the median of the shapes that are nearest.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from benchmarks.problems.case import Case
from benchmarks.problems.cases import case_called
from benchmarks.problems.problem import Sizes
from tc.runtime.host.threads import get_threads
from tc.targets.target import parse_cpu_target
from tc.tuner.roofline.roofline import Roofs
from tc.tuner.roofline.roofs import measure_roofs
from tc.tuner.roofline.work import work

# Of the operators, those whose sizes may be anything.
OPERATORS: Final = (
    *("matmul-512-512-512", "matmul_left", "matmul_both", "vector_matrix", "matrix_vector-2048-2048"),
    *("batched-64-96-128-80", "linear", "norm_linear", "gated", "convolution1d"),
    *("convolution_same-2-64-56-56-64", "pointwise-8-64-56-56-128", "depthwise-4-32-112-112", "transposed"),
    *("gelu", "sum_columns", "softmax_rows-64-16384", "batch_norm", "max_pool_dense", "matmul_int8-512-512-512"),
)
# So many times the median of its neighbours is a cliff.
MOST_RATIO: Final = 4.0
_NEIGHBOURS: Final = 16
# Sizes are so many times less or more than those of the case, and work is at most so much of it.
_SPREAD: Final = 4.0
_MOST_WORK: Final = 2.0
# Seconds that any call takes, whatever it does.
_CALL: Final = 5e-6
_CALLS: Final = 7


@dataclass(frozen=True, slots=True)
class Point:
    """Sizes; ``seconds``: of a call at best; ``bound``: what the machine needs at least."""

    sizes: Sizes
    seconds: float
    bound: float

    @property
    def cost(self) -> float:
        """Times the bound."""
        return self.seconds / (self.bound + _CALL)


@dataclass(frozen=True, slots=True)
class Found:
    """``ratio``: of the cost of the worst point to the median of its neighbours."""

    operator: str
    points: tuple[Point, ...]
    worst: Point
    ratio: float


def draw(case: Case, generator: random.Random) -> dict[str, int]:
    """Sizes around those of a case, of about as much work or less; those of windows stay as they are."""
    while True:
        sizes = {
            name: size if size < 8 else max(1, round(size * _SPREAD ** generator.uniform(-1, 1)))
            for name, size in case.sizes.items()
        }
        if math.prod(sizes.values()) <= _MOST_WORK * math.prod(case.sizes.values()):
            return sizes


def measure_point(case: Case, sizes: Sizes, roofs: Roofs, calls: int = _CALLS) -> Point:
    """The least time of a few calls."""
    problem = case.problem
    arguments = problem.arguments(sizes)
    comprehension = problem.comprehension
    given = list(arguments.values())
    least = float("inf")
    for _ in range(calls):
        started = time.perf_counter()
        comprehension(*given)
        least = min(least, time.perf_counter() - started)
    bound = roofs.bound(work(comprehension.specialize(*given), arguments, problem.indices))
    return Point(sizes, least, bound)


def neighbours(point: Point, points: Sequence[Point], count: int = _NEIGHBOURS) -> list[Point]:
    """The nearest other points, by the ratios of their sizes."""

    def distance(other: Point) -> float:
        return sum(math.log(other.sizes[name] / size) ** 2 for name, size in point.sizes.items())

    return sorted((other for other in points if other is not point), key=distance)[:count]


def steepest(operator: str, points: Sequence[Point]) -> Found:
    """The point that costs the most beside its neighbours."""
    ratios = [point.cost / statistics.median(other.cost for other in neighbours(point, points)) for point in points]
    ratio, worst = max(zip(ratios, points, strict=True), key=lambda found: found[0])
    return Found(operator, tuple(points), worst, ratio)


def measure_operators(names: Sequence[str], shapes: int, seed: int) -> Iterator[Found]:
    """The steepest cliff of each operator among so many random shapes.  What seems to be one is measured again."""
    roofs = measure_roofs(parse_cpu_target("cpu"), get_threads())
    for name in names:
        case, generator = case_called(name), random.Random(f"{seed} {name}")
        points = [measure_point(case, draw(case, generator), roofs) for _ in range(shapes)]
        found = steepest(name, points)
        for _ in range(shapes):
            if found.ratio <= MOST_RATIO:
                break
            again = measure_point(case, found.worst.sizes, roofs, 5 * _CALLS)
            if again.seconds > found.worst.seconds / 2:
                break  # it is one
            points[points.index(found.worst)] = again
            found = steepest(name, points)
        yield found


HEADER: Final = f"{'operator':34}{'times the bound':>16}{'worst beside its neighbours':>29}  at"


def line(found: Found) -> str:
    """An operator in the table that ``HEADER`` begins."""
    median = statistics.median(point.cost for point in found.points)
    return f"{found.operator:34}{median:16.2f}{found.ratio:29.2f}  {_text(found.worst.sizes)}"


def _text(sizes: Mapping[str, int]) -> str:
    return ",".join(f"{name}={size}" for name, size in sizes.items())
