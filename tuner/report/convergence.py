"""The picture of how a search came to its winner: every trial, and the best so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from tc.base.counted import counted
from tc.tuner.report.case import Case, Point
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.palette import legend, origin_style, origins_in_order
from tc.tuner.report.picture import WIDTH, Box, Level, dot, levels, line, number_axis, path, picture, time_axis
from tc.tuner.report.scales import LinearScale, LogScale
from tc.tuner.report.units import time_text

_HEIGHT: Final = 300.0
_BOX: Final = Box(left=62.0, top=8.0, right=WIDTH - 78.0, bottom=_HEIGHT - 38.0)
# Failures are marked in a strip of this height above the axis.
_STRIP: Final = 12.0
# So many points are drawn at most; beyond, a picture is no clearer and a page slow.
_MOST: Final = 3000


def convergence(case: Case) -> Content:
    """The picture with its legend; None where nothing was measured."""
    points = case.points
    if not points:
        return None
    lines = known_levels(case)
    strip = _STRIP if case.failed else 0.0
    times = [*(point.seconds for point in points), *(level.seconds for level in lines)]
    scale = LogScale.over(times, _BOX.bottom - strip, _BOX.top)
    along = LinearScale(0, max(1, len(case.trials) - 1), _BOX.left + 4, _BOX.right - 4)
    names = [(origin_style(origin), origin) for origin in origins_in_order(point.trial.origin for point in points)]
    names += [("failed", "failed")] if case.failed else []
    drawn = _thinned(points)
    return (
        legend((*names, ("best", "best so far"))),
        picture(
            _HEIGHT,
            f"Time of each of {counted(len(points), 'measured trial')}, and the best so far",
            time_axis(scale, _BOX),
            _beginnings(case, along),
            (_failure(case, along.place(place), place) for place, _ in case.failed[:_MOST]),
            (dot(along.place(p.place), scale.place(p.seconds), origin_style(p.trial.origin), _title(p)) for p in drawn),
            path([(along.place(x), scale.place(y)) for x, y in steps(points, len(case.trials) - 1)], "best"),
            levels(lines, scale, _BOX),
            number_axis(along, _BOX, "trial"),
        ),
        element("p", f"{len(drawn):,} of {counted(len(points), 'point')} are drawn.", class_="note")
        if drawn != points
        else None,
    )


def known_levels(case: Case) -> tuple[Level, ...]:
    """The default, the winner and the bound, as far as they are known."""
    known = (
        ("default", case.default, "default"),
        ("winner", case.seconds, "winner"),
        ("bound", case.bound, "bound"),
    )
    return tuple(Level(name, seconds, style) for name, seconds, style in known if seconds is not None)


def steps(points: Sequence[Point], last: int) -> list[tuple[int, float]]:
    """The corners of the line of the best so far, from the first point to the place ``last``."""
    better = [points[0]]
    for point in points:
        if point.seconds < better[-1].seconds:
            better.append(point)
    corners = [(better[0].place, better[0].seconds)]
    for before, after in pairwise(better):
        corners += [(after.place, before.seconds), (after.place, after.seconds)]
    return [*corners, (max(last, better[-1].place), better[-1].seconds)]


def _thinned(points: Sequence[Point]) -> Sequence[Point]:
    """At most so many points, evenly, and with them those that were the best so far."""
    stride = -(-len(points) // _MOST)
    if stride == 1:
        return points
    corners = {place for place, _ in steps(points, 0)}
    return tuple(point for number, point in enumerate(points) if number % stride == 0 or point.place in corners)


def _beginnings(case: Case, along: LinearScale) -> Iterator[Element]:
    """A line before the first trial of every run but the first."""
    for place, (before, after) in enumerate(pairwise(case.trials)):
        if before.run != after.run:
            x = along.place(place + 0.5)
            yield line(x, _BOX.top, x, _BOX.bottom, "division")


def _failure(case: Case, x: float, place: int) -> Element:
    trial = case.trials[place]
    mark = line(x, _BOX.bottom - _STRIP + 4, x, _BOX.bottom - 1, "failed")
    return element("g", element("title", f"trial {trial.number}, {trial.origin}: {trial.outcome}"), mark)


def _title(point: Point) -> str:
    trial = point.trial
    return f"trial {trial.number}, generation {trial.generation}, {trial.origin}: {time_text(point.seconds)}"
