"""The page is well-formed, needs nothing but itself, and shows hostile text as text."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tc.cache.content.store import Store
from tc.tuner.report.findings import Findings
from tc.tuner.report.markup import render
from tc.tuner.report.page import page_of, report
from tc.tuner.report.section import section
from tc.tuner.search.search import Origin
from tc.tuner.trial.trial_outcome import FailureKind
from tests.tuner.report.synthetic import HOSTILE, fill

VOID = {"meta", "link", "br"}
NAMES = re.compile(r"class=\"([^\"]*)\"")


class Checker(HTMLParser):
    """Reads a page and asserts that its elements are closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.counts: Counter[str] = Counter()
        self.attributes: list[tuple[str, str, str]] = []
        self.scripts: list[str] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.counts[tag] += 1
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        self.text.append(data)


@pytest.fixture(scope="module")
def checked(page: str) -> Checker:
    return Checker(page)


def test_the_page_is_well_formed(checked: Checker) -> None:
    assert checked.counts["html"] == checked.counts["body"] == checked.counts["main"] == 1
    assert checked.counts["h1"] == 1
    assert checked.counts["h3"] == 4


def test_links_lead_to_sections_that_exist(checked: Checker) -> None:
    names = [value for _, name, value in checked.attributes if name == "id"]
    assert len(set(names)) == len(names)
    assert {value for tag, name, value in checked.attributes if (tag, name) == ("a", "href")} == {
        f"#{name}" for name in names
    }


def test_nothing_is_loaded(page: str, checked: Checker) -> None:
    assert {value for tag, name, value in checked.attributes if name in {"src", "href"} and tag != "a"} == {"data:,"}
    assert not [name for _, name, _ in checked.attributes if name.startswith("on")]
    assert "http:" not in page
    assert "https:" not in page
    assert "url(" not in page
    assert "@import" not in page


def test_hostile_text_is_text(page: str, checked: Checker) -> None:
    assert checked.counts["script"] == 1
    assert "alert" not in "".join(checked.scripts)
    assert HOSTILE not in page
    assert HOSTILE in "".join(checked.text)
    assert not [value for _, name, value in checked.attributes if name in {"class", "id"} and "alert" in value]


def test_every_class_of_failures_and_origins_has_a_colour(page: str) -> None:
    used = {name for names in NAMES.findall(page) for name in names.split() if name.startswith(("failure-", "origin-"))}
    assert len(used) == len(FailureKind) + len(Origin)
    assert [name for name in used if f".{name} {{" not in page] == []


def test_every_part_is_there(checked: Checker) -> None:
    text = "".join(checked.text)
    for part in (
        "median speed-up",
        "geometric mean",
        "200 trials",
        "Convergence",
        "Candidates by generation",
        "Which options mattered",
        "association, not cause",
        "Times by value",
        "Best, default and bound",
        "Options of the winner",
        "Failures",
        "The winning source",
        "bits 6a52e64178db3739",
        "tile: (), since the static rule chooses it",
        "every instance of 2 statements",
        "temporaries 4,096 bytes",
        "The static default stands",
        "2 with a winner, 1 with the default",
        "x 1048576 float32default",
        "Nothing has won yet",
        "no winner",
        "8.10\N{NO-BREAK SPACE}ms",
    ):
        assert part in text, part


def test_the_page_is_the_same_every_time(page: str, findings: Findings) -> None:
    assert page_of(findings) == page


def test_times_that_no_clock_gives_do_no_harm(findings: Findings) -> None:
    case = next(case for case in findings.cases if case.best is not None)
    assert case.best is not None
    for seconds in (0.0, -1.0, 5e-324, 1.7e308):
        trials = tuple(replace(trial, seconds=seconds) for trial in case.trials)
        best = replace(case.best, seconds=seconds, low=seconds, high=seconds, default_seconds=seconds)
        odd = replace(case, trials=trials, best=best, beside=best)
        assert odd.speedup is None
        Checker(render(section(odd, 0, unfolded=True)))


def test_few_trials_render(findings: Findings) -> None:
    case = next(case for case in findings.cases if case.best is not None)
    for count in (0, 1, 2, 3):
        few = replace(case, trials=case.trials[:count], best=None, beside=None, winner=None)
        Checker(render(section(few, 0, unfolded=False)))


def test_many_trials_are_thinned(findings: Findings) -> None:
    case = next(case for case in findings.cases if case.best is not None)
    many = replace(case, trials=case.trials * 60)
    text = render(section(many, 0, unfolded=False))
    Checker(text)
    assert "points are drawn" in text
    assert text.count("<circle") < 8000


def test_strange_numbers_and_names_render(findings: Findings) -> None:
    case = next(case for case in findings.cases if case.best is not None)
    trials = tuple(
        replace(
            trial,
            generation=(-1) ** place * 10**17 * place,
            number=-place,
            options='{"a": [[1], {"b": 2}], "c": "\\ud800", "' + HOSTILE + '": ' + str(place % 3) + "}",
            reason="\x00" + HOSTILE,
            outcome=HOSTILE if place % 2 else trial.outcome,
            seconds=None if place % 2 else trial.seconds,
        )
        for place, trial in enumerate(case.trials)
    )
    text = render(section(replace(case, trials=trials), 0, unfolded=True))
    text.encode("utf-8")
    assert Checker(text).counts["script"] == 0


def test_a_file_and_its_copy_have_the_same_page(tmp_path: Path, page: str, cache: Path) -> None:
    where = tmp_path / "tuned.db"
    fill(Store.open(where))
    assert report(where) == page.replace(str(cache), str(where))
