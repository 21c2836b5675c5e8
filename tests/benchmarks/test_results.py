"""Reports come back from JSON as they went, and say where a file is not one."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from benchmarks.measuring.contender import Contender
from benchmarks.measuring.messages import Refused, Sample
from benchmarks.reporting.results import Missing, Report
from benchmarks.searching.tuned import Winner, Winners, load_winners, save_winners
from tc.base.json_records import from_json, load_record, save_record, to_json
from tests.benchmarks.reports import report, row


def some_report() -> Report:
    missing = (Missing(Contender.JAX, "not installed"), Missing(Contender.TORCH, "off", wrong=True))
    times = {Contender.OURS: [1.0, 2.5, 3.0], Contender.NUMPY: [4.0, 5.0, 6.0]}
    return report(row(times, missing=missing), row({}, case="empty", calibrations=[1.0]))


def test_a_report_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "folder" / "results.json"
    save_record(some_report(), path)
    assert load_record(Report, path) == some_report()


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (
            ("rows", 0, "suite"),
            "ancient",
            r"Report\.rows\[0\]\.suite must be one of paper, modern, language, operators, got 'ancient'",
        ),
        (("machine", "cores"), "two", r"Report\.machine\.cores must be a int, got 'two'"),
        (("machine", "cores"), True, r"Report\.machine\.cores must be a int, got True"),
        (("settings", "turns"), 3, r"Report\.settings has no turns; known: target, threads"),
        (("roofs",), {"operations": 1.0}, r"Report\.roofs lacks bandwidths"),
        (("rows",), {}, r"Report\.rows must be a list, got \{\}"),
    ],
)
def test_what_is_no_report_is_refused_with_its_place(
    tmp_path: Path, place: tuple[str | int, ...], value: object, message: str
) -> None:
    data = json.loads(json.dumps(to_json(some_report())))
    inner = data
    for step in place[:-1]:
        inner = inner[step]
    inner[place[-1]] = value
    path = tmp_path / "results.json"
    path.write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(ValueError, match=rf"results\.json: {message}"):
        load_record(Report, path)


def test_defaults_may_be_missing_and_integers_stand_for_floats() -> None:
    assert from_json(Refused, {"reason": "x"}) == Refused("x")
    read = from_json(Sample, {"seconds": 1, "least": 1, "most": 2, "calls": 3, "faults": 0})
    assert isinstance(read.seconds, float)


def test_what_has_no_form_in_json_is_refused() -> None:
    @dataclass
    class Odd:
        value: complex

    with pytest.raises(TypeError, match=r"1j has no form in JSON"):
        to_json(Odd(1j))


def test_winners_survive_their_file(tmp_path: Path) -> None:
    path = tmp_path / "options" / "cpu.json"
    assert load_winners(path) == Winners({})
    one = Winner(
        {"packed_operands": 0}, 1.0, (0.9, 1.1), 2.0, 0.5, "Abacus 7", 40, {"crashed": 1}, "10m", 3, "time is up"
    )
    two = replace(one, options={"unroll": 2}, seconds=2.0, bound=None)
    assert (one.gain, one.won, two.won) == (2.0, True, False)
    winners = Winners({}).with_winner("tmm", one).with_winner("c3", one).with_winner("tmm", two)
    save_winners(winners, path)
    assert load_winners(path) == winners
    # Where nothing was quicker, the default options are as good.
    assert winners.options == {"c3": {"packed_operands": 0}}
