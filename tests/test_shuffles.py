"""Partial results that the lanes of a warp combine from register to register."""

from __future__ import annotations

import re
from unittest.mock import patch

import numpy as np
import pytest

import tc
from tc.polyhedral import promote_temporaries, promote_to_lanes
from tc.proof import Proof
from tc.reference.compare import compare

SUMS = tc.define("def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }").sums


def agrees(comprehension: tc.Comprehension, kernel: tc.Kernel, *arrays: np.ndarray) -> bool:
    expected = comprehension.oracle(*arrays)
    found = kernel(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    pairs = zip(expected.values(), results, strict=True)
    return all(compare(wanted, np.asarray(values)).ok for wanted, values in pairs)


def random(shape: tuple[int, ...], type: str = "float32") -> np.ndarray:
    values = np.random.default_rng(3).standard_normal(shape) * 3
    return values.astype(type) if type.startswith("float") else np.abs(values).astype(type)


def exchanges(kernel: tc.Kernel) -> int:
    """How many totals of lanes its text has."""
    return len(re.findall(r"\btc_exchange\(team, \d+|__shfl_xor_sync\(", kernel.source))


@pytest.mark.parametrize("split", [None, (32,), (64, 2), (256, 8), (96, 3), (1024, 32)], ids=str)
@pytest.mark.parametrize("shape", [(5, 1333), (33, 1025), (1, 2000)], ids=str)
def test_values_are_those_of_the_definition(split: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    values = random(shape)
    kernel = SUMS.compile(values, target="emulator", options=tc.GpuOptions(split=split))
    # The second time, 32 partial results are left, and again lanes combine them.
    assert exchanges(kernel) == (2 if split == (1024, 32) else 1)
    assert agrees(SUMS, kernel, values)


@pytest.mark.parametrize("operator", ["+", "*", "min", "max"])
@pytest.mark.parametrize("type", ["float32", "float64", "int32", "int64", "uint32", "uint64"])
def test_every_reduction_of_what_shuffles_move(operator: str, type: str) -> None:
    reduce = tc.define(f"def f({type}(M,N) X) -> (O) {{ O(m) {operator}=! X(m,n) }}").f
    values = random((3, 70), type)
    kernel = reduce.compile(values, target="emulator", options=tc.GpuOptions(split=(32,)))
    assert exchanges(kernel) == 1
    assert agrees(reduce, kernel, values)


@pytest.mark.parametrize("type", ["int8", "uint8", "int16", "bool"])
def test_what_shuffles_do_not_move_goes_through_shared_memory(type: str) -> None:
    reduce = tc.define(f"def f({type}(M,N) X) -> (O) {{ O(m) max=! X(m,n) }}").f
    values = random((3, 70), type)
    kernel = reduce.compile(values, target="emulator", options=tc.GpuOptions(split=(32,)))
    assert exchanges(kernel) == 0
    assert "team->shared" in kernel.source
    assert agrees(reduce, kernel, values)


def test_a_warp_alone_needs_neither_barriers_nor_shared_memory() -> None:
    kernel = SUMS.compile((512, 70), target="cuda:sm_90")
    assert "__syncthreads" not in kernel.source
    assert "shared" not in kernel.source
    wide = SUMS.compile((512, 4096), target="cuda:sm_90")
    assert wide.source.count("__syncthreads") == 1  # eight warps


def test_shuffles_can_be_declined() -> None:
    values = random((5, 70))
    kernel = SUMS.compile(values, target="emulator", options=tc.GpuOptions(split=(32,), shuffles=False))
    assert exchanges(kernel) == 0
    assert agrees(SUMS, kernel, values)


def test_every_thread_of_a_row_may_use_the_total() -> None:
    text = "def f(float(N,D) X) -> (S, O) { S(n) +=! X(n,d)  O(n,d) = X(n,d) / (1.0 + S(n) * S(n)) }"
    normalize = tc.define(text).f
    for shape in ((7, 129), (3, 1100)):
        values = random(shape)
        kernel = normalize.compile(values, target="emulator")
        assert exchanges(kernel) == 1
        assert agrees(normalize, kernel, values)


# A block's threads may be arranged so that neighbours along x are no warp, or do not hold one partial result each.
BLOCKS = ((16,), (48,), (64,), (128,), (256,), (32, 2), (48, 2), (16, 4), (64, 3))


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("split", [(32,), (64, 2), (128, 4)], ids=str)
def test_blocks_of_any_shape_are_right(block: tuple[int, ...], split: tuple[int, ...]) -> None:
    values = random((9, 300))
    options = tc.GpuOptions(block=block, split=split)
    try:
        kernel = SUMS.compile(values, target="emulator", options=options)
    except tc.OptionsError:
        options = tc.GpuOptions(block=block[:1], split=split)
        kernel = SUMS.compile(values, target="emulator", options=options)
    assert agrees(SUMS, kernel, values)


ROWS = tc.define("def rows(float(B,M,N) X) -> (O) { O(b,m) +=! X(b,m,n) }").rows


@pytest.mark.parametrize("block", [(32, 4), (32, 3), (16, 4), (48, 2)], ids=str)
def test_several_rows_in_a_block(block: tuple[int, ...]) -> None:
    values = random((2, 5, 150))
    tile = (1, 4)
    options = tc.GpuOptions(tc.ScheduleOptions(tile=tile), block=block, split=(32,))
    try:
        kernel = ROWS.compile(values, target="emulator", options=options)
    except tc.OptionsError:
        pytest.skip("no such block")
    assert agrees(ROWS, kernel, values)


# --- what the proof refuses, and the emulator notices


def unproven() -> object:
    return patch("tc.polyhedral.pipeline.prove", lambda *_: Proof(0, 0, 0, 0))


@pytest.mark.parametrize(
    ("condition", "block", "split"),
    [
        ("_is_in_own_lane", (64,), (128, 4)),
        ("_combines_lanes", (64,), (128, 4)),
    ],
)
def test_lanes_without_what_they_need_are_refused(
    condition: str, block: tuple[int, ...], split: tuple[int, ...]
) -> None:
    values = random((9, 300))
    options = tc.GpuOptions(block=block, split=split)
    with patch.object(promote_to_lanes, condition, lambda *_: True), pytest.raises(tc.VerificationError):
        SUMS.compile(values, target="emulator", options=options)
