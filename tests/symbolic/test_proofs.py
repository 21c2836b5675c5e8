"""Kernels that ignore an open size are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import tc
from tc.base.errors import VerificationError
from tc.language.program.extent import Extent
from tc.language.prove.symbolic import symbolic_extent
from tc.polyhedral.generate.generate import generate_loops
from tc.polyhedral.ir.loops import Allocation, Block, Guard, IndexLiteral, IndexVariable, Leaf, Loop, LoopTree
from tests.symbolic.programs import MM, PROGRAMS


def _without_the_size(tree: LoopTree, bound: int) -> LoopTree:
    """The loops with a number in place of the symbolic size in all bounds and guards."""

    def changed(value: Any) -> Any:
        if isinstance(value, IndexVariable) and value.name.startswith("size_"):
            return IndexLiteral(bound)
        if hasattr(value, "operands"):
            return replace(value, operands=tuple(map(changed, value.operands)))
        return value

    match tree:
        case Loop():
            body = _without_the_size(tree.body, bound)
            return replace(tree, lower=changed(tree.lower), upper=changed(tree.upper), body=body)
        case Guard(condition, then, otherwise):
            other = None if otherwise is None else _without_the_size(otherwise, bound)
            return Guard(changed(condition), _without_the_size(then, bound), other)
        case Block(children):
            return Block(tuple(_without_the_size(child, bound) for child in children))
        case Allocation():
            return replace(tree, body=_without_the_size(tree.body, bound))
        case Leaf():
            return tree


@pytest.mark.parametrize(
    ("bound", "complaint"), [(100, "an instance runs that is not in the program"), (1, "an instance never runs")]
)
def test_loops_that_ignore_the_size_are_refused(bound: int, complaint: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "tc.polyhedral.pipeline.generate_loops", lambda *given: _without_the_size(generate_loops(*given), bound)
    )
    with pytest.raises(VerificationError, match=complaint):
        tc.define(MM).mm.compile(*PROGRAMS["mm"].specs())


def test_accesses_behind_the_open_size_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The last row that there may be is no row that there is."""

    def shorter(*given: Any) -> tuple[Extent, int]:
        found, most = symbolic_extent(*given)
        return replace(found, constant=found.constant - 1), most

    monkeypatch.setattr("tc.language.lower.specialize.symbolic_extent", shorter)
    with pytest.raises(VerificationError, match=r"an access leaves its buffer: .*size_M"):
        tc.define(MM).mm.compile(*PROGRAMS["mm"].specs())
