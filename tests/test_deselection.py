"""The summary says how many tests did not run, and which mark is the reason."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

pytest_plugins = ("pytester",)

CONFTEST = """
from tests.deselection import Deselection

def pytest_configure(config):
    config.addinivalue_line("markers", "gpu: has one")
    config.addinivalue_line("markers", "slow: takes long")
    config.pluginmanager.register(Deselection(config))
"""
FILE = """
import pytest

def test_that_runs(): pass

@pytest.mark.parametrize("x", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_with_a_slow_parameter(x): pass

@pytest.mark.slow
@pytest.mark.parametrize("x", [1, 2, 3])
@pytest.mark.parametrize(argnames="y", argvalues="ab")
def test_that_is_slow(x, y): pass

@pytest.mark.gpu
class TestOnDevices:
    @pytest.mark.parametrize("x", [])
    def test_without_parameters(self, x): pass
    def test_once(self): pass
"""


LEFT_OUT = "not gpu and not slow"
CASES = [
    (("-m", LEFT_OUT), "2 passed, 9 deselected", "DESELECTED 9: 2 gpu, 7 slow"),
    (("-m", LEFT_OUT, "-n", "1"), "2 passed, 9 deselected", "DESELECTED 9: 2 gpu, 7 slow"),
    (("-m", "not slow"), "3 passed, 1 skipped, 7 deselected", "DESELECTED 7: 7 slow"),
    (("-m", "not gpu", "-k", "is_slow"), "6 passed, 5 deselected", "DESELECTED 5: 3 -k, 2 gpu"),
    (("-m", "slow"), "7 passed, 4 deselected", "DESELECTED 4: 4 -m"),
]


def run(pytester: pytest.Pytester, file: str, *arguments: str) -> list[str]:
    """What pytest prints, without the ornaments."""
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(file)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", *arguments)
    return [line.strip("= ") for line in result.outlines]


@pytest.mark.parametrize(("arguments", "outcome", "said"), CASES)
def test_what_is_left_out_is_counted_by_its_reason(
    pytester: pytest.Pytester, arguments: Sequence[str], outcome: str, said: str
) -> None:
    printed = run(pytester, FILE, *arguments)
    assert any(line.startswith(f"{outcome} in ") for line in printed), printed
    assert said in printed


def test_nothing_is_said_where_nothing_is_left_out(pytester: pytest.Pytester) -> None:
    printed = run(pytester, FILE)
    assert any(line.startswith("10 passed, 1 skipped in ") for line in printed), printed
    assert "DESELECTED" not in "".join(printed)


def test_parameters_that_cannot_be_counted_are_refused(pytester: pytest.Pytester) -> None:
    marks = '@pytest.mark.slow\n@pytest.mark.parametrize("x", (n for n in "ab"))\n'
    printed = run(pytester, f"import pytest\n{marks}def test(x): pass", "-m", "not slow")
    assert "the parameters of `test` are a generator; make them a list" in printed
