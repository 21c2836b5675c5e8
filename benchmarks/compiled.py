"""``python -m benchmarks compile``: what it takes from the text of a definition to the binary, and what that takes.

Nothing runs, so a machine without a GPU compiles for any.  The compiler works while the loops are proven; its column is
what it still takes from then on.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

import tc
from benchmarks.problems.case import Case
from benchmarks.reporting.compilation import COLUMNS, in_columns
from tc.artifact.resources import Resources
from tc.prediction.machine_code import MachineLoop
from tc.prediction.prediction import Prediction
from tc.targets.options import Options

# Loads the compilers, which would otherwise count for the first case.
_FIRST: Final = "def first(float(N) x) -> (y) { y(i) = 2.0 * x(i) }"


@dataclass(frozen=True, slots=True)
class Compiled:
    """A case; ``milliseconds``: of every column, and from the text to the binary, part of which is at the same time.

    ``predicted``: the time of a call on the usual GPU of the target, None for other targets.  ``loops``: of the machine
    code of each kernel there, the one with most arithmetic.
    """

    case: str
    milliseconds: dict[str, float]
    total: float
    resources: Resources
    predicted: Prediction | None
    loops: tuple[MachineLoop | None, ...]


def compile_cases(cases: Iterable[Case], target: str, options: Options | None) -> Iterator[Compiled]:
    """Every case, compiled from its text; errors are those of ``tc.define`` and ``Comprehension.compile``."""
    tc.define(_FIRST).single().compile((7,), target=target)
    for case in cases:
        text, shapes = case.problem.text, case.problem.shapes(case.sizes).values()
        started = time.perf_counter()
        kernel = tc.define(text).single().compile(*shapes, target=target, options=options)
        total = 1e3 * (time.perf_counter() - started)
        seconds = in_columns({stage.name: stage.seconds for stage in kernel.stages})
        times = {title: 1e3 * value for title, value in seconds.items()}
        yield Compiled(case.name, times, total, kernel.resources, kernel.predicted, kernel.hot_loops)


HEADER: Final = f"{'ms':20}" + "".join(f"{title:>10}" for title in (*COLUMNS, "in all")) + "  grid, block, registers"


def line(compiled: Compiled) -> str:
    """A case in the table that ``HEADER`` begins."""
    times = "".join(f"{value:10.1f}" for value in (*compiled.milliseconds.values(), compiled.total))
    grids = (
        f"{_sizes(grid.grid)} x {_sizes(grid.block)}, {grid.registers}, {grid.spill_stores} B spilled, "
        f"{grid.shared} B shared, {grid.occupancy:.0%}"
        for grid in compiled.resources.grids
    )
    took = f"{compiled.case:20}{times}  {'; '.join(grids)}".rstrip()
    told = [str(part) for part in (compiled.predicted, *compiled.loops) if part is not None]
    return "\n".join((took, *(f"{'':20}  {text}" for text in told)))


def _sizes(sizes: tuple[int, ...]) -> str:
    kept = max((n for n, size in enumerate(sizes, 1) if size > 1), default=1)
    return f"({','.join(map(str, sizes[:kept]))})"
