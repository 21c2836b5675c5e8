"""Partial results that the lanes of a warp combine from register to register."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.kernel import Kernel
from tc.reference.compare import compare

SUMS = tc.define("def sums(float(M,N) X) -> (O) { O(m) +=! X(m,n) }").sums


def agrees(comprehension: tc.Comprehension, kernel: Kernel, *arrays: np.ndarray) -> bool:
    expected = comprehension.oracle(*arrays)
    found = kernel(*arrays)
    results = found if isinstance(found, tuple) else (found,)
    pairs = zip(expected.values(), results, strict=True)
    return all(compare(wanted, np.asarray(values)).ok for wanted, values in pairs)


def random(shape: tuple[int, ...], type: str = "float32") -> np.ndarray:
    values = np.random.default_rng(3).standard_normal(shape) * 3
    return values.astype(type) if type.startswith("float") else np.abs(values).astype(type)


def exchanges(kernel: Kernel) -> int:
    """How many totals of lanes its text has."""
    return len(re.findall(r"\btc_exchange\(team, \d+|__shfl_xor_sync\(", kernel.source))


@pytest.mark.parametrize("split", [None, (32,), (64, 2), (256, 8), (96, 3), (1024, 32)], ids=str)
@pytest.mark.parametrize("shape", [(5, 1333), (33, 1025)], ids=str)
def test_values_are_those_of_the_definition(split: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    values = random(shape)
    kernel = SUMS.compile(values, target="emulator", options=tc.GpuOptions(split=split))
    # A thread has several of 1024 partial results, which therefore lie in shared memory.
    assert exchanges(kernel) == (0 if split == (1024, 32) else 1)
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
@pytest.mark.parametrize("block", [(16,), (48,), (64,), (128,), (8, 2), (64, 3), (48, 2), (128, 4)], ids=str)
def test_blocks_of_any_shape_are_right(block: tuple[int, ...]) -> None:
    values = random((9, 300))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(block[1:] or (1,))), block=block, split=(128, 4))
    kernel = SUMS.compile(values, target="emulator", options=options)
    assert exchanges(kernel) == (block[0] == 128)
    assert agrees(SUMS, kernel, values)
