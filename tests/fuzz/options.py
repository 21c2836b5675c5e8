"""How a random program is compiled: its target and its options."""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import tc
from tc.targets.options import Options
from tests import emulation
from tests.fuzz.source import Source
from tests.levels import runs

_TARGETS = ((3, "cpu"), (1, "cpu:x86-64-v3"), (0.5, "cpu:x86-64-v2"), (1, "cpu:x86-64"),
            (1, emulation.TARGET), (1.5, "emulator"))  # fmt: skip
_TILES = (0, 1, 2, 3, 8, 16, 32, 100)


def draw_target(source: Source) -> str:
    """This machine, one with fewer instructions and shorter vectors that it also is, or one that is emulated."""
    name = source.weighted(_TARGETS)
    return name if _runs(name) else "cpu"


@functools.cache
def _runs(name: str) -> bool:
    if name == emulation.TARGET:
        return emulation.missing() is None
    if name == "emulator":
        return True
    return runs(name)


def draw_options(source: Source, target: str, *, scatters: bool = False) -> Options:
    """Every option at random, or now and then none; ``scatters``: also how these are shared, and in which order."""
    options = _drawn(source, target)
    if not scatters:
        return options
    options = replace(options, numerics=tc.Numerics(deterministic=source.chance(0.7)))
    if source.chance(0.4):
        return options
    count, schedule = source.choice([1, 2, 3, 5, 16]), options.schedule
    owned = replace(schedule, scatter_owners=count)
    return replace(options, schedule=owned if source.chance(0.5) else replace(schedule, scatter_parts=count))


def _drawn(source: Source, target: str) -> Options:
    if target in ("emulator", "opencl"):
        drawn = tc.GpuOptions() if source.chance(0.3) else draw_gpu_options(source)
        return (
            drawn if target == "emulator" else replace(drawn, min_blocks_per_multiprocessor=1, shuffles=None)
        )  # OpenCL has neither
    return tc.CpuOptions() if source.chance(0.3) else _cpu_options(source)


def draw_gpu_options(source: Source) -> tc.GpuOptions:
    """Every option of GPUs at random."""
    tile = source.choice([None, (), tuple(source.choice(_TILES) for _ in range(source.randint(1, 4)))])
    # Threads have points of a tile to work on; x is the innermost loop, where that is one of so many.
    counted = [size for size in reversed(tile or ()) if size][:3]
    block = tuple(min(source.choice([1, 2, 3, 4, 8]), size) for size in counted)
    schedule = tc.ScheduleOptions(
        fusion=source.choice(list(tc.Fusion)),
        tile=tile,
        unroll=source.choice([1, 1, 2, 4, 16]),
        scans=source.chance(0.8),
    )
    return tc.GpuOptions(
        schedule=schedule,
        block=block if block and source.chance(0.7) else None,
        grid=tuple(source.choice([1, 2, 3, 7]) for _ in counted) if counted and source.chance(0.3) else None,
        distribution=source.choice(list(tc.Distribution)),
        split_k_threads=source.choice([None, None, (), (3,), (4,), (8, 2), (32,), (32,), (64, 2)]),
        split_k_blocks=source.choice([None, None, None, 1, 2, 3]),
        shuffles=source.chance(0.8),
        tensor_cores=source.choice([*tc.TensorCores, tc.TensorCores.WARPS]),
        register_accumulators=source.choice([64, 64, 4, 0]),
        register_operands=source.choice([0, 0, 4, 64]),
        shared_memory=source.choice([48 << 10, 48 << 10, 256, 0]),
        padding=source.choice([4, 4, 0, 1]),
        stages=source.choice([None, 1, 1, 2, 3]),
        min_blocks_per_multiprocessor=source.choice([1, 1, 2]),
        check_indices=source.chance(0.8),
        layout=source.choice(list(tc.TileLayout)),
    )


def _cpu_options(source: Source) -> tc.CpuOptions:
    register_tile = source.choice([None, None, (), (source.randint(1, 9),), (2, 3), (4, 16), (1, 2, 5)])
    # Tiles hold whole register tiles, of whichever loop.
    step = math.lcm(*register_tile or ())
    tile = source.choice([None, (), tuple(step * source.choice(_TILES) for _ in range(source.randint(1, 4)))])
    schedule = tc.ScheduleOptions(
        fusion=source.choice(list(tc.Fusion)),
        tile=tile,
        unroll=source.choice([1, 1, 2, 4, 7, 16, 64]),
        scans=source.chance(0.8),
    )
    return tc.CpuOptions(
        schedule=schedule,
        register_tile=register_tile,
        vector_axis=source.randint(0, len(register_tile) - 1) if register_tile and source.chance(0.5) else None,
        register_accumulators=source.choice([512, 512, 64, 0]),
        packed_operands=source.choice([1 << 17, 1 << 17, 256, 0]),
        local_temporaries=source.choice([1 << 15, 1 << 15, 16, 0]),
        nontemporal_stores=source.choice([1 << 24, 1, 1000, 0]),
        gather_prefetch=source.choice([16, 0, 3]),
        block_prefetch=source.choice([1 << 17, 1 << 10, 0]),
        threads=source.choice([0, 1, 2]),
        vectorize=source.chance(0.7),
        check_indices=source.chance(0.8),
    )
