"""The last line of a terminal, as a terminal gets it."""

from __future__ import annotations

import fcntl
import os
import struct
import sys
import termios

import pytest

from tc.tuner.session.say import ERASE, say_in_handler
from tc.tuner.session.status_line import StatusLine
from tests.programs import run


def a_terminal(monkeypatch: pytest.MonkeyPatch) -> int:
    """The other end of a terminal of 20 columns that is the standard error from now on."""
    outside, inside = os.openpty()
    fcntl.ioctl(inside, termios.TIOCSWINSZ, struct.pack("HHHH", 5, 20, 0, 0))
    monkeypatch.setattr(sys, "stderr", os.fdopen(inside, "w", encoding="utf-8"))
    monkeypatch.setattr("tc.tuner.session.status_line._DESCRIPTOR", inside)
    return outside


def reads(terminal: int, expected: str) -> bool:
    """Whether this comes out of the terminal, in whatever pieces."""
    found = ""
    while len(found) < len(expected) and expected.startswith(found):
        found += os.read(terminal, 4096).decode()
    return found == expected


def test_it_is_written_anew_below_the_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal, status = a_terminal(monkeypatch), StatusLine()
    status.show("1 % of the budget, 99m left")
    assert reads(terminal, f"{ERASE}1 % of the budget, ")
    status.say("a line")
    assert reads(terminal, f"{ERASE}a line\r\n")
    status.say("another")
    assert reads(terminal, "another\r\n")
    status.show("2 %")
    status.clear()
    status.clear()
    assert reads(terminal, f"{ERASE}2 %{ERASE}")


def test_files_and_pipes_get_lines_alone(capfd: pytest.CaptureFixture[str]) -> None:
    status = StatusLine()
    status.show("1 %")
    status.say("a line")
    status.clear()
    say_in_handler("from a handler")
    assert capfd.readouterr().err == "a line\nfrom a handler\n"


def test_without_a_standard_error_nothing_is_said() -> None:
    program = """
import sys
from tc.tuner.session.status_line import StatusLine
sys.stderr, status = None, StatusLine()
status.show("1 %"), status.say("a line"), status.clear()
print("goes on")
"""
    assert run(program) == "goes on\n"
