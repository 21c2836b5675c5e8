"""Golden files: texts under ``tests/golden`` that are compared with what is produced now.

The files of a room lie in ``tests/golden/<room>`` and belong to ``tests/<room>/test_golden.py``, which lists them
in ``FILES`` (as ``<room>/<name>``); ``tests/test_golden_files.py`` refuses files that are not listed.
"""

from __future__ import annotations

import gc
import os
from collections.abc import Generator
from dataclasses import dataclass, replace
from pathlib import Path

import islpy as isl
import pytest
from hypothesis import HealthCheck, settings

from tests.deselection import Deselection
from tests.turns import take_turns

# Tests look at what is compiled now; those of the cache have caches of their own.
os.environ["TC_CACHE_MODE"] = "off"
# Threads of NumPy's products, which are small here, would wait busily in each of hundreds of processes.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

# A busy machine makes examples slow, and nothing wrong.
settings.register_profile("untimed", deadline=None, suppress_health_check=(HealthCheck.too_slow,))
settings.load_profile("untimed")


def _ambiguous(found: isl.Set) -> bool:
    raise TypeError(f"{found} is taken for a bool, which islpy makes of its dimensions: ask is_empty() or for None")


# Of a set without dimensions, it is False: ``found or nothing`` forgot scalars.
isl.Set.__bool__ = _ambiguous  # type: ignore[attr-defined]  # islpy has __len__ alone

DIRECTORY = Path(__file__).parent / "golden"
# Of the time that a measurement takes.
_BRIEF = 1 / 16


@dataclass(frozen=True, slots=True)
class Golden:
    """Compares texts with golden files, or rewrites the files."""

    update: bool

    def check(self, path: str, text: str) -> None:
        """Asserts that ``text`` is the content of ``tests/golden/<path>``, or makes it so."""
        file = DIRECTORY / path
        if self.update:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
        assert file.exists(), f"{file} is missing: run pytest --update-golden and read what it writes"
        assert text == file.read_text(encoding="utf-8"), f"{path}: run pytest --update-golden and read the difference"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden with what is produced now")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Deselection(config))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Modules and tests stay until the end: the garbage collector does not look through these millions of objects
    while they are made, and not again each time that a test calls it.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before those with -m's marks are chosen
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    take_turns(items)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Golden:
    """``golden.check("room/name.ext", text)`` compares a text with its golden file."""
    return Golden(update=bool(request.config.getoption("--update-golden")))


@pytest.fixture
def brief_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Searches in this process take the machine for one that is faster than any, for measuring it takes seconds, and
    measure candidates for milliseconds.
    """
    from tc.tuner.roofline.roofline import Bandwidth, Roofs
    from tc.tuner.session.effort import DEFAULT, EFFORTS

    roofs = Roofs(operations=1e18, bandwidths=(Bandwidth(1, 1e18, 1e18),), fresh=1e18)
    monkeypatch.setattr("tc.tuner.session.search_setup.machine_roofs", lambda *_given: roofs)
    brief = {name: replace(effort, seconds=_BRIEF * effort.seconds) for name, effort in EFFORTS.items()}
    monkeypatch.setattr("tc.tuner.session.effort.EFFORTS", brief)
    monkeypatch.setattr("tc.tuner.session.inject.SECONDS", _BRIEF * DEFAULT.seconds)
