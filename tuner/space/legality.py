"""Refuses illegal settings before anything is compiled, and repairs them to the nearest legal ones.

The compiler refuses tiles that are no multiples of register tiles, and blocks larger than tiles.  Which size belongs to
which loop is only known after scheduling; here independent loops are taken to stand outermost and in order, as they
mostly do.  So genomes are only repaired by this knowledge, not refused, and the compiler may still refuse them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from tc.base.counted import counted
from tc.base.grid import MOST_THREADS, MOST_THREADS_ALONG, WARP
from tc.targets.options import GpuOptions, Options
from tc.tuner.space.genes import Path
from tc.tuner.space.nest import Nest

# Values of options by path.
Settings: TypeAlias = Mapping[Path, object]

_TILE: Final = ("schedule", "tile")
_REGISTER_TILE: Final = ("register_tile",)
_LANE: Final = ("vector_axis",)
_BLOCK: Final = ("block",)
_GRID: Final = ("grid",)
_SPLIT: Final = ("split_k_threads",)
_ACROSS: Final = ("split_k_blocks",)

# More elements than twice those of 32 registers of 16 lanes are only spilled, and take compilers half a minute.
_MOST_REGISTERS: Final = 1024


def refusal(options: Options, nest: Nest) -> str | None:
    """Why these options are not worth compiling; None if they are.

    Blocks need a warp of threads, if there is so much to do, and have at most 64 along z.
    """
    if not isinstance(options, GpuOptions) or options.block is None:
        return None
    threads, least = math.prod(options.block), min(WARP, nest.iterations)
    if threads < least:
        return f"a block of {counted(threads, 'thread')} leaves most of a warp idle"
    if options.block[2:] and options.block[2] > MOST_THREADS_ALONG[2]:
        return f"a block has at most {MOST_THREADS_ALONG[2]} threads along z, got {options.block[2]}"
    return None


def repaired(settings: Settings, nest: Nest) -> Settings:
    """The settings with as few changes as make them legal, as far as can be told without a schedule."""
    changed = dict(settings)
    if _LANE in changed:
        _repair_lane(changed)
    if _REGISTER_TILE in changed:
        _repair_tile(changed, nest)
    if _BLOCK in changed:
        _repair_block(changed, nest)
    if _SPLIT in changed and _ACROSS in changed:
        _repair_split(changed, nest)
    return changed


def _sizes(settings: Settings, path: Path) -> tuple[int, ...] | None:
    sizes = settings.get(path)
    return sizes if isinstance(sizes, tuple) else None


def _within(sizes: tuple[int, ...], most: int) -> tuple[int, ...]:
    """The sizes with the largest halved until their product is no more than ``most``."""
    while math.prod(sizes) > most:
        largest = sizes.index(max(sizes))
        sizes = (*sizes[:largest], sizes[largest] // 2, *sizes[largest + 1 :])
    return sizes


def _repair_lane(settings: dict[Path, object]) -> None:
    """The last place is what None stands for."""
    lane = settings[_LANE]
    if isinstance(lane, int) and lane >= len(_sizes(settings, _REGISTER_TILE) or ()) - 1:
        settings[_LANE] = None


def _repair_tile(settings: dict[Path, object], nest: Nest) -> None:
    """Register tiles become small enough, and tiles multiples of the register tiles of the same loops."""
    tile, registers = _sizes(settings, _TILE), _sizes(settings, _REGISTER_TILE)
    if not registers:
        return
    registers = settings[_REGISTER_TILE] = _within(registers, _MOST_REGISTERS)
    if not tile:
        return
    steps = (*(1 for _ in range(nest.independent - len(registers))), *registers, *(1 for _ in tile))
    settings[_TILE] = tuple(
        max(1, round(size / step)) * step if size else 0 for size, step in zip(tile, steps, strict=False)
    )


def _repair_block(settings: dict[Path, object], nest: Nest) -> None:
    """Blocks get no more threads than their tiles have points, and no more dimensions than there are loops to share."""
    tile = _sizes(settings, _TILE)
    tiled = nest.parallel
    if tile is None:  # the target chooses tiles that have points for all threads
        points: tuple[int, ...] = (MOST_THREADS,) * min(3, nest.parallel)
    else:
        cut = tile[: nest.parallel]
        while cut and not cut[-1]:
            cut = cut[:-1]
        tiled = len(cut) - cut.count(0)
        # Where tiles are single points, threads share all iterations of the innermost loops that are not cut.
        inside = 0 if any(size > 1 for size in cut) else nest.parallel - len(cut)
        whole = (max(nest.extents.values(), default=1),) * inside
        points = tuple(size for size in (*cut, *whole) if size)[:-4:-1]
    for path, most in ((_BLOCK, len(points)), (_GRID, tiled)):
        sizes = _sizes(settings, path)
        if sizes is not None:
            settings[path] = sizes[:most]
    block = _sizes(settings, _BLOCK)
    if block is not None:
        block = _within(tuple(map(min, block, points)), MOST_THREADS)
        settings[_BLOCK] = block if math.prod(block) >= min(WARP, nest.iterations) else None


def _repair_split(settings: dict[Path, object], nest: Nest) -> None:
    """Where blocks share a reduction, each has no more partial results than terms; else they are not split again."""
    across, split = settings[_ACROSS], _sizes(settings, _SPLIT)
    if isinstance(across, int) and across > 1 and split and split[0] >= -(-nest.longest_reduced() // across):
        settings[_SPLIT] = ()
