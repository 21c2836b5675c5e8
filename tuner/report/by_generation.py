"""The picture of a search generation by generation: how quick its candidates were, and how many failed."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.report.brief import time_or_none
from tc.tuner.report.case import Case, count_kinds
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.palette import kind_style, legend
from tc.tuner.report.picture import (
    WIDTH,
    Box,
    bar,
    count_axis,
    dot,
    jitter,
    line,
    picture,
    text,
    time_axis,
)
from tc.tuner.report.scales import LinearScale, LogScale
from tc.tuner.report.units import time_text
from tc.tuner.trial.trial_outcome import counted_failures

_TOP: Final = 8.0
_TIMES: Final = 196.0
_GAP: Final = 18.0
_FAILURES: Final = 54.0
_FOOT: Final = 38.0
_LEFT: Final = 62.0
_RIGHT: Final = WIDTH - 8.0
# More columns than this are too narrow to be read: neighbouring generations share one.
_MOST: Final = 36
# With fewer times there is no box to be drawn.
_FEWEST: Final = 5
_LABEL_WIDTH: Final = 26.0
_POINTS: Final = 60
_MEANING: Final = (
    "Boxes hold the middle half of the times and a line at the median; the lines at their feet are the quickest."
)


@frozen
class Column:
    """Generations that follow each other: the times that were measured, in order, and failures by kind."""

    first: int
    last: int
    run: str
    seconds: tuple[float, ...]
    failures: Mapping[str, int]

    @property
    def name(self) -> str:
        """The number of the generation, or of the first and the last."""
        return f"{self.first}" if self.first == self.last else f"{self.first} to {self.last}"


def by_generation(case: Case) -> Content:
    """The picture with its legend; None where nothing was tried."""
    columns = columns_of(case)
    if not columns:
        return None
    times = Box(_LEFT, _TOP, _RIGHT, _TOP + (_TIMES if case.points else 0))
    begin = times.bottom + _GAP
    counts = Box(_LEFT, begin, _RIGHT, begin + (_FAILURES if case.failed else 0))
    bottom = counts.bottom if case.failed else times.bottom
    width = (_RIGHT - _LEFT) / len(columns)
    middles = [_LEFT + (number + 0.5) * width for number in range(len(columns))]
    return (
        legend((kind_style(kind), kind) for kind in case.failures),
        picture(
            bottom + _FOOT,
            "Times and failures of the candidates of each generation",
            _boxes(columns, middles, width, times) if case.points else None,
            _stacks(columns, middles, width, counts) if case.failed else None,
            line(_LEFT, bottom, _RIGHT, bottom, "axis"),
            _labels(columns, middles, width, bottom),
            text((_LEFT + _RIGHT) / 2, bottom + 29, "generation", "tick name", "middle"),
        ),
        element("p", _MEANING, class_="note") if case.points else None,
    )


def columns_of(case: Case) -> tuple[Column, ...]:
    """The generations in the order of time, at most as many as can be told apart."""
    groups = [list(group) for _, group in groupby(case.trials, lambda trial: (trial.run, trial.generation))]
    stride = max(1, -(-len(groups) // _MOST))
    merged = ([*chain.from_iterable(groups[start : start + stride])] for start in range(0, len(groups), stride))
    found = []
    for trials in merged:
        times = [(trial, time_or_none(trial.seconds)) for trial in trials]
        found.append(
            Column(
                first=trials[0].generation,
                last=trials[-1].generation,
                run=trials[0].run,
                seconds=tuple(seconds for _, seconds in times if seconds is not None),
                failures=count_kinds(trial.outcome for trial, seconds in times if seconds is None),
            )
        )
    return tuple(found)


def _boxes(columns: Sequence[Column], middles: Sequence[float], width: float, box: Box) -> Iterator[Element]:
    """Every time as a point, a box from the lower to the upper quartile, and a line at the median."""
    scale = LogScale.over((time for column in columns for time in column.seconds), box.bottom, box.top)
    yield from time_axis(scale, box)
    half = min(0.34 * width, 16.0)
    for column, middle in zip(columns, middles, strict=True):
        # A column full of points is a bar, whatever they are.
        stride = -(-len(column.seconds) // _POINTS) or 1
        for number, seconds in enumerate(column.seconds[::stride]):
            yield dot(middle + 1.6 * half * jitter(number), scale.place(seconds), "faint", radius=1.8)
        if len(column.seconds) >= _FEWEST:
            low, median, high = statistics.quantiles(column.seconds, n=4, method="inclusive")
            top, height = scale.place(high), scale.place(low) - scale.place(high)
            title = f"generation {column.name}: median {time_text(median)} of {len(column.seconds)} measured"
            yield bar(middle - half, top, 2 * half, max(height, 1), "quartiles", title)
            yield line(middle - half, scale.place(median), middle + half, scale.place(median), "median")
        if column.seconds:
            least = scale.place(min(column.seconds))
            yield line(middle - half, least, middle + half, least, "least")


def _stacks(columns: Sequence[Column], middles: Sequence[float], width: float, box: Box) -> Iterator[Element]:
    """Failures on top of each other, the first kind at the bottom."""
    most = max(sum(column.failures.values()) for column in columns)
    scale = LinearScale(0, most, box.bottom, box.top)
    # Two ticks are enough for so low a picture.
    yield from count_axis(_Ends(scale, most), box)
    yield text(box.left, box.top - 8, "failures", "tick name")
    half = min(0.34 * width, 16.0)
    for column, middle in zip(columns, middles, strict=True):
        below = 0
        for kind, count in column.failures.items():
            top = scale.place(below + count)
            title = f"generation {column.name}: {counted_failures(kind, count)}"
            yield bar(middle - half, top, 2 * half, scale.place(below) - top, f"stack {kind_style(kind)}", title)
            below += count


@frozen
class _Ends:
    """A scale with ticks at its ends only."""

    scale: LinearScale
    most: int

    def place(self, value: float) -> float:
        return self.scale.place(value)

    def ticks(self) -> tuple[float, ...]:
        return (0.0, float(self.most))


def _labels(columns: Sequence[Column], middles: Sequence[float], width: float, bottom: float) -> Iterator[Element]:
    """The numbers of generations as far as there is room, and a line where a run begins."""
    stride = max(1, round(_LABEL_WIDTH / width + 0.49))
    for number, (column, middle) in enumerate(zip(columns, middles, strict=True)):
        if number and columns[number - 1].run != column.run:
            yield line(middle - width / 2, _TOP, middle - width / 2, bottom, "division")
        if number % stride == 0:
            yield element("g", element("title", f"generation {column.name}"), _number(column, middle, bottom))


def _number(column: Column, middle: float, bottom: float) -> Element:
    return text(middle, bottom + 13, str(column.first), "tick", "middle")
