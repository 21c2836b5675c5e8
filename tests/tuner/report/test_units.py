"""Numbers as people read them."""

from __future__ import annotations

import pytest

from tc.base.counted import counted
from tc.tuner.report.moments import moment_text, stretch_text
from tc.tuner.report.units import interval_text, ratio_text, share_text, significant, tick_text, time_text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1.5e-9, "1.50 ns"),
        (4.338e-5, "43.4 µs"),
        (9.996e-7, "1.00 µs"),
        (9.99e-4, "999 µs"),
        (9.9999e-4, "1.00 ms"),
        (8.1e-3, "8.10 ms"),
        (2.0, "2.00 s"),
        (7200.0, "7,200 s"),
        (1e-13, "1.00e-04 ns"),
    ],
)
def test_times_have_the_unit_that_fits(seconds: float, text: str) -> None:
    assert time_text(seconds).replace("\N{NO-BREAK SPACE}", " ") == text


def test_ticks_have_no_idle_zeros() -> None:
    assert [tick_text(tick).split()[0] for tick in (1e-3, 1.5e-3, 2e-5, 3e-4)] == ["1", "1.5", "20", "300"]


def test_an_interval_has_one_unit() -> None:
    assert interval_text(9.5e-4, 1.05e-3).replace("\N{NO-BREAK SPACE}", " ") == "0.950 to 1.05 ms"


def test_small_words() -> None:
    assert [significant(value) for value in (0.0, 12.345, 1234.5, 1e9)] == ["0", "12.3", "1,234", "1.00e+09"]
    assert [ratio_text(value) for value in (1.128, 250.4)] == [
        "1.13\N{MULTIPLICATION SIGN}",
        "250\N{MULTIPLICATION SIGN}",
    ]
    assert [share_text(value) for value in (0.0, 0.001, 0.827, 1.0)] == ["0 %", "< 1 %", "83 %", "100 %"]
    assert [counted(number, "trial") for number in (0, 1, 2000)] == ["0 trials", "1 trial", "2,000 trials"]


def test_times_of_the_day() -> None:
    assert moment_text("2026-01-02T03:04:05.000006+00:00") == "2 January 2026, 03:04 UTC"
    assert moment_text("2026-01-02T03:04:05+02:00") == "2 January 2026, 01:04 UTC"
    assert moment_text("yesterday") == "yesterday"
    assert stretch_text("2026-01-02T03:04", "2026-01-02T05:06+00:00").endswith(" to 05:06 UTC")
