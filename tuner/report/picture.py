"""The parts that all pictures are made of: the frame, axes, marks and labels, as SVG."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

from tc.base.frozen import frozen
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.scales import Scale
from tc.tuner.report.units import tick_text, time_text

WIDTH: Final = 560.0
"""Of every picture, in its own units, which are about a pixel on a desktop."""

# Text is so high, and neighbouring labels keep such a distance.
_TEXT: Final = 11.0
_LINE: Final = 14.0
_GOLDEN: Final = 0.6180339887498949


@frozen
class Box:
    """The part of a picture inside its axes."""

    left: float
    top: float
    right: float
    bottom: float


@frozen
class Level:
    """A horizontal line across a picture with a label at its right end.  ``style``: a class of the style sheet."""

    name: str
    seconds: float
    style: str


def picture(height: float, label: str, *content: Content) -> Element:
    """A picture of so many units of height; ``label``: what it shows, for those who cannot see it."""
    box = f"0 0 {WIDTH:g} {height:g}"
    return element("svg", *content, viewBox=box, role="img", aria_label=label, class_="picture")


def line(x1: float, y1: float, x2: float, y2: float, style: str) -> Element:
    """A straight line."""
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=style)


def text(x: float, y: float, content: str, style: str, anchor: str = "start") -> Element:
    """Text whose middle has the height ``y``; ``anchor``: where ``x`` is, start, middle or end."""
    return element("text", content, x=x, y=y + 0.35 * _TEXT, class_=style, text_anchor=anchor)


def dot(x: float, y: float, style: str, title: str | None = None, radius: float = 2.6) -> Element:
    """A point; ``title`` is shown to whoever points at it."""
    return element("circle", _title(title), cx=x, cy=y, r=radius, class_=f"dot {style}")


def bar(x: float, y: float, width: float, height: float, style: str, title: str | None = None) -> Element:
    """A rectangle that is seen even where it is next to nothing."""
    return element("rect", _title(title), x=x, y=y, width=max(width, 0.75), height=height, class_=style)


def path(points: Sequence[tuple[float, float]], style: str) -> Element:
    """A line through points."""
    steps = " ".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(points))
    return element("path", d=steps, class_=style)


def jitter(number: int) -> float:
    """Between -0.5 and 0.5, far from that of the next numbers: for points that would lie on each other."""
    return (number * _GOLDEN) % 1.0 - 0.5


def time_axis(scale: Scale, box: Box) -> Iterable[Element]:
    """Ticks of time along the left side, with lines across."""
    for tick in scale.ticks():
        y = scale.place(tick)
        yield line(box.left, y, box.right, y, "grid")
        yield text(box.left - 6, y, tick_text(tick), "tick", "end")


def count_axis(scale: Scale, box: Box) -> Iterable[Element]:
    """Ticks of whole numbers along the left side."""
    for tick in scale.ticks():
        if tick == int(tick):
            y = scale.place(tick)
            yield line(box.left, y, box.right, y, "grid")
            yield text(box.left - 6, y, f"{tick:,.0f}", "tick", "end")


def number_axis(scale: Scale, box: Box, name: str) -> Iterable[Element]:
    """Ticks of whole numbers along the bottom, and what they count."""
    yield line(box.left, box.bottom, box.right, box.bottom, "axis")
    for tick in scale.ticks():
        if tick == int(tick):
            x = scale.place(tick)
            yield line(x, box.bottom, x, box.bottom + 4, "axis")
            yield text(x, box.bottom + 13, f"{tick:,.0f}", "tick", "middle")
    yield text((box.left + box.right) / 2, box.bottom + 29, name, "tick name", "middle")


def levels(found: Iterable[Level], scale: Scale, box: Box) -> Iterable[Element]:
    """The levels as lines, whose labels stand on the right without touching each other."""
    ordered = sorted(found, key=lambda level: -level.seconds)
    heights = [scale.place(level.seconds) for level in ordered]
    for level, y, beside in zip(ordered, heights, spread(heights, 2 * _LINE, box.top, box.bottom), strict=True):
        yield line(box.left, y, box.right, y, f"level {level.style}")
        yield path([(box.right, y), (box.right + 6, beside)], f"leader {level.style}")
        yield text(box.right + 9, beside - 0.45 * _LINE, level.name, f"label {level.style}")
        yield text(box.right + 9, beside + 0.45 * _LINE, time_text(level.seconds), f"label number {level.style}")


def spread(places: Sequence[float], gap: float, low: float, high: float) -> tuple[float, ...]:
    """The places, in the same order, moved as far as needed to lie ``gap`` apart and, if there is room, in bounds.

    The places ascend.
    """
    moved: list[float] = []
    for place in places:
        moved.append(max(place, low + gap / 2, moved[-1] + gap if moved else low))
    # What was pushed beyond the end comes back, and pushes those before it.
    for number in range(len(moved) - 1, -1, -1):
        most = high - gap / 2 if number == len(moved) - 1 else moved[number + 1] - gap
        moved[number] = min(moved[number], most)
    assert all(later - earlier >= gap - 1e-6 for earlier, later in pairwise(moved))
    return tuple(moved)


def _title(title: str | None) -> Element | None:
    return None if title is None else element("title", title)
