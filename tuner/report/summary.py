"""The table of all kernels, a row for each, the greatest gain first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.counted import counted
from tc.tuner.report.brief import time_or_none
from tc.tuner.report.case import Case
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.units import interval_text, ratio_text, share_text, time_text
from tc.tuner.trial.trial_outcome import counted_failures

_BAR: Final = (88.0, 10.0)
_TIMES: Final = "\N{MULTIPLICATION SIGN}"
_NONE: Final = "\N{EN DASH}"
# Table heads with whether their columns hold numbers.
_HEADS: Final = (
    ("kernel", False),
    ("target", False),
    ("default", True),
    ("winner", True),
    ("speed-up", False),
    ("bound", True),
    ("reached", True),
    ("trials", True),
    ("failures", True),
)


def summary(cases: Sequence[Case]) -> Element:
    """The table; its rows lead to the sections of the same number."""
    greatest = max((case.speedup for case in cases if case.speedup is not None), default=1.0)
    machines = len({case.machine for case in cases}) > 1
    heads = (element("th", name, class_="number" if number else None) for name, number in _HEADS)
    rows = (_row(case, number, greatest, machines) for number, case in enumerate(cases))
    table = element("table", element("thead", element("tr", heads)), element("tbody", rows), class_="summary")
    return element("div", table, class_="wide")


def anchor(number: int) -> str:
    """The name of the section of the case with this number."""
    return f"kernel-{number}"


def sizes_text(case: Case) -> str:
    """The arguments with their extents: ``A 1..100x300, B 300x70``."""
    return ", ".join(f"{name} {_TIMES.join(extents) or 'scalar'}" for name, extents in case.sizes)


def target_text(case: Case) -> str:
    """The target with the base of its architecture."""
    architecture = case.ingredients.architecture.partition("+")[0]
    return f"{case.ingredients.target} {architecture}".strip()


def interval_of(case: Case) -> str | None:
    """Where the winner's time lies with 95 % confidence."""
    if case.best is None:
        return None
    low, high = time_or_none(case.best.low), time_or_none(case.best.high)
    return None if low is None or high is None else interval_text(low, high)


def _row(case: Case, number: int, greatest: float, machines: bool) -> Element:
    place = f"{counted(case.threads, 'thread')}{f', {case.machine}' if machines else ''}"
    architecture = f"{case.ingredients.target}:{case.ingredients.architecture}"
    return element(
        "tr",
        element(
            "td",
            element("a", case.name, href=f"#{anchor(number)}"),
            element("small", f"{sizes_text(case)} {case.types}"),
            class_="name",
        ),
        element("td", target_text(case), element("small", place), title=architecture),
        _number(None if case.default is None else time_text(case.default)),
        _number(None if case.seconds is None else time_text(case.seconds), interval_of(case)),
        element("td", _gain(case, greatest), class_="gain"),
        _number(None if case.bound is None else time_text(case.bound)),
        _number(None if case.fraction is None else share_text(case.fraction)),
        _number(f"{len(case.trials):,}"),
        _number(
            f"{len(case.failed):,}",
            title=", ".join(counted_failures(kind, count) for kind, count in case.failures.items()),
        ),
    )


def _number(text: str | None, note: str | None = None, title: str | None = None) -> Element:
    return element("td", text or _NONE, element("small", note) if note else None, class_="number", title=title or None)


def gain_text(case: Case) -> str:
    """How many times as quick as the default a winner is, or that it is the default."""
    return "default" if case.default_won else _NONE if case.speedup is None else ratio_text(case.speedup)


def _gain(case: Case, greatest: float) -> Content:
    """The number and a bar, with a mark where the default is."""
    if case.speedup is None:
        return gain_text(case)
    width, height = _BAR
    scale = (width - 2) / max(greatest, 1.0)
    box = f"0 0 {width:g} {height:g}"
    return (
        element("b", gain_text(case)),
        element(
            "svg",
            element("rect", x=0, y=2, width=scale * case.speedup, height=height - 4, class_="gain-bar"),
            element("line", x1=scale, x2=scale, y1=0, y2=height, class_="one"),
            viewBox=box,
            width=width,
            height=height,
            aria_hidden="true",
        ),
    )
