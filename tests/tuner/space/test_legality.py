"""Settings that the compiler would refuse become others that it takes."""

from __future__ import annotations

import pytest

from tc.targets.options import CpuOptions, GpuOptions
from tc.tuner.space.legality import Settings, refusal, repaired
from tc.tuner.space.nest import Nest
from tests.tuner.landscapes import NEST

TILE = ("schedule", "tile")


def cpu(tile: object, register_tile: object, lane: object = None) -> Settings:
    return {TILE: tile, ("register_tile",): register_tile, ("vector_axis",): lane}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (cpu(None, None), cpu(None, None)),
        (cpu((32, 64), None), cpu((32, 64), None)),
        (cpu(None, (6, 16)), cpu(None, (6, 16))),
        (cpu((32, 64, 50), (6, 16)), cpu((30, 64, 50), (6, 16))),
        (cpu((32, 9, 50), (16,)), cpu((32, 16, 50), (16,))),
        (cpu((0, 0), (6, 16)), cpu((0, 0), (6, 16))),
        (cpu((4,), (6, 16)), cpu((6,), (6, 16))),
        (cpu(None, (64, 48)), cpu(None, (32, 24))),
        (cpu((64, 100), (64, 48)), cpu((64, 96), (32, 24))),
        (cpu(None, (6, 16), 0), cpu(None, (6, 16), 0)),
        (cpu(None, (6, 16), 1), cpu(None, (6, 16))),
        (cpu(None, (16,), 0), cpu(None, (16,))),
        (cpu(None, None, 1), cpu(None, None)),
    ],
)
def test_tiles_are_multiples_of_register_tiles_and_lanes_have_a_place(before: Settings, after: Settings) -> None:
    assert repaired(before, NEST) == after
    assert repaired(after, NEST) == after


def gpu(tile: object, block: object, grid: object = None) -> Settings:
    return {TILE: tile, ("block",): block, ("grid",): grid}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (gpu(None, None), gpu(None, None)),
        (gpu(None, (256, 256)), gpu(None, (32, 32))),
        (gpu((16, 64), (64, 16)), gpu((16, 64), (64, 16))),
        (gpu((16, 64), (128, 32, 2), (9, 9, 9)), gpu((16, 64), (64, 16), (9, 9))),
        (gpu((64, 64), (64, 64)), gpu((64, 64), (32, 32))),
        (gpu((0, 64), (128, 4), (9, 9)), gpu((0, 64), (64,), (9,))),
        (gpu((4, 4), (8, 8)), gpu((4, 4), None)),
        (gpu((), (32,), (9,)), gpu((), (32,), ())),
        (gpu((1,), (64, 4, 2), (9, 9)), gpu((1,), (64, 1), (9,))),
    ],
)
def test_blocks_are_no_larger_than_tiles(before: Settings, after: Settings) -> None:
    assert repaired(before, NEST) == after
    assert repaired(after, NEST) == after


def test_small_kernels_may_have_small_blocks() -> None:
    small = Nest({"m": 4, "n": 4}, depth=2)
    assert repaired(gpu((4, 4), (4, 4)), small) == gpu((4, 4), (4, 4))
    assert refusal(GpuOptions(block=(4, 4)), small) is None


def test_useless_blocks_are_refused() -> None:
    assert refusal(GpuOptions(), NEST) is None
    assert refusal(CpuOptions(), NEST) is None
    assert refusal(GpuOptions(block=(32,)), NEST) is None
    assert refusal(GpuOptions(block=(4, 4, 64)), NEST) is None
    assert refusal(GpuOptions(block=(31,)), NEST) == "a block of 31 threads leaves most of a warp idle"
    assert refusal(GpuOptions(block=(1, 1, 128)), NEST) == "a block has at most 64 threads along z, got 128"
