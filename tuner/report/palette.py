"""Which class of the style sheet colours what; what a file says never becomes the name of a class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from tc.tuner.report.markup import Element, element
from tc.tuner.search.search import Origin
from tc.tuner.trial.trial_outcome import FailureKind

_ORIGINS: Final = {origin.value: f"origin-{origin.value}" for origin in Origin}
_KINDS: Final = {kind.value: f"failure-{kind.name.lower().replace('_', '-')}" for kind in FailureKind}
OTHER: Final = "other"


def origin_style(origin: str) -> str:
    """The class for how a candidate came about."""
    return _ORIGINS.get(origin, OTHER)


def kind_style(kind: str) -> str:
    """The class for a kind of failure."""
    return _KINDS.get(kind, OTHER)


def origins_in_order(found: Iterable[str]) -> tuple[str, ...]:
    """Each origin once, as they are declared; others come last."""
    names = set(found)
    return (*(name for name in _ORIGINS if name in names), *sorted(names - _ORIGINS.keys()))


def legend(entries: Iterable[tuple[str, str]]) -> Element:
    """Names with their colours: pairs of a class and a name."""
    return element(
        "ul", (element("li", element("i", class_=f"swatch {style}"), name) for style, name in entries), class_="legend"
    )
