"""Where values lie along an axis, and which ones are named."""

from __future__ import annotations

import pytest

from tc.tuner.report.scales import LinearScale, LogScale
from tc.tuner.report.units import time_text


def test_a_linear_scale_keeps_distances() -> None:
    scale = LinearScale(0.0, 10.0, 100.0, 200.0)
    assert [scale.place(value) for value in (0.0, 2.5, 10.0)] == [100.0, 125.0, 200.0]
    assert scale.ticks() == (0.0, 2.0, 4.0, 6.0, 8.0, 10.0)


def test_a_logarithmic_scale_keeps_ratios() -> None:
    scale = LogScale(1.0, 100.0, 0.0, 200.0)
    assert [scale.place(value) for value in (1.0, 10.0, 100.0)] == pytest.approx([0.0, 100.0, 200.0])


def test_a_scale_has_room_for_one_value() -> None:
    scale = LogScale.over([3e-5], 200.0, 0.0)
    assert scale.low < 3e-5 < scale.high
    assert scale.place(3e-5) == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (1.0, 12.0, (1, 3, 10)),
        (0.9, 120.0, (1, 10, 100)),
        (0.9, 7.0, (1, 2, 5)),
        (0.5, 2e6, (10, 1e3, 1e5)),
        (4.3, 5.2, (4.4, 4.6, 4.8, 5.0, 5.2)),
    ],
)
def test_ticks_of_a_logarithmic_scale_are_round(low: float, high: float, ticks: tuple[float, ...]) -> None:
    assert LogScale(low, high, 0.0, 1.0).ticks() == pytest.approx(ticks)


@pytest.mark.parametrize("exponent", range(-12, 8))
@pytest.mark.parametrize("span", [1.001, 1.1, 1.7, 3.0, 9.0, 30.0, 4e2, 1e5, 1e11])
def test_ticks_are_few_and_inside(exponent: int, span: float) -> None:
    for lead in (1.0, 1.9, 3.7, 9.99):
        low = lead * 10.0**exponent
        for scale in (LogScale(low, low * span, 0.0, 1.0), LinearScale(low, low * span, 0.0, 1.0)):
            ticks = scale.ticks()
            assert 2 <= len(ticks) <= 8
            slack = 1e-6 * low * span
            assert all(low - slack <= tick <= low * span + slack for tick in ticks)
            assert sorted(set(ticks)) == list(ticks)


def test_neighbouring_ticks_have_different_labels() -> None:
    labels = [time_text(tick) for tick in LogScale(43e-6, 52e-6, 0.0, 1.0).ticks()]
    assert len(set(labels)) == len(labels)
