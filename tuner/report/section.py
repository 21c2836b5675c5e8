"""The section of one kernel: pictures of its search, and what won."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tc.base.counted import counted
from tc.tuner.report.association import Association
from tc.tuner.report.by_generation import by_generation
from tc.tuner.report.case import Case
from tc.tuner.report.comparison import comparison
from tc.tuner.report.convergence import convergence
from tc.tuner.report.failures import failures
from tc.tuner.report.gene_pictures import explained, gene_associations, strips
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.summary import anchor, gain_text, interval_of, sizes_text, target_text
from tc.tuner.report.units import share_text, time_text
from tc.tuner.report.winner import details, options_table, source

_MEANING: Final = (
    "The share of the variance of log time among the {} that goes with the value of each option, taken alone, less "
    "what as many values explain by chance.  It is association, not cause: the search changes many options at once "
    "and stays near what was quick, so shares overlap, and changing one option alone may do something else."
)


def section(case: Case, number: int, *, unfolded: bool) -> Element:
    """The section, which can be folded; ``number``: of the row in the table."""
    head = element(
        "summary",
        element("h3", case.name),
        element("span", f"{sizes_text(case)} {case.types}", class_="sizes"),
        element("b", "no winner" if case.speedup is None else gain_text(case)),
    )
    genes = gene_associations(case)
    body = (
        element("pre", element("code", case.text.strip()), class_="text"),
        element("p", _sentence(case), class_="lead"),
        element(
            "div",
            _panel("Convergence", convergence(case)),
            _panel("Candidates by generation", by_generation(case)),
            _panel("Which options mattered", _genes(case, genes) if genes else None),
            _panel("Times by value of the first three", strips(genes)) if genes else None,
            _panel("Best, default and bound", comparison(case), _confidence(case)),
            _panel("Options of the winner", options_table(case)),
            class_="panels",
        ),
        _panel("The winner", details(case)),
        _panel("Failures", failures(case)),
        source(case),
    )
    return element(
        "details", head, element("div", body), id=anchor(number), class_="kernel", open="" if unfolded else None
    )


def _panel(title: str, *content: Content) -> Element | None:
    """A titled part of the section; None where there is nothing to show."""
    if all(part is None for part in content):
        return None
    return element("section", element("h4", title), content)


def _genes(case: Case, found: Sequence[Association]) -> Content:
    return explained(found), element("p", _MEANING.format(counted(len(case.points), "measured trial")), class_="note")


def _confidence(case: Case) -> Content:
    if case.best is None:
        return None
    bound = " No call falls below the bound on this machine: the roofline of its work." if case.bound else ""
    return element("p", f"Medians, measured in turns, with intervals of 95 % confidence.{bound}", class_="note")


def _sentence(case: Case) -> str:
    """What came of the kernel, in words."""
    tried = f"{counted(len(case.trials), 'trial')} on {target_text(case)}, {counted(case.threads, 'thread')}"
    if case.copies:
        share = "shares" if case.copies == 1 else "share"
        tried += f"; {counted(case.copies, 'trial')} made a source that was timed before and {share} its time"
    if case.seconds is None or case.default is None:
        return f"Nothing has won yet: {tried}." if case.trials else "Nothing was tried."
    between = interval_of(case)
    won = f"{time_text(case.seconds)}{f' ({between})' if between else ''}"
    if case.default_won:
        won = f"The static default stands, with {won}"
    else:
        won += f" instead of {time_text(case.default)}"
    reached = "" if case.fraction is None else f", {share_text(case.fraction)} of what this machine allows"
    return f"{won}{reached}. {tried[0].upper()}{tried[1:]}."
