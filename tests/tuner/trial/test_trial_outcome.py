"""Outcomes are values that come back from text as they were."""

from __future__ import annotations

import json

import pytest

from tc.tuner.trial.trial_outcome import (
    Failed,
    FailureKind,
    Measured,
    Outcome,
    count_failures,
    outcome_from_text,
    outcome_to_text,
    summary,
)

OUTCOMES: list[Outcome] = [
    Measured(1.25e-5, (1.25e-5, 0.1 + 0.2)),
    Measured(2.0, ()),
    *(Failed(kind, f"because of {kind.name}, \"said\" 'so'\n") for kind in FailureKind),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_outcomes_come_back_from_text(outcome: Outcome) -> None:
    text = outcome_to_text(outcome)
    assert outcome_from_text(text) == outcome
    assert outcome_to_text(outcome_from_text(text)) == text
    assert list(json.loads(text)) == sorted(json.loads(text))


@pytest.mark.parametrize(
    "text",
    [
        *("[]", "{}", '{"seconds": "1", "samples": []}', '{"seconds": 1.0}', '{"seconds": -1.0, "samples": []}'),
        *('{"failed": "bored", "reason": ""}', '{"failed": "crashed", "reason": "", "seconds": 1.0}', "no"),
    ],
)
def test_other_text_is_no_outcome(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        outcome_from_text(text)


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("nan"), float("inf")])
def test_a_call_takes_some_time(seconds: float) -> None:
    with pytest.raises(ValueError, match="a call cannot take"):
        Measured(seconds, ())


def test_failures_are_counted_by_kind() -> None:
    outcomes: list[Outcome] = [
        Failed(FailureKind.WRONG, "a"),
        Measured(1.0, ()),
        Failed(FailureKind.ILLEGAL, "b"),
        Failed(FailureKind.WRONG, "c"),
    ]
    assert list(count_failures(outcomes).items()) == [(FailureKind.ILLEGAL, 1), (FailureKind.WRONG, 2)]
    assert summary(iter(outcomes)) == "1 measured, 1 illegal, 2 wrong results"
    assert summary([]) == "0 measured"
