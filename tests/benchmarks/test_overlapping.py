"""What it costs that several instances of a reduction write one element, beside a statement that sets it to 0."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tc
from benchmarks.__main__ import UsageError, main
from benchmarks.overlapping import FORMS, HEADER, Form, Measured, line, measure_form


def _small(form: Form) -> Form:
    """As small as frames that overlap allow."""
    if form.name == "overlap-add":
        return replace(form, shapes=((3, 200),))
    return replace(form, shapes=tuple(tuple(min(size, 5) for size in shape) for shape in form.shapes))


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_both_forms_mean_the_same(form: Form) -> None:
    random = np.random.default_rng(0)
    arguments = [random.integers(-4, 5, shape).astype(np.float32) for shape in _small(form).shapes]
    one, two = (tc.define(text).single() for text in (form.one, form.two))
    assert [s.initialize for s in one.program.statements] == [True]
    assert [s.initialize for s in two.program.statements] == [False, False]
    np.testing.assert_array_equal(one.reference(*arguments), two.reference(*arguments))


def test_forms_are_measured_in_turns() -> None:
    found = measure_form(_small(FORMS[-1]), rounds=3)
    assert found.one > 0
    assert found.two > 0
    wrong = replace(_small(FORMS[-1]), zero=FORMS[-1].zero.replace("0.0", "1.0"))
    with pytest.raises(ValueError, match="the two forms give different results"):
        measure_form(wrong, rounds=1)


def test_the_command_names_what_takes_too_long(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times = iter([Measured("a", 2e-6, 4e-6), Measured("b", 8e-6, 4e-6)])
    monkeypatch.setattr("benchmarks.overlapping.measure_forms", lambda forms, rounds: times)
    with pytest.raises(SystemExit, match=r"^more than 1\.5 times as long in one statement: b$"):
        main(["overlapping"])
    head, first, second = capsys.readouterr().out.splitlines()
    assert head == HEADER
    assert first.split() == ["a", "2", "4", "0.50"]
    assert second == line(Measured("b", 8e-6, 4e-6))


def test_rounds_are_counted_from_one() -> None:
    with pytest.raises((UsageError, SystemExit)):
        main(["overlapping", "--rounds", "0"])
