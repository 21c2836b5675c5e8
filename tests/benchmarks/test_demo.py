"""The demo's kernels agree with the oracle and with the NumPy that they are timed against; no times are asserted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import tc
from benchmarks.demo import TEXT, draw, exhibits, photograph
from benchmarks.measuring.timing import machine, measure
from tc.reference.compare import compare
from tests.turns import one_in

NAMES = ("blur", "sobel", "maxpool", "layer", "embed", "mlp3")


@one_in(2)
@pytest.mark.parametrize("name", NAMES)
def test_the_demo_agrees_with_the_oracle_and_with_numpy(name: str) -> None:
    picture = photograph()[200:267, 100:171]
    (exhibit,) = (found for found in exhibits(picture) if found.name == name)
    comprehension = tc.define(TEXT)[name]
    result = np.asarray(comprehension(*exhibit.arguments))
    (expected,) = comprehension.oracle(*exhibit.arguments).values()
    comparison = compare(expected, result)
    assert comparison.ok, str(comparison)
    np.testing.assert_allclose(result, exhibit.numpy(), rtol=1e-4, atol=1e-4)


def test_the_picture_is_drawn(tmp_path: Path) -> None:
    panel = np.zeros((4, 5), np.float32)
    results = {"blur": panel, "sobel": panel, "maxpool": panel, "layer": np.zeros((8, 4, 5), np.float32)}
    draw(np.zeros((4, 5, 3), np.float32), results, tmp_path)
    assert (tmp_path / "demo.png").read_bytes().startswith(b"\x89PNG")


def test_measure_runs_what_it_times() -> None:
    calls: list[int] = []
    timing = measure(lambda: calls.append(1), rounds=3, at_least=0.0)
    assert len(calls) == 2 + 3
    assert timing.least <= timing.median <= timing.most
    assert "Python" in machine()
