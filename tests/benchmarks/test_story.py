"""The whole story runs, from a text to production."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.story import SIZES, tell


@pytest.mark.slow
def test_the_whole_story(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tell(tmp_path / "story", "2 trials")
    said = capfd.readouterr().out
    production = said[said.index("== production") :]
    assert "C compiler: none" in production
    assert "compiler's packages loaded: none" in production
    for name in SIZES:
        assert f"{name}: " in production
    assert "x the default" in production
    assert (tmp_path / "story" / "tuned.db.html").exists()
