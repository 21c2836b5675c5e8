"""Of many tests of a kind, some run by default."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

CONFTEST = """
import pytest
from tests.turns import take_turns

def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes long")
    config.addinivalue_line("markers", "one_in(count): some run")

@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    take_turns(items)
"""
FILE = """
import pytest
from tests.turns import every, every_row, one_in

@one_in(2)
@pytest.mark.parametrize("x", [0, pytest.param(1, marks=pytest.mark.slow), 2, 3, 4])
def test_some(x): assert x in chosen

@pytest.mark.parametrize("x", every(3, range(7)))
def test_every(x): assert x in chosen

@pytest.mark.parametrize(("x", "y"), every_row(2, [(0, "a"), (1, "b"), (2, "c")]))
def test_rows(x, y): assert x in chosen

chosen = {chosen}
"""


@pytest.mark.parametrize(
    ("asked", "chosen", "outcome"),
    [
        ("not slow", "(0, 2, 3, 6)", "7 passed, 8 deselected"),  # 0 and 3; 0, 3 and 6; 0 and 2
        ("slow", "(1, 2, 4, 5)", "8 passed, 7 deselected"),
        ("", "range(7)", "15 passed"),
    ],
)
def test_all_others_are_slow(pytester: pytest.Pytester, asked: str, chosen: str, outcome: str) -> None:
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(FILE.format(chosen=chosen))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-m", asked)
    assert any(line.strip("= ").startswith(f"{outcome} in ") for line in result.outlines), result.outlines
