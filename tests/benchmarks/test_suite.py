"""A whole run, as short as can be, and the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.measuring.contender import Contender
from benchmarks.measuring.lineup import MeasurementError, judged, lineups
from benchmarks.measuring.machine import commit, describe_machine
from benchmarks.measuring.messages import Calibrate
from benchmarks.measuring.rounds import Calibration
from benchmarks.measuring.suite import batched, measure_case
from benchmarks.measuring.worker import Worker
from benchmarks.reporting.results import Report, Settings
from benchmarks.searching.search import search_case
from tc.base.json_records import load_record, save_record
from tests.benchmarks.problems import small
from tests.benchmarks.reports import report, row

BRIEF = Settings(threads=1, rounds=1, seconds=0.01, pause=0.0, peers=(Contender.NUMPY,))


@pytest.fixture
def calibration() -> Iterator[Calibration]:
    with Worker(1) as worker:
        worker.ask(Calibrate())
        yield Calibration(worker, 0.01)


def test_cases_that_are_made_ready_together_are_measured_with_everybody(calibration: Calibration) -> None:
    cases = [small("gconv"), small("tmm"), small("softmax")]
    (together, alone) = batched(cases, 2)
    assert ([*together], [*alone]) == (cases[:2], cases[2:])
    with lineups(together, replace(BRIEF, ahead=2), {together[0].name: {"unroll": 1}}) as ready:
        rows = [measure_case(lineup, BRIEF, calibration) for lineup in ready]
    assert [row.case for row in rows] == [case.name for case in together]
    assert not any(worker.alive for lineup in ready for worker in lineup.workers.values())
    (convolution, product) = rows
    assert [m.contender for m in convolution.measured] == [Contender.OURS, Contender.PREALLOCATED]
    assert {m.contender: m.reason.partition(":")[0] for m in convolution.missing} == {
        Contender.TUNED: "OptionsError",
        Contender.NUMPY: "NumPy has no convolution",
    }
    assert convolution.work.operations == 2 * 3 * 5 * 5 * 7 * (2 * 2 * 9 + 1)
    assert {m.contender for m in product.measured} >= {Contender.OURS, Contender.PREALLOCATED, Contender.NUMPY}
    for found in rows:
        rounds = len(found.calibrations) - 1
        assert 1 <= rounds <= 3
        assert all(len(m.samples) == rounds for m in found.measured)


def test_an_oracle_that_fails_is_an_error(tmp_path: Path) -> None:
    case = small("tmm")
    with pytest.raises(MeasurementError, match="the oracle's results of small tmm: ValueError: tmm has the sizes"):
        judged(replace(case, sizes={}), BRIEF, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["group_norm", "tmm"])
def test_a_search_checks_and_compares_what_it_finds(problem: str, tmp_path: Path) -> None:
    """The first has several results, which are not computed in the order in which callers get them."""
    winner, _ = search_case(small(problem), "3 trials", 0, 0, tmp_path / "cache.db")
    assert winner.trials == 3
    assert winner.gain > 0
    assert winner.interval[0] <= winner.seconds <= winner.interval[1]


def test_this_machine_is_described() -> None:
    machine = describe_machine()
    assert machine.model
    assert machine.cores >= 1
    assert machine.memory > 1 << 20
    assert "numpy" in machine.libraries
    assert "-" not in machine.system
    name = commit()
    assert name is None or len(name.rstrip("+")) == 40


def test_a_file_of_results_is_printed_as_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "results.json", tmp_path / "results.png"
    save_record(report(row({Contender.OURS: [1e-3] * 3, Contender.TORCH: [2e-3] * 3})), path)
    main(["table", str(path), "--plot", str(picture)])
    assert capsys.readouterr().out.startswith("| kernel | ours | PyTorch |")
    assert picture.exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--kernels", "tmn"], "no case is called 'tmn'; did you mean 'tmm'?"),
        (["--suite", "ancient"], "argument --suite: invalid choice: 'ancient'"),
        (["--peers", "caffe2"], "no peer on cpu is called 'caffe2'; known: torch, compile, numpy, jax"),
        (["--peers", "numpy", "--target", "cuda"], "no peer on cuda is called 'numpy'; known: torch, compile, triton"),
        (["--target", "abacus"], "nothing is timed on target 'abacus'; known: cpu, cuda"),
        (["--threads", "0"], "--threads must be from 1 to "),
        (["--rounds", "0"], "--rounds must be from 1 to 1000, got 0"),
        (["--seconds", "-1"], "--seconds must be from 0.001 to 60, got -1"),
        (["search", "--budget", "soon"], "'soon' is no budget; write a time as '8h'"),
        (["table", "nowhere.json"], "No such file or directory: 'nowhere.json'"),
        (["table", __file__], "test_suite.py: Extra data: line 1 column 3"),
    ],
)
def test_command_lines_that_ask_for_what_there_is_not(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("winner", "message"),
    [
        ({"options": {}}, "Winners.cases.tmm lacks bound, budget, default_seconds, failures"),
        ({"options": 3}, "Winners.cases.tmm.options must be a dict, got 3"),
    ],
)
def test_a_file_of_options_that_is_none_is_named(
    winner: dict[str, object], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "options.json"
    path.write_text(json.dumps({"cases": {"tmm": winner}}), encoding="utf-8")
    with pytest.raises(SystemExit):
        main(["--kernels", "tmm", "--options", str(path)])
    assert message in capsys.readouterr().err


@pytest.mark.slow
def test_the_suite_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, picture = tmp_path / "results.json", tmp_path / "results.png"
    brief = ["--rounds", "1", "--seconds", "0.01", "--peers", "numpy"]
    main(["--kernels", "mlp3", *brief, "--json", str(path), "--plot", str(picture)])
    printed = capsys.readouterr().out
    assert "mlp3" in printed
    assert "geometric mean of best peer / ours: " in printed
    (found,) = load_record(Report, path).rows
    assert {m.contender for m in found.measured} >= {Contender.OURS, Contender.PREALLOCATED, Contender.NUMPY}
    assert picture.exists()
