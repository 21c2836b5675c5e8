"""What ``-m`` leaves out: its functions are never made into tests, and the summary says how many those would be."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence, Sized
from typing import Any

import pytest


class Deselection:
    """Counts tests that do not run, by the mark that is the reason, in each process that collects."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._left_out: Counter[str] = Counter()

    def pytest_pycollect_makeitem(
        self, collector: pytest.Module | pytest.Class, name: str, obj: object
    ) -> list[pytest.Item] | None:
        """Nothing for functions whose marks are not asked for: most of their tens of thousands of tests are slow."""
        if not name.startswith("test"):
            return None
        marks = (*collector.iter_markers(), *getattr(obj, "pytestmark", ()))
        reason = self._unwanted(marks)
        if reason is None:
            return None
        self._left_out[reason] += math.prod(_length(name, mark) for mark in marks if mark.name == "parametrize")
        return []

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        for item in items:
            expression = "-k" if self._config.option.keyword else "-m"
            self._left_out[self._unwanted(tuple(item.iter_markers())) or expression] += 1

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Processes of pytest-xdist hand their counts on."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["left_out"] = dict(self._left_out)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Every process has collected the same tests."""
        found: Mapping[str, int] = getattr(node, "workeroutput", {}).get("left_out", {})
        self._left_out |= Counter(found)

    @pytest.hookimpl(trylast=True)  # others read the reports of all outcomes, and these are none
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._left_out:
            reasons = ", ".join(f"{count} {reason}" for reason, count in sorted(self._left_out.items()))
            terminalreporter.write_line(f"DESELECTED {self._left_out.total()}: {reasons}")
            terminalreporter.stats["deselected"] = list(self._left_out.elements())

    def _unwanted(self, marks: Sequence[pytest.Mark]) -> str | None:
        """The first of the marks that ``-m`` excludes."""
        wanted = str(self._config.option.markexpr)
        return next((mark.name for mark in marks if f"not {mark.name}" in wanted), None)


def _length(name: str, mark: pytest.Mark) -> int:
    """How many tests the mark makes of one; where it has no parameters, one is skipped."""
    values = mark.args[1] if len(mark.args) > 1 else mark.kwargs["argvalues"]
    if not isinstance(values, Sized):
        raise pytest.Collector.CollectError(f"the parameters of `{name}` are a generator; make them a list")
    return max(1, len(values))
