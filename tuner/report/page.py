"""``report``: one page of HTML about what a tuner found, which needs nothing but itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tc.tuner.report.findings import Findings, read_findings
from tc.tuner.report.head import head
from tc.tuner.report.markup import Content, Element, Own, element, render
from tc.tuner.report.script import SCRIPT, policy
from tc.tuner.report.section import section
from tc.tuner.report.style import STYLE
from tc.tuner.report.summary import summary

# So many sections are open at first; of more, the first one.
_UNFOLDED: Final = 3


def report(where: str | Path, *, key: bytes | None = None) -> str:
    """The page about the cache at a path or a URL of SQLAlchemy, as HTML.

    It shows text of the cache as text, whatever that says, and loads nothing.  ``key``: refuse what does not bear the
    seal of this key.  CacheError if the cache cannot be trusted, read, or is damaged.
    """
    return page_of(read_findings(where, key))


def page_of(findings: Findings) -> str:
    """The page about what was found."""
    return "<!DOCTYPE html>\n" + render(element("html", _meta(), element("body", _body(findings)), lang="en")) + "\n"


def _meta() -> Element:
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=policy()),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", "What the tuner found"),
        # Without one, browsers ask a server for an icon.
        element("link", rel="icon", href="data:,"),
        element("style", Own(STYLE)),
    )


def _body(findings: Findings) -> Content:
    cases = findings.cases
    unfolded = len(cases) if len(cases) <= _UNFOLDED else 1
    return (
        element(
            "main",
            head(findings),
            element("section", element("h2", "Kernels"), summary(cases)) if cases else _nothing(),
            (section(case, number, unfolded=number < unfolded) for number, case in enumerate(cases)),
        ),
        element("script", Own(SCRIPT)),
    )


def _nothing() -> Element:
    return element("p", "Nothing has been tuned into this cache; run tc-tune first.", class_="note")
