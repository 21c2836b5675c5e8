"""Leaves of loops as text, in languages that have words for them and in languages that do not."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tc.base.types import ScalarType
from tc.codegen.printer.grids import cuda_source, opencl_source
from tc.codegen.printer.source import KernelSource, c_source, emulator_source
from tc.polyhedral.ir.loops import Block, IndexLiteral, LoopKind, LoopProgram, LoopTree, Prefetch, StatementBody, Use
from tests.codegen.build import buffer, instance, loops, read

FLOAT = ScalarType.FLOAT32


def copying(*prefetches: Prefetch) -> LoopProgram:
    """``b(i) = a(i)``, with prefetches in every iteration."""
    buffers = (buffer("a", FLOAT, 64), buffer("b", FLOAT, 64, writable=True))
    body = StatementBody("S", ("i",), "b", (read("a", FLOAT, "i").subscripts[0],), None, read("a", FLOAT, "i"))
    inside: LoopTree = Block((*prefetches, instance("S", "c0")))
    root = loops([("c0", 64, LoopKind.SEQUENTIAL)], inside)
    return LoopProgram("copying", buffers, (), (), (body,), root, checked=True)


LINE = Prefetch("a", IndexLiteral(16), 1)
LINES = Prefetch("b", IndexLiteral(32), 3, Use.STORE)


def test_lines_are_prefetched_one_by_one_before_what_the_iteration_does() -> None:
    text = c_source(copying(LINE, LINES), 0).text
    body = [line.strip() for line in text[text.index("for (int64_t c0") :].splitlines()]
    assert body[1:6] == [
        "__builtin_prefetch((const void *)((uintptr_t)t_a + (uintptr_t)(16 * 4)), 0, 2);",
        "for (int64_t line = 0; line < 3; line += 1) {",
        "__builtin_prefetch((const void *)((uintptr_t)t_b + (uintptr_t)(32 * 4 + 64 * line)), 1);",
        "}",
        "// S",
    ]


@pytest.mark.parametrize("source", [emulator_source, cuda_source, opencl_source])
def test_languages_without_prefetches_leave_them_out(source: Callable[[LoopProgram], KernelSource]) -> None:
    assert source(copying(LINE, LINES)) == source(copying())
