"""One cache, and the page about it, for all tests of reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from tc.tuner.report.findings import Findings, read_findings
from tc.tuner.report.page import report
from tests.tuner.report.synthetic import filled


@pytest.fixture(scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that searches have filled, with names that mean harm."""
    return filled(tmp_path_factory.mktemp("report") / "tuned.db")


@pytest.fixture(scope="session")
def findings(cache: Path) -> Findings:
    """What the cache says."""
    return read_findings(cache, None)


@pytest.fixture(scope="session")
def page(cache: Path) -> str:
    """The page about it."""
    return report(cache)
