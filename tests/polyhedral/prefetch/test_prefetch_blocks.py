"""Nests around register tiles ask for the block of an argument that their next iteration works on."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.polyhedral.ir.loops import LINE_BYTES, LoopProgram, Use
from tc.polyhedral.pipeline import map_program
from tc.polyhedral.prefetch.prefetch_blocks import prefetch_blocks
from tc.targets.options import CpuOptions, ScheduleOptions
from tests.polyhedral.events import Asked, events
from tests.polyhedral.support import MACHINE, MATMUL, TRANSPOSED, specialized
from tests.translated import translated
from tests.turns import every_row, one_in

CONVOLUTION = """
def conv(float(N,G,C,H,W) X, float(G,F,C,KH,KW) K) -> (O) {
  O(n,g,f,h,w) +=! X(n,g,c,h+p,w+q) * K(g,f,c,p,q)
}
"""
SHAPES = ((32, 4, 4, 24, 33), (4, 4, 4, 3, 3))
BATCHES = "def bmm(float(B,M,K) X, float(B,K,N) Y) -> (Z) { Z(b,m,n) +=! X(b,m,k) * Y(b,k,n) }"


def mapped(text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions | None = None) -> LoopProgram:
    return map_program(specialized(text, shapes), options or CpuOptions(), MACHINE).loops


def asked(program: LoopProgram) -> list[tuple[str, int, int]]:
    """All requests in order: the tensor, the element, and how many elements from there on."""
    itemsizes = {buffer.name: buffer.layout.type.itemsize for buffer in program.buffers}
    return [
        (event.prefetch.tensor, event.offset, event.prefetch.lines * LINE_BYTES // itemsizes[event.prefetch.tensor])
        for event in events(program.root, {}, instances=False)
        if isinstance(event, Asked) and event.prefetch.use is Use.LATER
    ]


@pytest.mark.parametrize(("register_tile", "threads"), every_row(3, [((4, 5, 16), 1), (None, 1), ((2, 16), 2)]))
def test_every_block_is_asked_for_once_while_the_one_before_is_worked_on(
    register_tile: tuple[int, ...] | None, threads: int
) -> None:
    options = CpuOptions(register_tile=register_tile, threads=threads)
    requests = asked(mapped(CONVOLUTION, SHAPES, options))
    assert {tensor for tensor, _, _ in requests} == {"X"}
    size, block = int(np.prod(SHAPES[0])), min(first for _, first, _ in requests)
    assert block % np.prod(SHAPES[0][2:]) == 0
    times = np.zeros(2 * size, np.int32)
    for number, (_, first, count) in enumerate(requests):
        times[first : first + count] += 1
        assert abs(first - block - size * number / len(requests)) <= block
    assert (times[block:size] >= 1).all()
    assert times.sum() <= 2 * size  # whole lines with every tile, and up to half as many again inside of it


@one_in(3)
@pytest.mark.parametrize(
    ("text", "shapes", "options", "why"),
    [
        (CONVOLUTION, SHAPES, CpuOptions(block_prefetch=0), "none may be"),
        (CONVOLUTION, SHAPES, CpuOptions(block_prefetch=12_000), "a block has 12,672 bytes"),
        (CONVOLUTION, ((32, 4, 4, 8, 13), (4, 4, 4, 3, 3)), CpuOptions(), "the argument stays in the cache"),
        (CONVOLUTION, SHAPES, CpuOptions(register_tile=()), "no tile takes long enough"),
        (BATCHES, ((60, 64, 96), (60, 96, 64)), CpuOptions(register_tile=(32, 64)), "too many lines for a tile"),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) and len(value) < 60 else "",
)
def test_nothing_is_asked_for_where(
    text: str, shapes: tuple[tuple[int, ...], ...], options: CpuOptions, why: str
) -> None:
    assert asked(mapped(text, shapes, options)) == [], why


def test_of_a_product_panels_are_asked_for_and_not_what_each_of_them_reads_again() -> None:
    requests = asked(mapped(MATMUL, ((640, 512), (512, 640))))
    assert {tensor for tensor, _, _ in requests} == {"B"}
    assert len({offset for _, offset, _ in requests}) == len(requests)


def test_panels_of_an_operand_are_asked_for_ahead_of_their_transposition() -> None:
    shapes = ((1024, 512), (1024, 512))
    program = mapped(TRANSPOSED, shapes, CpuOptions(schedule=ScheduleOptions(tile=(1024, 32))))
    assert {tensor for tensor, _, _ in asked(program)} == {"B"}


def test_tiles_ask_line_by_line_while_they_compute() -> None:
    rows = 4  # which do not divide the 22 rows of the result
    requests = asked(mapped(CONVOLUTION, SHAPES, CpuOptions(register_tile=(rows, 31))))
    lines = [count * 4 // LINE_BYTES for *_, count in requests]
    tiles = 32 * 4 * 4 * -(-22 // rows)
    assert sum(lines) == len(lines), "never more than one at a time"
    assert len(lines) >= 4 * tiles, "at least one with each of the four channels"


def test_requests_are_printed_and_change_nothing() -> None:
    generator = np.random.default_rng(0)
    x, k = (generator.integers(-3, 4, shape).astype(np.float32) for shape in SHAPES)
    conv = tc.define(CONVOLUTION).conv
    plain, asking = (conv.compile(x, k, options=CpuOptions(block_prefetch=ahead)) for ahead in (0, 1 << 17))
    assert "__builtin_prefetch" not in plain.source
    printed = translated(conv, x, k, target="cpu:x86-64-v4", options=CpuOptions(block_prefetch=1 << 17)).source.text
    assert re.search(r"for \(int64_t line = 0; line < \d+; line \+= 1\) \{\s*__builtin_prefetch\(", printed)
    np.testing.assert_array_equal(plain(x, k), asking(x, k))


def test_small_arguments_stay_in_the_caches() -> None:
    program = map_program(specialized(CONVOLUTION, ((1, 2, 2, 5, 6), (2, 3, 2, 3, 3))), CpuOptions(), MACHINE).loops
    bodies = {body.name: body for body in program.bodies}
    assert prefetch_blocks(program.root, program.buffers, bodies, 1 << 17) is program.root
