"""Ours and every peer compute the same thing in every problem, each in its own process, at ragged sizes."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path

import pytest

from benchmarks.measuring.contender import Contender
from benchmarks.measuring.messages import CheckAgain, Judge, Measure, Prepare, Ready, Refused, Sample
from benchmarks.measuring.worker import Worker
from benchmarks.peers import numpy_calls
from benchmarks.problems.case import Suite
from benchmarks.problems.cases import CASES, FURTHER_CASES, PROBLEMS, TMM, case_called, chosen
from benchmarks.problems.goals import GOALS_ON_GPUS, Goal, goal_of
from benchmarks.problems.operators import OPERATORS
from tc.targets.options import CpuOptions
from tc.targets.options_json import to_json
from tests.benchmarks.problems import SEED, SIZES, small

OWN = (Contender.OURS, Contender.PREALLOCATED, Contender.TUNED)


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    """One that outlives what it is asked, since it is never asked anything that ends it."""
    with Worker(1) as shared:
        yield shared


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, worker: Worker) -> dict[str, Path]:
    """Folders with the right results, by problem."""
    folders = {name: tmp_path_factory.mktemp(name) for name in SIZES}
    for name, folder in folders.items():
        answer = worker.ask(Judge(small(name), folder, SEED))
        assert not isinstance(answer, Refused), answer.reason
    return folders


def prepared(
    worker: Worker, judged: dict[str, Path], problem: str, contender: Contender, arrays: Contender = Contender.NUMPY
) -> Ready | Refused:
    options = dict(to_json(CpuOptions(vectorize=False))) if contender is Contender.TUNED else None
    return worker.ask(Prepare(small(problem), contender, judged[problem], SEED, arrays, options))


def ready(answer: Ready | Refused) -> Ready:
    assert isinstance(answer, Ready), answer.reason
    return answer


def test_ours(judged: dict[str, Path]) -> None:
    with Worker(2) as worker:
        for problem, contender in zip(SIZES, cycle(OWN), strict=False):
            answer = ready(prepared(worker, judged, problem, contender))
            assert 0 <= answer.deviation < 1
            assert answer.options is not None
            # Rows are carried side by side, without lanes.
            assert answer.options["vectorize"] is (contender is not Contender.TUNED and problem != "cumsum_rows")
            assert answer.stages is not None
            assert "schedule" in answer.stages
            ready(worker.ask(CheckAgain()))


@pytest.mark.slow
def test_ours_on_the_arrays_of_pytorch(judged: dict[str, Path]) -> None:
    with Worker(2) as worker:
        for contender in OWN:
            ready(prepared(worker, judged, "lut1", contender, Contender.TORCH))


@pytest.mark.parametrize("peer", [Contender.NUMPY, Contender.TORCH, Contender.JAX])
def test_peers(judged: dict[str, Path], peer: Contender) -> None:
    if importlib.util.find_spec(peer.value) is None:
        pytest.skip(f"{peer.value} is not installed")
    with Worker(2) as worker:
        for problem in SIZES:
            answer = prepared(worker, judged, problem, peer)
            if peer is Contender.NUMPY and problem in numpy_calls.ABSENT:
                assert answer == Refused("NumPy has no convolution")
            else:
                ready(answer)


@pytest.mark.slow
def test_compiled_torch(judged: dict[str, Path]) -> None:
    with Worker(2) as worker:
        ready(prepared(worker, judged, "mlp1", Contender.COMPILE))


def test_a_contender_that_is_ready_is_measured(judged: dict[str, Path], worker: Worker) -> None:
    ready(prepared(worker, judged, "tmm", Contender.OURS))
    answer = worker.ask(Measure(0.01))
    assert isinstance(answer, Sample)
    assert answer.calls >= 1


def test_wrong_results_are_refused(worker: Worker, tmp_path: Path) -> None:
    """The results of other arguments are expected."""
    worker.ask(Judge(small("tmm"), tmp_path, SEED + 1))
    for contender in (Contender.OURS, Contender.NUMPY):
        answer = worker.ask(Prepare(small("tmm"), contender, tmp_path, SEED, Contender.NUMPY))
        assert isinstance(answer, Refused)
        assert answer.wrong


def test_options_that_are_no_longer_known_are_refused(judged: dict[str, Path], worker: Worker) -> None:
    question = Prepare(small("tmm"), Contender.TUNED, judged["tmm"], SEED, Contender.NUMPY, {"colour": "red"})
    answer = worker.ask(question)
    assert isinstance(answer, Refused)
    assert answer.reason.startswith("OptionsError: CpuOptions has no option 'colour'")
    assert not answer.wrong
    ready(prepared(worker, judged, "tmm", Contender.OURS))


def test_every_problem_is_here_and_every_case_has_its_sizes() -> None:
    assert {problem.name for problem in PROBLEMS} == set(SIZES)
    for case in CASES:
        assert set(case.sizes) == set(case.problem.comprehension.program.sizes)
        assert case.minimum > 0


def test_goals_are_those_of_cases() -> None:
    assert set(GOALS_ON_GPUS) <= {case.name for case in CASES}
    assert goal_of(case_called("tmm-128-32-256"), "cuda").seconds == 2.2e-6
    assert goal_of(case_called("kronecker"), "cuda") == Goal(1.0)
    assert goal_of(case_called("kronecker"), "cpu") == Goal(case_called("kronecker").minimum)


def test_cases_are_chosen_by_suite_and_by_name() -> None:
    assert chosen(Suite.kernels()) == (*CASES, *FURTHER_CASES)
    assert chosen([Suite.OPERATORS]) == OPERATORS
    assert {case.name for case in chosen([Suite.LANGUAGE])} == {case.name for case in FURTHER_CASES}
    assert {case.name for case in chosen(Suite, ["gconv", "mlp3"])} == {
        *(f"gconv-{channels}" for channels in (4, 8, 16, 32)),
        "mlp3",
    }
    assert [case.name for case in chosen([Suite.MODERN], ["tmm"])] == ["tmm-1024-1024-1024"]
    assert case_called("c3").problem.name == "c3"
    with pytest.raises(ValueError, match="no case is called 'sofmax'; did you mean 'softmax'"):
        chosen(Suite, ["sofmax"])
    with pytest.raises(ValueError, match="no case is called 'mlp3'"):
        chosen([Suite.MODERN], ["mlp3"])


def test_arguments_are_the_same_for_the_same_seed_and_of_these_sizes_only() -> None:
    first, again, other = (TMM.arguments(SIZES["tmm"], seed) for seed in (1, 1, 2))
    assert all((first[name] == again[name]).all() for name in ("A", "B"))
    assert (first["A"] != other["A"]).any()
    with pytest.raises(ValueError, match="tmm has the sizes M, K, N, got M, K"):
        TMM.arguments({"M": 1, "K": 1})
