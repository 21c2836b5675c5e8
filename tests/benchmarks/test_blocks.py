"""Blocks whose proofs are measured have the statements that the report says, and come out proven."""

from __future__ import annotations

import pytest

import tc
from benchmarks.latency import report_blocks
from benchmarks.problems.blocks import BLOCKS


def test_blocks_are_proven(capsys: pytest.CaptureFixture[str]) -> None:
    report_blocks(1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BLOCKS)
    for block, line in zip(BLOCKS, lines, strict=True):
        assert block.name in line
        assert len(tc.define(block.text).single().program.statements) == 11
