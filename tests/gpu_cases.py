"""Cases of the corpus on GPUs, real or emulated, against the oracle, and the options with which they are tried."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np

import tc
from tc.reference.compare import compare
from tests.comprehensions.case import Case, Sizes
from tests.comprehensions.corpus import CASES

Made = TypeVar("Made")


TILED = tc.ScheduleOptions(tile=(3, 5, 4), unroll=4, fusion=tc.Fusion.MAXIMAL)


OPTIONS = {
    "default": tc.GpuOptions(),
    "nothing promoted": tc.GpuOptions(register_accumulators=0, shared_memory=0),
    "only to registers": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), shared_memory=0),
    "only to shared memory": tc.GpuOptions(
        tc.ScheduleOptions(tile=(8, 8, 4)), block=(2, 4), register_accumulators=0, stages=1
    ),
    "several points": tc.GpuOptions(tc.ScheduleOptions(tile=(4, 4, 4)), block=(2, 4, 1), stages=1),
    "partial results": tc.GpuOptions(split_k_threads=(4,)),
    "partial results of partial results, in memory": tc.GpuOptions(
        split_k_threads=(6, 2), register_accumulators=0, shared_memory=0
    ),
    "copied ahead": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), stages=2),
    "operands in registers": tc.GpuOptions(
        tc.ScheduleOptions(tile=(8, 8, 4)), block=(2, 4), register_operands=64, layout=tc.TileLayout.POINTS, stages=2
    ),
    "copied two tiles ahead": tc.GpuOptions(
        tc.ScheduleOptions(tile=(4, 4, 3)), block=(2, 4), stages=3, register_accumulators=0
    ),
    "runs of points, few blocks": tc.GpuOptions(
        TILED, block=(3, 2), grid=(2, 1, 1), distribution=tc.Distribution.BLOCKED
    ),
}


# Of the corpus, by default; random programs run on the emulator, too.
SOME = CASES[::13]


def check(case: Case, sizes: Sizes, options: tc.GpuOptions, target: str = "emulator") -> None:
    definitions = tc.define(case.text)
    comprehension = definitions[case.definition] if case.definition else definitions.single()
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    inputs, outputs = case.make_inputs(rng, sizes), case.make_outputs(rng, sizes)
    expected = comprehension.oracle(*inputs.values(), out=outputs or None)
    results = run(comprehension, tuple(inputs.values()), outputs, options, target)
    for name, values in zip(comprehension.program.results, results, strict=True):
        comparison = compare(expected[name], np.asarray(values))
        assert comparison.ok, f"{name}: {comparison}"


def run(
    comprehension: tc.Comprehension, inputs: tuple[object, ...], outputs: object, options: tc.GpuOptions, target: str
) -> tuple[object, ...]:
    """The results, as a tuple."""
    found = fitting(lambda chosen: comprehension(*inputs, out=outputs or None, target=target, options=chosen), options)
    return found if isinstance(found, tuple) else (found,)


def fitting(make: Callable[[tc.GpuOptions], Made], options: tc.GpuOptions) -> Made:
    """What is made with the options; sizes for loops that the program does not have are left out."""
    while True:
        try:
            return make(options)
        except tc.OptionsError as error:
            options = _shorter(options, str(error))


def _shorter(options: tc.GpuOptions, complaint: str) -> tc.GpuOptions:
    """The options without the size that was too much."""
    name = complaint.split(maxsplit=1)[0]
    if name == "tile":
        return replace(options, schedule=replace(options.schedule, tile=(options.schedule.tile or ())[:-1]))
    if name == "split_k_threads":
        return replace(options, split_k_threads=(options.split_k_threads or ())[:-1])
    if name == "split_k_blocks":
        return replace(options, split_k_blocks=None)
    if name == "grid":
        return replace(options, grid=(options.grid or ())[:-1])
    # "block has ..." or "a block has ..."
    assert "block" in complaint.split()[:2], complaint
    return replace(options, block=(options.block or ())[:-1] or None)
