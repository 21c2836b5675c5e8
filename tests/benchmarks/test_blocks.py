"""Blocks and kernels whose compilation is measured have the statements that the report says, and come out proven."""

from __future__ import annotations

import pytest

import tc
from benchmarks.latency import KERNELS, report_blocks, report_kernels
from benchmarks.problems.blocks import BLOCKS


def test_blocks_are_proven(capsys: pytest.CaptureFixture[str]) -> None:
    report_blocks(1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(BLOCKS)
    for block, line in zip(BLOCKS, lines, strict=True):
        assert block.name in line
        assert len(tc.define(block.text).single().program.statements) == 11


def test_kernels_are_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    report_kernels(0)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(KERNELS)
    for kernel, line in zip(KERNELS, lines, strict=True):
        assert f"text to binary, {kernel.name}" in line
        assert len(tc.define(kernel.text).single().program.statements) == (5 if kernel.name == "attention" else 1)
