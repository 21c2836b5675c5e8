"""The corpus on the emulator: blocks and threads, at ragged sizes, against the oracle."""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import numpy as np
import pytest

import tc
from tc.reference.compare import compare
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES

Made = TypeVar("Made")
TILED = tc.ScheduleOptions(tile=(3, 5, 4), unroll=4, fusion=tc.Fusion.MAXIMAL)
OPTIONS = {
    "default": tc.GpuOptions(),
    "nothing promoted": tc.GpuOptions(private=0, shared=0),
    "only to registers": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(4, 2), shared=0),
    "only to shared memory": tc.GpuOptions(tc.ScheduleOptions(tile=(8, 8, 4)), block=(2, 4), private=0),
    "several points": tc.GpuOptions(tc.ScheduleOptions(tile=(4, 4, 4)), block=(2, 4, 1)),
    "partial results": tc.GpuOptions(split=(4,)),
    "partial results of partial results, in memory": tc.GpuOptions(split=(6, 2), private=0, shared=0),
    "runs of points, few blocks": tc.GpuOptions(
        TILED, block=(3, 2), grid=(2, 1, 1), distribution=tc.Distribution.BLOCKED
    ),
}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_corpus_agrees_with_the_oracle(case: Case, options: tc.GpuOptions) -> None:
    definitions = tc.define(case.text)
    comprehension = definitions[case.definition] if case.definition else definitions.single()
    sizes = (case.ragged_sizes or (case.paper_sizes,))[0]
    rng = np.random.default_rng(zlib.crc32(case.name.encode()))
    inputs, outputs = case.make_inputs(rng, sizes), case.make_outputs(rng, sizes)
    expected = comprehension.oracle(*inputs.values(), out=outputs or None)
    results = run(comprehension, tuple(inputs.values()), outputs, options)
    for name, values in zip(comprehension.program.results, results, strict=True):
        comparison = compare(expected[name], np.asarray(values))
        assert comparison.ok, f"{name}: {comparison}"


def run(
    comprehension: tc.Comprehension, inputs: tuple[object, ...], outputs: object, options: tc.GpuOptions
) -> tuple[object, ...]:
    """The results, as a tuple."""
    found = fitting(
        lambda chosen: comprehension(*inputs, out=outputs or None, target="emulator", options=chosen), options
    )
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
    if name == "split":
        return replace(options, split=options.split[:-1])
    if name == "grid":
        return replace(options, grid=(options.grid or ())[:-1])
    # "block has ..." or "a block has ..."
    assert "block" in complaint.split()[:2], complaint
    return replace(options, block=(options.block or ())[:-1] or None)


MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
A, B = np.ones((100, 64), np.float32), np.ones((64, 70), np.float32)


PLAIN = tc.GpuOptions(private=0, shared=0)


def loops(options: tc.GpuOptions = PLAIN) -> list[str]:
    """The headers of the loops in the source, outermost first: those of the threads, then of the launch."""
    source = MM.compile(A, B, target="emulator", options=replace(options, private=0, shared=0)).source
    return re.findall(r"for \(int64_t (.*?;.*?);", source)


def test_every_point_has_a_thread_by_default() -> None:
    assert loops()[-4:] == ["block_y = 0; block_y < 13", "block_x = 0; block_x < 3", "thread_y = 0; thread_y < 8",
                            "thread_x = 0; thread_x < 32"]  # fmt: skip
    assert loops()[:-4] == ["c0 = 0; c0 < 64"]


def test_a_block_is_as_large_as_the_options_say() -> None:
    found = loops(tc.GpuOptions(tc.ScheduleOptions(tile=(32, 16)), block=(8, 4)))
    assert found[-2:] == ["thread_y = 0; thread_y < 4", "thread_x = 0; thread_x < 8"]
    assert found[-4:-2] == ["block_y = 0; block_y < 4", "block_x = 0; block_x < 5"]


def test_a_grid_is_no_larger_than_the_options_say() -> None:
    found = loops(tc.GpuOptions(tc.ScheduleOptions(tile=(32, 16)), block=(8, 4), grid=(2, 3)))
    assert found[-4:-2] == ["block_y = 0; block_y < 3", "block_x = 0; block_x < 2"]
    assert any(header.startswith("c0 = block_y") for header in found)


def test_points_are_dealt_out_one_by_one_or_in_runs() -> None:
    schedule = tc.ScheduleOptions(tile=(1, 16))
    cyclic = loops(tc.GpuOptions(schedule, block=(8,)))
    runs = loops(tc.GpuOptions(schedule, block=(8,), distribution=tc.Distribution.BLOCKED))
    assert any(re.match(r"c\d+ = thread_x;", header) for header in cyclic)
    assert any(re.match(r"c\d+ = 2 \* thread_x;", header) for header in runs)


def test_gathers_check_their_indices() -> None:
    pick = tc.define("def pick(float(N) X, int32(K) I) -> (O) { O(k) = X(I(k)) }").pick
    x, wrong = np.arange(8, dtype=np.float32), np.array([0, 8], np.int32)
    with pytest.raises(tc.ArgumentError, match="index"):
        pick(x, wrong, target="emulator")
    assert (
        "tc_checked_index"
        not in pick.compile(x, wrong, target="emulator", options=tc.GpuOptions(check_indices=False)).source
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            tc.GpuOptions(block=(8, 4, 2)),
            (
                "block has 3 sizes, but at most 2 loops of a nest can be shared by threads; leave out the last "
                "ones, or tile more loops"
            ),
        ),
        (
            tc.GpuOptions(tc.ScheduleOptions(tile=(8,)), grid=(8, 4)),
            (
                "grid has 2 sizes, but at most 1 loops of a nest can be shared by blocks; leave out the last "
                "ones, or tile more loops"
            ),
        ),
        (
            tc.GpuOptions(tc.ScheduleOptions(tile=(8, 16)), block=(32,)),
            (
                "a block has 32 threads along dimension 0, but a tile only 16 points; make the tile larger or the "
                "block smaller"
            ),
        ),
    ],
)
def test_what_a_kernel_cannot_honour_is_refused(options: tc.GpuOptions, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        MM.compile(A, B, target="emulator", options=options)


def test_options_of_another_target_are_refused() -> None:
    with pytest.raises(tc.OptionsError, match=r"options must be tc\.GpuOptions for target 'emulator', got CpuOptions"):
        MM.compile(A, B, target="emulator", options=tc.CpuOptions())
    with pytest.raises(tc.OptionsError, match=r"options must be tc\.CpuOptions for target 'cpu:.*', got GpuOptions"):
        MM.compile(A, B, target="cpu", options=tc.GpuOptions())
