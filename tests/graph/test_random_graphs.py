"""Random graphs: rewritten, partitioned and planned at random, some compiled; thousands of them in ``make fuzz``."""

from __future__ import annotations

import pytest

from tests.fuzz import graphs


@pytest.mark.parametrize("part", range(10))
def test_random_graphs(part: int) -> None:
    assert [found for seed in range(part * 12, part * 12 + 12) if (found := graphs.check(seed)) is not None] == []


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    graphs.main(["--programs", "3", "--first", "1", "--jobs", "1"])
    assert capsys.readouterr().out == "3 graphs, 0 wrong\n"


def test_what_is_wrong_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_seed: int) -> None:
        raise AssertionError("another number")

    monkeypatch.setattr(graphs, "_check", fail)
    assert graphs.check(7) == "7: AssertionError: another number"
