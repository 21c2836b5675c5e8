"""Who has written last what a statement reads."""

from __future__ import annotations

import pytest

from tc.language.isl.session import isl_context
from tc.polyhedral.ir.scop import Scop, build_scop
from tc.polyhedral.schedule import dependences
from tc.polyhedral.schedule.dependences import Flow
from tests.polyhedral.recurrences import RECURRENCES
from tests.polyhedral.support import SHAPES, specialized


def passing(scop: Scop) -> list[tuple[str, str]]:
    flow = Flow(scop)
    return [(a.name, b.name) for a in scop.statements for b in scop.statements if flow.passes(a, b)]


@pytest.mark.parametrize("name", [*RECURRENCES, *SHAPES])
def test_what_is_seen_at_once_is_what_isl_finds(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with isl_context() as context:
        scop = build_scop(RECURRENCES[name] if name in RECURRENCES else specialized(*SHAPES[name]), context)
        found = passing(scop)
        monkeypatch.setattr(dependences, "_writes_anew", lambda *_: False)
        assert found == passing(scop)
