"""The head of the page: what was tuned, where, when and with what, and what came of it as a whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tc.base.counted import counted
from tc.tuner.report.brief import Brief
from tc.tuner.report.case import Case, count_kinds, mean_speedup, median_speedup
from tc.tuner.report.findings import Findings
from tc.tuner.report.markup import Content, Element, element
from tc.tuner.report.moments import moment_text, stretch_text
from tc.tuner.report.palette import kind_style, legend
from tc.tuner.report.units import ratio_text, time_text
from tc.tuner.trial.trial_outcome import counted_failures

# So many different values are named; more are counted.
_NAMED: Final = 4


def head(findings: Findings) -> Element:
    """The head of a page about all that was found."""
    failures = count_kinds(trial.outcome for case in findings.cases for _, trial in case.failed)
    return element(
        "header",
        element("h1", "What the tuner found"),
        element("p", listed((case.name for case in findings.cases), "kernel") or "nothing", class_="lead"),
        element("div", _tiles(findings, failures), class_="tiles"),
        legend((kind_style(kind), counted_failures(kind, count)) for kind, count in failures.items())
        if failures
        else None,
        element("dl", _facts(findings), class_="facts"),
        _runs(findings) if findings.briefs else None,
    )


def listed(values: Iterable[str], noun: str) -> str:
    """Different values, each once; how many more there are where they are many."""
    found = list(dict.fromkeys(value for value in values if value))
    more = len(found) - _NAMED
    return ", ".join(found[:_NAMED]) + (f" and {counted(more, f'other {noun}')}" if more > 0 else "")


def _tiles(findings: Findings, failures: Mapping[str, int]) -> Iterator[Element]:
    median, mean = median_speedup(findings.cases), mean_speedup(findings.cases)
    trials, failed = len(findings.trials), sum(failures.values())
    yield _tile("median speed-up", "none" if median is None else ratio_text(median), "over the static default", True)
    yield _tile("geometric mean", "none" if mean is None else ratio_text(mean), "over the static default", True)
    yield _tile("kernels", f"{len(findings.cases):,}", _won(findings.cases))
    yield _tile("runs", f"{len(findings.briefs):,}", None)
    yield _tile("trials", f"{trials:,}", f"{trials - failed:,} measured")
    yield _tile("failures", f"{failed:,}", f"{100 * failed / trials:.1f} % of the trials" if trials else None)


def _won(cases: Sequence[Case]) -> str:
    """For how many kernels something else than the default won, and for how many the default."""
    default = sum(case.default_won for case in cases)
    won = sum(case.best is not None for case in cases) - default
    return f"{won:,} with a winner" + (f", {default:,} with the default" if default else "")


def _tile(name: str, value: str, note: str | None, accent: bool = False) -> Element:
    return element(
        "div",
        element("b", value, class_="accent" if accent else None),
        element("span", name),
        element("small", note) if note else None,
    )


def _facts(findings: Findings) -> Content:
    briefs = findings.briefs
    machines = findings.machines or tuple(brief.run.machine for brief in briefs)
    moments = sorted([*(brief.run.started for brief in briefs), *(trial.at for trial in findings.trials)])
    known = (
        ("Machine", listed(machines, "machine")),
        ("When", stretch_text(moments[0], moments[-1]) if moments else ""),
        ("Budget of a run", listed((brief.budget for brief in briefs), "budget")),
        ("Seed", listed((brief.seed for brief in briefs), "seed")),
        ("Strategy", listed((brief.strategy for brief in briefs), "strategy")),
        ("Numerics", listed((brief.numerics for brief in briefs), "class")),
        ("Not tuned", counted(findings.untuned, "other kernel") if findings.untuned else ""),
        ("Cache", findings.place),
    )
    return (node for name, text in known if text for node in (element("dt", name), element("dd", text)))


def _runs(findings: Findings) -> Element:
    trials = count_kinds(trial.run for trial in findings.trials)
    names = ("definition", "started", "budget", "seed", "strategy", "numerics", "new trials", "bound", "machine")
    rows = (_run(brief, trials.get(brief.run.name, 0)) for brief in findings.briefs)
    table = element(
        "table", element("thead", element("tr", (element("th", name) for name in names))), element("tbody", rows)
    )
    return element("details", element("summary", "All runs"), element("div", table, class_="wide"), class_="plain")


def _run(brief: Brief, trials: int) -> Element:
    bound = "" if brief.bound is None else time_text(brief.bound)
    cells = (
        brief.definition,
        moment_text(brief.run.started),
        brief.budget,
        brief.seed,
        brief.strategy,
        brief.numerics,
        f"{trials:,}",
        bound,
        brief.run.machine,
    )
    return element("tr", (element("td", cell) for cell in cells))
