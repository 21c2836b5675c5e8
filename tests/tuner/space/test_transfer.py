"""Winners at other sizes and of similar kernels become seeds, the nearest first."""

from __future__ import annotations

from tc.targets.options import CpuOptions, GpuOptions, ScheduleOptions
from tc.tuner.space.nest import Nest
from tc.tuner.space.space import Space
from tc.tuner.space.transfer import Winner, distance, seeds
from tests.tuner.landscapes import GPU_SPACE, NEST, SPACE


def sized(m: int, n: int, k: int) -> Nest:
    return Nest({"m": m, "n": n, "k": k}, 3, 2, ("k",))


def tiled(*sizes: int) -> CpuOptions:
    return CpuOptions(ScheduleOptions(tile=sizes))


def test_sizes_are_compared_in_doublings() -> None:
    assert distance(sized(1, 1, 1), sized(8, 1, 16)) == 5
    assert distance(sized(64, 8, 1), sized(64, 8, 1)) == 0
    assert distance(sized(0, 1, 1), sized(1, 1, 1)) == 0


def test_the_same_kernel_at_the_nearest_sizes_comes_first() -> None:
    winners = [
        Winner("mm", sized(1, 1, 1), tiled(5, 5)),
        Winner("other", NEST, tiled(7, 7)),
        Winner("mm", sized(128, 1024, 2000), CpuOptions(packed_operands=0)),
        Winner("mm", sized(128, 512, 4000), tiled(3, 3)),
    ]
    assert seeds(SPACE, "mm", winners, 9) == (CpuOptions(packed_operands=0), tiled(3, 3), tiled(5, 5), tiled(7, 7))
    assert seeds(SPACE, "mm", winners, 2) == (CpuOptions(packed_operands=0), tiled(3, 3))
    assert seeds(SPACE, "mm", [], 2) == ()


def test_sizes_are_read_as_parts_of_the_loops_and_as_they_are() -> None:
    winner = Winner("mm", sized(256, 512, 4000), tiled(64, 256, 1000))
    assert seeds(SPACE, "mm", [winner], 9) == (tiled(32, 512, 250), tiled(64, 256, 1000))
    assert seeds(SPACE, "another", [winner], 9) == (tiled(64, 256, 1000),)


def test_seeds_are_repaired() -> None:
    winner = Winner("mm", sized(256, 512, 4000), CpuOptions(ScheduleOptions(tile=(128,)), register_tile=(8, 32)))
    assert CpuOptions(ScheduleOptions(tile=(64,)), register_tile=(8, 64)) in seeds(SPACE, "mm", [winner], 9)
    gpu = Winner("mm", sized(128, 1024, 1000), GpuOptions(ScheduleOptions(tile=(2, 16)), block=(64, 8)))
    assert seeds(GPU_SPACE, "mm", [gpu], 9) == (GpuOptions(ScheduleOptions(tile=(2, 16)), block=(16, 2)),)


def test_other_targets_and_other_loops_are_no_help() -> None:
    winners = [
        Winner("mm", NEST, GpuOptions()),
        Winner("rows", Nest({"n": 8}, 1), tiled(4)),
        Winner("mm", Nest({"a": 128, "b": 1024, "c": 1000}, 3, 2, ("c",)), tiled(4)),
    ]
    assert seeds(SPACE, "mm", winners, 9) == ()


def test_kernels_with_as_many_loops_are_similar_whatever_their_names() -> None:
    near = Winner("x", Nest({"p": 1024, "q": 900, "r": 128}, 3, 2, ("r",)), tiled(4))
    far = Winner("y", Nest({"p": 2, "q": 3, "r": 4}, 3, 2, ("p",)), tiled(8))
    assert seeds(Space.of(CpuOptions, NEST), "mm", [far, near], 9) == (tiled(4), tiled(8))
