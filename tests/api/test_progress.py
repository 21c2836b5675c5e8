"""A bar on terminals, for work that takes long."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios

import pytest

from tc.api import progress as module
from tc.api.progress import Progress
from tc.tuner.session.say import ERASE


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> int:
    """The other end of a terminal of 70 columns that is the standard error from now on."""
    outside, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 70, 0, 0))
    monkeypatch.setattr(sys, "stderr", os.fdopen(inside, "w", encoding="utf-8"))
    monkeypatch.setattr("tc.tuner.session.status_line._DESCRIPTOR", inside)
    return outside


def test_it_appears_when_work_takes_long_and_goes_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    times = iter([0.0, 1.0, 2.5, 7.4])
    monkeypatch.setattr("tc.api.progress.time.monotonic", lambda: next(times))
    with Progress("compiling", 40) as bar:
        bar.at(1, "kernels")  # too soon
        bar.at(10, "kernels")
        bar.at(40, "kernels")
    expected = (
        f"{ERASE}tc: compiling [#####---------------] 10 of 40 kernels, 2 s"
        f"{ERASE}tc: compiling [####################] 40 of 40 kernels, 7 s{ERASE}"
    )
    found = ""
    while len(found) < len(expected):
        found += os.read(terminal, 4096).decode()
    assert found == expected


@pytest.mark.parametrize("shown", [True, False])
def test_pipes_get_nothing(shown: bool, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    with Progress("planning g", 0, shown=shown) as bar:
        bar.at(0, "rewriting")
    assert capfd.readouterr().err == ""


def test_who_wants_none_gets_none(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = a_terminal(monkeypatch)
    monkeypatch.setattr(module, "PATIENCE", -1.0)
    with Progress("compiling", 2, shown=False) as bar:
        bar.at(1, "kernels")
    os.set_blocking(terminal, False)
    with pytest.raises(BlockingIOError):
        os.read(terminal, 1)
