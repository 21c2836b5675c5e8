"""What is known of a winner: its options beside those of the default, its proof, what it takes, and its source."""

from __future__ import annotations

import json
from collections.abc import Iterator

from tc.artifact.packing import decisions_said
from tc.base.counted import counted
from tc.cache.format.records import Measurement, Variant
from tc.tuner.report.case import Case
from tc.tuner.report.flat import differences, flat_options, value_text
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.moments import moment_text


def options_table(case: Case) -> Content:
    """The options that the winner sets otherwise than the default; None without a winner."""
    if case.best is None:
        return None
    if case.default_options is None:
        return element("p", element("code", case.best.options), class_="note")
    found = differences(case.default_options, case.best.options)
    if not found:
        return element("p", "The static default stands: nothing was quicker beyond doubt.", class_="note")
    rows = (
        element(
            "tr",
            element("td", element("code", one.name)),
            element("td", element("code", one.before), class_="before"),
            element("td", element("code", one.after), class_="after"),
        )
        for one in found
    )
    heads = (element("th", name) for name in ("option", "default", "winner"))
    table = element("table", element("thead", element("tr", heads)), element("tbody", rows), class_="options")
    return element("div", table, class_="wide")


def details(case: Case) -> Content:
    """Proof, numerics, resources and what the winner was made for; None without one."""
    if case.winner is None or case.best is None:
        return None
    known = (
        ("Decided", "\n".join(decisions_said(case.winner.executable))),
        ("Proof", case.winner.proof),
        ("Numerics", case.winner.numerics),
        ("Resources", resources_text(case.winner.resources)),
        ("Measured", _measured(case.best)),
        ("Made", _made(case.winner)),
        ("Compiler", case.ingredients.compiler),
        ("Needs", ", ".join(part for part in (case.winner.features, case.winner.libc) if part)),
    )
    return element("dl", (node for name, text in known if text for node in _fact(name, text)), class_="facts")


def source(case: Case) -> Content:
    """The source of the winner, folded; None without a winner."""
    if case.winner is None:
        return None
    lines = counted(case.winner.source.count("\n"), "line")
    return element(
        "details",
        element("summary", "The winning source", element("small", lines)),
        element("pre", element("code", case.winner.source), tabindex=0),
        class_="plain source",
    )


def resources_text(text: str) -> str:
    """The resources in a text of JSON, without those that are zero, in a line for each kernel of a GPU."""
    grids: list[object] = []
    parts = []
    for name, value in flat_options(text).items():
        if name == "grids" and isinstance(value, list):
            grids = value
        elif value not in (0, None, ""):
            parts.append(f"{name} {counted(value, 'byte')}" if type(value) is int else f"{name} {value_text(value)}")
    lines = [", ".join(parts)] if parts else []
    return "\n".join([*lines, *(_grid(grid) for grid in grids if isinstance(grid, dict))])


def _grid(grid: dict[str, object]) -> str:
    return ", ".join(f"{name} {value_text(value)}" for name, value in grid.items() if value not in (0, None))


def _measured(best: Measurement) -> str:
    return f"{moment_text(best.at)}, {best.policy}, in {counted(best.samples, 'round')} in turns with the default"


def _made(variant: Variant) -> str:
    """Who made the variant, as far as it says."""
    try:
        origin = json.loads(variant.origin)
    except (ValueError, RecursionError):
        return ""
    names = ("made", "at", "system", "python", "tc")
    return ", ".join(_said(name, origin[name]) for name in names if name in origin) if isinstance(origin, dict) else ""


def _said(name: str, value: object) -> str:
    if name == "at" and isinstance(value, str):
        return moment_text(value)
    return f"{name} {value_text(value)}" if name in {"python", "tc"} else value_text(value)


def _fact(name: str, text: str) -> Iterator[Element]:
    yield element("dt", name)
    yield element("dd", text)
