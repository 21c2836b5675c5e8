"""Blocks that share a reduction (split-K), with every tile: as tiled, and as fast, as without."""

from __future__ import annotations

import itertools
from random import Random
from typing import TypeAlias

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.reference.compare import compare
from tc.targets.options import GpuOptions
from tc.tuner.space.nests import nest_of
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed
from tests.turns import every, every_row, one_in

MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
TBMM = tc.define("def tbmm(float(B,N,M) X, float(B,K,M) Y) -> (Z) { Z(b,n,k) +=! X(b,n,m) * Y(b,k,m) }").tbmm
COLUMNS = tc.define("def columns(float(M,N) A) -> (s) { s(n) +=! A(m,n) }").columns
ROWS = tc.define("def rows(float(M,N) A) -> (s) { s(m) max=! A(m,n) }").rows

SHAPES = {MM: ((37, 83), (83, 29)), TBMM: ((3, 13, 50), (3, 11, 50)), COLUMNS: ((150, 41),), ROWS: ((21, 130),)}
TILES: dict[tc.Comprehension, tuple[tuple[int, ...], ...]] = {
    MM: ((16, 16, 8), (8, 32), (16,), (1, 16, 16), (32, 16, 5)),
    TBMM: ((1, 8, 8, 8), (2, 4), (1, 16, 4, 16)),
    COLUMNS: ((16,), (32, 8), (1, 4)),
    ROWS: ((8,), (4, 16), (1, 1)),
}
Case: TypeAlias = tuple[tc.Comprehension, tuple[int, ...], int, int, int | None]
CASES: list[Case] = [
    (f, tile, across, shared, stages)
    for f, tiles in TILES.items()
    for tile, across, (shared, stages) in itertools.product(tiles, (2, 5), ((48 << 10, None), (48 << 10, 2), (0, 1)))
]


def names(case: Case) -> str:
    return f"{case[0].program.name}-{case[1:]}"


@one_in(2)
@pytest.mark.parametrize("case", every(8, CASES), ids=names)
def test_every_tile_goes_with_every_number_of_blocks(
    case: Case,
) -> None:
    f, tile, across, shared, stages = case
    rng = np.random.default_rng(0)
    arrays = [rng.standard_normal(shape, np.float32) for shape in SHAPES[f]]
    options = GpuOptions(
        tc.ScheduleOptions(tile=tile), split_k_blocks=across, shared_memory=shared, stages=stages, split_k_threads=()
    )
    found = f(*arrays, target="emulator", options=options)
    (result,) = f.program.results
    assert compare(f.oracle(*arrays)[result], np.asarray(found)).ok


@one_in(2)
@pytest.mark.parametrize(
    ("tile", "block"),
    every_row(3, itertools.product([(64, 64, 16), (64, 64, 32), (32, 64), (128, 32, 8)], [None, (16, 8)])),
)
def test_operands_are_in_shared_memory_as_without(tile: tuple[int, ...], block: tuple[int, ...] | None) -> None:
    def kernel(across: int) -> Kernel:
        options = GpuOptions(tc.ScheduleOptions(tile=tile), block=block, split_k_blocks=across)
        return MM.compile((256, 512), (512, 256), target="emulator", options=options)

    alone, together = kernel(1), kernel(4)
    for operand in ("_A", "_B"):
        assert any(f"t_shared{n}{operand}" in alone.source for n in range(9))
        assert any(f"t_shared{n}{operand}" in together.source for n in range(9))
    tiled = next(stage.text for stage in together.stages if stage.name == "tile")
    assert f"floor((m)/{tile[0]})" in tiled
    assert f"floor((n)/{tile[1]})" in tiled
    assert "(k_part)]" in tiled
    if len(tile) > 2:
        assert f"floor((k_step)/{tile[2]})" in tiled


def test_text_is_code() -> None:
    pytest.importorskip("cuda.bindings.nvrtc", reason="cuda-bindings is not installed")
    options = GpuOptions(tc.ScheduleOptions(tile=(64, 64, 16)), block=(16, 16), split_k_blocks=4, stages=3)
    first, second = MM.compile((256, 512), (512, 256), target="cuda:sm_90", options=options).resources.grids
    assert first.grid == (4, 4, 4)
    assert first.block == (16, 16, 1)
    assert first.shared > 3 * 64 * 16 * 4
    assert second.grid[:2] == (4, 4)


def test_sizes_of_tiles_are_counted_without_what_blocks_share() -> None:
    options = GpuOptions(tc.ScheduleOptions(tile=(1, 8, 8, 8)), split_k_blocks=4)
    with pytest.raises(tc.OptionsError, match=r"^tile has 4 sizes, but loops are nested 3 deep at most; leave out"):
        MM.compile((37, 83), (83, 29), target="emulator", options=options)


def test_searches_try_them() -> None:
    """Several blocks for a reduction, tiles, and no more partial results in a block than it has terms."""
    specialization = MM.specialize((64, 256), (256, 96))
    space, random = Space.of(GpuOptions, nest_of(specialization)), Random(0)
    both: list[GpuOptions] = []
    while len(both) < 200:
        options = space.decode(space.random(random))
        if isinstance(options, GpuOptions) and (options.split_k_blocks or 1) > 1 and options.schedule.tile:
            both.append(options)
    for options in both:
        parts = options.split_k_blocks or 1
        assert not options.split_k_threads or parts * options.split_k_threads[0] < 256
    assert not any(isinstance(space.decode(space.encode(options)), Failed) for options in both)
