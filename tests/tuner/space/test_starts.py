"""Searches that start from given options: these are tried first, exactly as they are, and bad ones end nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import tc
from tc.commands.tune import main
from tc.targets.target import parse_target
from tc.tuner.search.search import Origin
from tc.tuner.space.starts import read_starts
from tc.tuner.trial.trial_outcome import Failed, FailureKind, Measured

TEXT = "def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }"
SHAPES = ((33, 17), (17, 29))
# No gene has a place for threads, and none of the values of the space is a tile of 5.
GOOD = tc.CpuOptions(tc.ScheduleOptions(tile=(5, 7)), register_tile=(), threads=1)
BAD = tc.CpuOptions(tc.ScheduleOptions(tile=(8, 8, 8, 8)))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the machine allows takes long to measure, and decides nothing here."""
    monkeypatch.setattr("tc.tuner.session.search_setup._bound", lambda _work, _target, _device: None)


def test_starts_are_tried_first_and_bad_ones_end_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mm = tc.define(TEXT).mm
    found = mm.tune(
        *SHAPES, start=[BAD, GOOD, GOOD], budget="3 trials", cache=tmp_path / "a.db", seed=1, jobs=1, progress=True
    )
    assert [trial.candidate.options for trial in found.trials[:3]] == [tc.CpuOptions(), BAD, GOOD]
    assert all(trial.candidate.origin is Origin.SEED for trial in found.trials[:3])
    bad, good = found.started
    assert (bad, good) == found.trials[1:3]
    assert isinstance(bad.outcome, Failed)
    assert bad.outcome.kind is FailureKind.ILLEGAL
    assert isinstance(good.outcome, Measured)
    said = capsys.readouterr().err
    assert re.search(r"^start 1 failed: illegal: .*tile", said, re.MULTILINE)
    assert re.search(r"^start 2: [\d.]+ .?s$", said, re.MULTILINE)
    # A command that starts from the same ones tries nothing again, but says what came of them.
    (tmp_path / "mm.tc").write_text(TEXT)
    (tmp_path / "good.json").write_text(json.dumps([json.loads(GOOD.to_json()), {}]))
    command = [str(tmp_path / "mm.tc"), "--size", "M=33,N=29,K=17", "--budget", "3 trials", "--jobs", "1"]
    starts = ["--start", BAD.to_json(), "--start", str(tmp_path / "good.json")]
    assert main([*command, "--cache", str(tmp_path / "a.db"), *starts]) == 0
    said = capsys.readouterr().err
    assert "3 trials are known from before" in said
    for number in (1, 2, 3):
        assert f"start {number}" in said


WRONG: list[tuple[Any, str]] = [
    ("fast", "start must be tc.CpuOptions(...), tc.GpuOptions(...) or a list of them, got 'fast'"),
    ([GOOD, None], "start must be tc.CpuOptions(...), tc.GpuOptions(...) or a list of them, got None"),
    (tc.GpuOptions(), "start must be tc.CpuOptions for target 'cpu:"),
    (
        tc.CpuOptions(check_indices=False),
        "options leave out the checks of indices, and a winner serves calls that ",
    ),
]


@pytest.mark.parametrize(("start", "message"), WRONG)
def test_what_no_search_can_start_from_is_refused(start: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}"):
        tc.define(TEXT).tune(*SHAPES, start=start, cache=tmp_path / "a.db", progress=False)


def test_nights_name_starts(tmp_path: Path) -> None:
    from tc.commands.jobs import read_job_file

    (tmp_path / "good.json").write_text(GOOD.to_json())
    jobs = 'start = [{threads = 2}, "good.json", \'{"threads": 3}\']\n[[kernel]]\ntext = """' + TEXT + '"""\n'
    (tmp_path / "jobs.toml").write_text(jobs)
    starts = read_starts(read_job_file(tmp_path / "jobs.toml").starts, parse_target("cpu"))
    assert starts == (tc.CpuOptions(threads=2), GOOD, tc.CpuOptions(threads=3))
    (tmp_path / "jobs.toml").write_text(jobs.replace("{threads = 2}", "7"))
    with pytest.raises(tc.OptionsError, match=r"jobs.toml: start must be tables, JSON or names of files, got 7$"):
        read_job_file(tmp_path / "jobs.toml")


NO_STARTS: list[tuple[str, str]] = [
    ('{"thread": 1}', "start: CpuOptions has no option 'thread'; did you mean 'threads'?"),
    ('[{"threads": 1}, 2]', "start: CpuOptions must be a JSON object, got 2"),
    ("{threads: 1}", "start: options must be JSON such as "),
    ("nowhere.json", "start must be JSON, or the name of a file with JSON; 'nowhere.json': No such file or directory"),
]


@pytest.mark.parametrize(("text", "message"), NO_STARTS)
def test_commands_refuse_what_means_nothing(text: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}"):
        read_starts([text], parse_target("cpu"))
