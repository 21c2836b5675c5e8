"""Mistakes of scans, scatters and steps are noticed twice, too: by the proof, and by the emulator."""

from __future__ import annotations

import pytest

import tc
from tests.mutants.judge import Verdict, judge
from tests.mutants.programs import case_named, given_of
from tests.mutants.rewritings import REWRITINGS, mistake_of

_DRAWS = 20


@pytest.mark.parametrize("name", REWRITINGS)
def test_proof_and_emulator_notice_every_mistake(name: str) -> None:
    case_name, options, _, _ = REWRITINGS[name]
    case = case_named(case_name)
    definition = case.definition or tc.define(case.text).single().name
    others = (given_of(case, draw) for draw in range(1, _DRAWS))
    verdict = judge(case.text, definition, given_of(case, 0), options, mistake_of(name), others=others)
    assert verdict == Verdict(refused=True, wrong=True)
