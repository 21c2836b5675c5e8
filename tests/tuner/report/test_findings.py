"""What is read from a cache: the winners, what they are compared with, and what came before."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from tc.base.errors import CacheError
from tc.cache.content.store import Store
from tc.cache.format.records import Measurement, Run
from tc.tuner.report.brief import brief_of
from tc.tuner.report.by_generation import columns_of
from tc.tuner.report.case import Case, mean_speedup, median_speedup
from tc.tuner.report.convergence import steps
from tc.tuner.report.findings import Findings, compared, read_findings
from tc.tuner.report.page import report
from tc.tuner.report.picture import spread
from tc.tuner.report.summary import sizes_text
from tc.tuner.trial.trial_outcome import FailureKind
from tests.tuner.report.synthetic import BROKEN, HARMFUL, HOSTILE, MACHINE, MATMUL, SETTLED, TRIALS, filled


def case_of(findings: Findings, name: str) -> Case:
    (found,) = (case for case in findings.cases if case.name == name)
    return found


def test_the_greatest_gain_comes_first(findings: Findings) -> None:
    assert [case.name for case in findings.cases] == [HOSTILE, MATMUL.name, SETTLED.name, BROKEN.name]
    gains = [case.speedup for case in findings.cases]
    assert gains[-2:] == [pytest.approx(1.0), None]
    assert len(findings.briefs) == 5
    assert len(findings.trials) == 5 * TRIALS
    assert findings.untuned == 1
    assert findings.machines == (MACHINE,)


def test_a_case_knows_what_it_is_compared_with(findings: Findings) -> None:
    case = case_of(findings, MATMUL.name)
    assert case.sizes == (("A", ("1024", "1024")), ("B", ("1024", "1024")))
    assert case.text == MATMUL.text
    assert case.types == "float32"
    assert not case.default_won
    assert case_of(findings, SETTLED.name).default_won
    assert not case_of(findings, BROKEN.name).default_won
    assert case.default == MATMUL.default
    assert case.bound == pytest.approx(0.42 * MATMUL.default)
    assert case.seconds == min(point.seconds for point in case.points)
    assert case.fraction == pytest.approx(0.42 * MATMUL.default / case.seconds)
    assert case.best is not None
    assert case.beside is not None
    assert case.beside.options == case.default_options != case.best.options
    assert len(case.briefs) == 2


def test_a_bound_that_something_falls_below_is_none(findings: Findings) -> None:
    case = case_of(findings, MATMUL.name)
    assert case.bound is not None
    assert case.best is not None
    for quick in (
        replace(case, best=replace(case.best, seconds=0.9 * case.bound)),
        replace(case, best=replace(case.best, default_seconds=0.9 * case.bound)),
        replace(case, trials=(*case.trials, replace(case.trials[0], seconds=0.9 * case.bound))),
    ):
        assert quick.bound is None
        assert quick.fraction is None
    equal = replace(case, best=replace(case.best, seconds=case.bound))
    assert equal.fraction == 1.0


def test_a_case_shows_its_own_definition(findings: Findings) -> None:
    case = case_of(findings, MATMUL.name)
    for text in (
        f"# {HOSTILE}\n{SETTLED.text}\n{MATMUL.text} # of all\n{SETTLED.text.replace('copy', 'other')}",
        f"{MATMUL.text}{SETTLED.text}",
        MATMUL.text,
    ):
        briefs = tuple(replace(brief, text=text) for brief in case.briefs)
        assert replace(case, briefs=briefs).text == MATMUL.text
    for text in (SETTLED.text, "def mm(", HOSTILE, MATMUL.text + " " * 100_000):
        assert replace(case, briefs=(replace(case.briefs[0], text=text),)).text == text


def test_failures_are_counted_by_kind(findings: Findings) -> None:
    case = case_of(findings, BROKEN.name)
    assert not case.points
    assert case.speedup is None
    assert case.default is None
    assert len(case.failures) == len(FailureKind)
    assert sum(case.failures.values()) == TRIALS


def test_means_are_over_kernels_with_a_winner(findings: Findings) -> None:
    assert median_speedup(findings.cases) == case_of(findings, MATMUL.name).speedup
    assert mean_speedup(findings.cases) == pytest.approx((3.1 * 1.7) ** (1 / 3), rel=0.05)
    assert median_speedup(()) is None
    assert mean_speedup(()) is None


def test_the_best_so_far_goes_down_in_steps(findings: Findings) -> None:
    case = case_of(findings, HARMFUL.name)
    corners = steps(case.points, TRIALS - 1)
    heights = [seconds for _, seconds in corners]
    assert heights == sorted(heights, reverse=True)
    assert corners[0] == (case.points[0].place, case.points[0].seconds)
    assert corners[-1] == (TRIALS - 1, min(point.seconds for point in case.points))


def test_generations_hold_every_trial_and_share_columns_where_they_are_many(findings: Findings) -> None:
    case = case_of(findings, MATMUL.name)
    columns = columns_of(case)
    assert len(columns) == 26
    assert [column.first for column in columns] == [*range(13), *range(13)]
    many = replace(case, trials=tuple(replace(t, generation=place // 2) for place, t in enumerate(case.trials)))
    for found in (columns, columns_of(many)):
        assert len(found) <= 36
        assert sum(len(column.seconds) + sum(column.failures.values()) for column in found) == 2 * TRIALS


def test_the_default_of_the_same_run_is_compared() -> None:
    def measured(options: str, run: str, seconds: float, default: float) -> Measurement:
        return Measurement("k", options, 1, "m", "warm", seconds, seconds, seconds, default, 3, run, f"at {run}")

    first, second = measured("default", "1", 4.0, 4.0), measured("default", "2", 5.0, 5.0)
    best = measured("best", "1", 2.0, 4.0)
    assert compared([second, best, first]) == (best, first)
    assert compared([second]) == (second, second)
    assert compared([best]) == (best, None)
    assert compared([]) == (None, None)


@pytest.mark.parametrize(
    "settings", ["", "{", "[]", "[" * 99_999, '{"task": 3, "bound": "x", "seed": null}', '{"task": {"signature": []}}']
)
def test_settings_may_say_anything(settings: str) -> None:
    found = brief_of(Run("r", settings, "m", "now"))
    assert (found.definition, found.text, found.budget, found.bound, found.arguments) == ("", "", "", None, ())


def test_what_stays_open_is_said(findings: Findings) -> None:
    signature: dict[str, object] = {
        "arguments": [["s", {"shape": []}], ["A", {"shape": [96, 7]}], ["B", {"shape": [96]}], ["C", {"shape": [9]}]],
        "symbolic": [{"most": 96, "arguments": ["A", "B"]}],
    }

    def extents() -> str:
        brief = brief_of(Run("r", json.dumps({"task": {"signature": signature}}), "m", "now"))
        return ", ".join(f"{name} {'x'.join(found)}" for name, found in brief.arguments)

    assert extents() == "s , A 1..96x7, B 1..96, C 9"
    odd: tuple[object, ...] = ({}, 3, [3], [{}], [{"most": True, "arguments": ["A"]}], [{"most": 96, "arguments": "A"}])
    for symbolic in ([], *odd):
        signature["symbolic"] = symbolic
        assert extents() == "s , A 96x7, B 96, C 9"
    case = case_of(findings, MATMUL.name)
    opened = replace(case, briefs=(), ingredients=replace(case.ingredients, symbolic="[[1024,[0]]]"))
    assert sizes_text(opened) == "t0 1..1024\N{MULTIPLICATION SIGN}1024, t1 1024\N{MULTIPLICATION SIGN}1024"


@pytest.mark.parametrize("bound", ["-1.0", "0.0", "1e300", "Infinity", "NaN", "true"])
def test_a_bound_is_a_time(bound: str) -> None:
    assert brief_of(Run("r", f'{{"bound": {bound}}}', "m", "now")).bound is None


@pytest.mark.parametrize(
    ("places", "moved"),
    [
        ([], ()),
        ([50.0], (50.0,)),
        ([50.0, 51.0], (50.0, 60.0)),
        ([0.0, 1.0, 99.0], (5.0, 15.0, 95.0)),
        ([97.0, 98.0, 99.0], (75.0, 85.0, 95.0)),
    ],
)
def test_labels_do_not_touch(places: list[float], moved: tuple[float, ...]) -> None:
    assert spread(places, 10.0, 0.0, 100.0) == moved


def test_a_kernel_that_no_run_names_has_its_key(tmp_path: Path) -> None:
    where = filled(tmp_path / "tuned.db")
    with closing(sqlite3.connect(where)) as connection, connection:
        connection.execute("DELETE FROM runs")
    found = read_findings(where, None)
    assert {case.name for case in found.cases} == {f"kernel {case.ingredients.key[:8]}" for case in found.cases}
    assert ("t0", ("1024", "1024")) in [size for case in found.cases for size in case.sizes]
    assert "kernel " in report(where)


def test_a_cache_without_searches_says_so(tmp_path: Path) -> None:
    where = tmp_path / "empty.db"
    Store.open(where).add_kernel(MATMUL.ingredients)
    assert "run tc-tune first" in report(where)


def test_files_that_cannot_be_read_are_errors(tmp_path: Path) -> None:
    with pytest.raises(CacheError, match="does not exist"):
        report(tmp_path / "none.db")
    foreign = tmp_path / "foreign.db"
    foreign.write_text("this is no cache at all\n" * 100)
    with pytest.raises(CacheError, match="not a cache"):
        report(foreign)
    where = filled(tmp_path / "tuned.db", key=b"k" * 32)
    assert HOSTILE not in report(where, key=b"k" * 32)
    with pytest.raises(CacheError, match="seal"):
        report(where, key=b"x" * 32)
    with closing(sqlite3.connect(where)) as connection, connection:
        connection.execute("UPDATE trials SET seconds = 1e-9 WHERE number = 7")
    with pytest.raises(CacheError, match="damaged"):
        report(where)
