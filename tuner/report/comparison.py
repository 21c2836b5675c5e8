"""The picture of the winner beside the static default and the bound of the machine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from tc.base.frozen import frozen
from tc.cache.format.records import Measurement
from tc.tuner.report.brief import time_or_none
from tc.tuner.report.case import Case
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.picture import WIDTH, bar, line, picture, text
from tc.tuner.report.scales import LinearScale
from tc.tuner.report.units import interval_text, tick_text, time_text

_LEFT: Final = 62.0
_RIGHT: Final = WIDTH - 96.0
_ROW: Final = 44.0
_THICK: Final = 18.0
_FOOT: Final = 22.0


@frozen
class _Row:
    """A bar; ``interval``: where its time lies with 95 % confidence."""

    name: str
    seconds: float
    interval: tuple[float, float] | None
    style: str


def comparison(case: Case) -> Content:
    """Bars of the default, the winner and the bound, with intervals; None where nothing won."""
    rows = _rows(case)
    if case.seconds is None:
        return None
    highest = max(max(row.seconds, row.interval[1] if row.interval else 0.0) for row in rows)
    scale = LinearScale(0.0, highest, _LEFT, _RIGHT)
    bottom = len(rows) * _ROW
    return picture(
        bottom + _FOOT,
        ", ".join(f"{row.name} {time_text(row.seconds)}" for row in rows),
        (_tick(scale, tick, bottom) for tick in scale.ticks()),
        (mark for number, row in enumerate(rows) for mark in _marks(row, number * _ROW, scale)),
        None if case.bound is None else _limit(scale.place(case.bound), bottom),
        line(_LEFT, 0, _LEFT, bottom, "axis"),
    )


def _rows(case: Case) -> tuple[_Row, ...]:
    known = (
        ("default", case.default, _interval(case.beside), "default"),
        ("winner", case.seconds, _interval(case.best), "winner"),
        ("bound", case.bound, None, "bound"),
    )
    return tuple(_Row(name, seconds, between, style) for name, seconds, between, style in known if seconds is not None)


def _interval(measurement: Measurement | None) -> tuple[float, float] | None:
    if measurement is None:
        return None
    low, high = time_or_none(measurement.low), time_or_none(measurement.high)
    return None if low is None or high is None else (low, high)


def _marks(row: _Row, top: float, scale: LinearScale) -> Iterator[Element]:
    middle = top + _ROW / 2
    end = scale.place(row.seconds)
    title = f"{row.name}: {time_text(row.seconds)}"
    if row.interval is not None:
        title += f", {interval_text(*row.interval)} with 95 % confidence"
    yield text(_LEFT - 8, middle, row.name, f"label {row.style}", "end")
    yield bar(_LEFT, middle - _THICK / 2, end - _LEFT, _THICK, f"compared {row.style}", title)
    if row.interval is not None:
        low, high = map(scale.place, row.interval)
        yield line(low, middle, high, middle, "whisker")
        yield line(low, middle - 5, low, middle + 5, "whisker")
        yield line(high, middle - 5, high, middle + 5, "whisker")
        end = max(end, high)
    yield text(end + 10, middle, time_text(row.seconds), f"label number {row.style}")


def _limit(x: float, bottom: float) -> Element:
    return element("g", element("title", "no call is quicker here"), line(x, 0, x, bottom, "level bound"))


def _tick(scale: LinearScale, tick: float, bottom: float) -> Element:
    x = scale.place(tick)
    label = "0" if tick == 0 else tick_text(tick)
    return element("g", line(x, 0, x, bottom, "grid"), text(x, bottom + 12, label, "tick", "middle"))
