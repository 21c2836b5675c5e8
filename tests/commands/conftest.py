"""A small cache of kernels that were called, one of which was measured."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

import pytest

from tests.commands.caches import CALLS, measure
from tests.programs import run

_NAME: Final = "kernels.db"


@pytest.fixture(scope="session")
def called(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that calls of two definitions have filled; it may not be written."""
    path = tmp_path_factory.mktemp("called") / _NAME
    run(CALLS, environment={"TC_CACHE": str(path), "TC_CACHE_MODE": "store"})
    measure(path, "mm")
    assert [file.name for file in path.parent.iterdir()] == [_NAME]
    return path


@pytest.fixture
def cache(called: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return Path(shutil.copy(called, tmp_path))


@pytest.fixture(autouse=True)
def brief(brief_searches: None) -> None:
    """``test_journey.py`` measures roofs, and kernels as long as usual, in a process of its own."""
