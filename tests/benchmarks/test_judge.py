"""Right results pass, wrong ones do not."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.measuring.judge import PEER_TOLERANCE, deviation_of_ours, deviation_of_peer, judge
from benchmarks.measuring.messages import Refused
from benchmarks.problems.case import Case, Suite
from benchmarks.problems.cases import MOMENTS, TMM
from benchmarks.problems.problem import Array
from tc.reference import kept
from tc.reference.evaluate import Result
from tc.reference.kept import kept_results

SIZES = {"M": 7, "K": 5, "N": 3}


@pytest.fixture
def expected(tmp_path: Path) -> tuple[Result, ...]:
    judge(Case("tmm", Suite.PAPER, TMM, SIZES, 1.0), tmp_path, seed=3)
    return kept_results(tmp_path)


@pytest.fixture
def product() -> Array:
    a, b = TMM.arguments(SIZES, 3).values()
    result: Array = a @ b.T
    return result


def reason(answer: float | Refused) -> str:
    assert isinstance(answer, Refused), f"accepted with {answer}"
    assert answer.wrong
    return answer.reason


def accepted(answer: float | Refused) -> float:
    assert not isinstance(answer, Refused), answer.reason
    return answer


def test_right_results_pass(expected: tuple[Result, ...], product: Array) -> None:
    assert 0 < accepted(deviation_of_ours([product], expected)) < 1
    assert 0 < accepted(deviation_of_peer([product], expected)) < PEER_TOLERANCE
    assert accepted(deviation_of_peer([product.reshape(7, 3, 1)], expected)) < PEER_TOLERANCE


@pytest.mark.parametrize("step", [1, 4, 1 << 20])
def test_one_wrong_element_is_found_wherever_it_is(
    expected: tuple[Result, ...], product: Array, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "_STEP", step)
    accepted(deviation_of_ours([product], expected))
    for place in np.ndindex(product.shape):
        for wrong in (product[place] + np.float32(0.01), np.float32(np.nan)):
            spoiled = product.copy()
            spoiled[place] = wrong
            assert "outside the bound" in reason(deviation_of_ours([spoiled], expected))
            assert "deviates by" in reason(deviation_of_peer([spoiled], expected))


def test_forms_that_are_wrong(expected: tuple[Result, ...], product: Array) -> None:
    assert reason(deviation_of_ours([], expected)) == "0 results instead of 1"
    assert reason(deviation_of_peer([], expected)) == "0 results instead of 1"
    assert reason(deviation_of_peer([product, product], expected)) == "2 results instead of 1"
    assert "has shape (6, 3)" in reason(deviation_of_ours([product[1:]], expected))
    assert "has shape (6, 3)" in reason(deviation_of_peer([product[1:]], expected))
    assert "float64" in reason(deviation_of_ours([product.astype(np.float64)], expected))
    view = np.ascontiguousarray(product.T).T
    assert "laid out differently" in reason(deviation_of_peer([view], expected))


def test_several_results_are_kept_in_order(tmp_path: Path) -> None:
    case = Case("moments", Suite.MODERN, MOMENTS, {"N": 3, "K": 11}, 1.0)
    judge(case, tmp_path, seed=0)
    (rows,) = MOMENTS.arguments(case.sizes, 0).values()
    mean, variance = kept_results(tmp_path)
    np.testing.assert_allclose(mean.values, rows.mean(1), atol=1e-6)
    np.testing.assert_allclose(variance.values, rows.var(1), atol=1e-6)
