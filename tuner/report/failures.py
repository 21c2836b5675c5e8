"""The table of failures of one kernel: what kind, how many, and one of the reasons."""

from __future__ import annotations

from typing import Final

from tc.tuner.report.case import Case
from tc.tuner.report.markup import Content, element
from tc.tuner.report.palette import kind_style

_LONGEST: Final = 600


def failures(case: Case) -> Content:
    """A row for each kind, in the order in which they are declared; None without failures."""
    if not case.failed:
        return None
    reasons: dict[str, str] = {}
    for _, trial in case.failed:
        reasons.setdefault(trial.outcome, trial.reason)
    rows = (
        element(
            "tr",
            element("td", element("i", class_=f"swatch {kind_style(kind)}"), kind, class_="kind"),
            element("td", f"{count:,}", class_="number"),
            element("td", element("code", reasons[kind][:_LONGEST]), class_="reason"),
        )
        for kind, count in case.failures.items()
    )
    heads = (element("th", "kind"), element("th", "count", class_="number"), element("th", "the first one's reason"))
    table = element("table", element("thead", element("tr", heads)), element("tbody", rows))
    return element("div", table, class_="wide")
