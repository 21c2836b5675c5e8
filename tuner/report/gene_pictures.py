"""The pictures of which options matter: what each explains, and the times by value of those that explain most."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tc.base.counted import counted
from tc.tuner.report.association import Association, associations
from tc.tuner.report.case import Case
from tc.tuner.report.flat import columns, in_order
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.picture import WIDTH, Box, bar, dot, jitter, line, picture, text, time_axis
from tc.tuner.report.scales import LogScale
from tc.tuner.report.units import share_text, time_text

_ROW: Final = 24.0
_NAMES: Final = 150.0
_NOTES: Final = 112.0
_BARS: Final = 10
_STRIPS: Final = 3
_STRIP: Final = Box(left=62.0, top=6.0, right=WIDTH - 8.0, bottom=104.0)
_STRIP_HEIGHT: Final = 126.0
# More values do not find room beside each other: the rarest share a place.
_VALUES: Final = 14
_OTHERS: Final = "rest"
_POINTS: Final = 60
_LONGEST: Final = 22


def gene_associations(case: Case) -> tuple[Association, ...]:
    """What can be told of the options, the strongest first, without those that explain nothing."""
    points = case.points
    found = associations([point.seconds for point in points], columns([point.trial.options for point in points]))
    return tuple(one for one in found if one.adjusted > 0)


def explained(found: Sequence[Association]) -> Element:
    """A bar for every option, as long as its share of the variance."""
    shown = found[:_BARS]
    # Half of the variance is a long bar; all of it has room.
    longest = max(0.5, shown[0].adjusted)
    room = WIDTH - _NAMES - _NOTES

    def row(number: int, one: Association) -> Iterator[Element]:
        y = number * _ROW
        values = counted(len(one.groups), "value")
        note = f"{share_text(one.adjusted)}, {values}"
        title = f"{one.option}: {share_text(one.adjusted)} adjusted, {share_text(one.share)} as it is, {values}"
        style = "gene first" if number < _STRIPS else "gene"
        yield text(_NAMES - 8, y + _ROW / 2, shortened(one.option), "code", "end")
        yield bar(_NAMES, y + 4, room * one.adjusted / longest, _ROW - 8, style, title)
        yield text(_NAMES + room * one.adjusted / longest + 8, y + _ROW / 2, note, "tick")

    rows = (part for number, one in enumerate(shown) for part in row(number, one))
    return picture(
        len(shown) * _ROW + 2,
        "Share of the variance of log time by option",
        rows,
        line(_NAMES, 0, _NAMES, len(shown) * _ROW, "axis"),
    )


def strips(found: Iterable[Association]) -> Iterator[Content]:
    """For each of the strongest, a heading and the times by value."""
    for one in tuple(found)[:_STRIPS]:
        yield element("h5", element("code", one.option))
        yield strip(one)


def strip(one: Association) -> Element:
    """The times by value of one option: every trial as a point, a line at each median."""
    groups = crowded(one.groups)
    scale = LogScale.over((time for times in groups.values() for time in times), _STRIP.bottom, _STRIP.top)
    width = (_STRIP.right - _STRIP.left) / len(groups)
    half = min(0.3 * width, 14.0)

    def column(number: int, value: str, times: Sequence[float]) -> Iterator[Element]:
        middle, median = _STRIP.left + (number + 0.5) * width, statistics.median(times)
        stride = -(-len(times) // _POINTS)
        for place, seconds in enumerate(times[::stride]):
            yield dot(middle + 1.6 * half * jitter(place), scale.place(seconds), "faint", radius=1.8)
        title = f"{value}: median {time_text(median)} of {counted(len(times), 'trial')}"
        y = scale.place(median)
        yield element("g", element("title", title), line(middle - half, y, middle + half, y, "median strong"))
        fitting = max(3, int(width / 6.2))
        yield text(middle, _STRIP.bottom + 13, shortened(value, fitting), "tick", "middle")

    marks = (mark for number, (value, times) in enumerate(groups.items()) for mark in column(number, value, times))
    return picture(
        _STRIP_HEIGHT,
        f"Times by value of {one.option}",
        time_axis(scale, _STRIP),
        line(_STRIP.left, _STRIP.bottom, _STRIP.right, _STRIP.bottom, "axis"),
        marks,
    )


def crowded(groups: Mapping[str, Sequence[float]]) -> dict[str, tuple[float, ...]]:
    """The groups in the order of their values; the smallest ones in one where there are too many."""
    if len(groups) <= _VALUES:
        return {value: tuple(groups[value]) for value in in_order(groups)}
    sizes = Counter({value: len(times) for value, times in groups.items()})
    kept = {value for value, _ in sizes.most_common(_VALUES - 1)}
    found = {value: tuple(groups[value]) for value in in_order(kept)}
    found[_OTHERS] = tuple(time for value in in_order(groups) if value not in kept for time in groups[value])
    return found


def shortened(name: str, most: int = _LONGEST) -> str:
    """The name, cut where it is longer than there is room."""
    return name if len(name) <= most else f"{name[: most - 1]}\N{HORIZONTAL ELLIPSIS}"
