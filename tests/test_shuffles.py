"""Partial results that the lanes of a warp combine from register to register."""

from __future__ import annotations

import re

import numpy as np
import pytest

import tc
from tc.dispatch.kernel import Kernel
from tc.reference.compare import compare
from tests.turns import every, one_in

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


@one_in(3)
@pytest.mark.parametrize("split", every(2, [None, (32,), (64, 2), (256, 8), (96, 3), (1024, 32)]), ids=str)
@pytest.mark.parametrize("shape", [(5, 1333), (33, 1025)], ids=str)
def test_values_are_those_of_the_definition(split: tuple[int, ...] | None, shape: tuple[int, ...]) -> None:
    values = random(shape)
    kernel = SUMS.compile(values, target="emulator", options=tc.GpuOptions(split_k_threads=split))
    # A thread has several of 1024 partial results, which therefore lie in shared memory.
    assert exchanges(kernel) == (0 if split == (1024, 32) else 1)
    assert agrees(SUMS, kernel, values)


@one_in(3)
@pytest.mark.parametrize("operator", ["+", "*", "min", "max"])
@pytest.mark.parametrize("type", every(2, ["float32", "float64", "int32", "int64", "uint32", "uint64"]))
def test_every_reduction_of_what_shuffles_move(operator: str, type: str) -> None:
    reduce = tc.define(f"def f({type}(M,N) X) -> (O) {{ O(m) {operator}=! X(m,n) }}").f
    values = random((3, 70), type)
    kernel = reduce.compile(values, target="emulator", options=tc.GpuOptions(split_k_threads=(32,)))
    assert exchanges(kernel) == 1
    assert agrees(reduce, kernel, values)


@pytest.mark.parametrize("type", every(2, ["float64", "int32", "int64", "uint32", "uint64"]))
def test_cuda_knows_shuffles_of_all_of_them(type: str) -> None:
    reduce = tc.define(f"def f({type}(M,N) X) -> (O) {{ O(m) +=! X(m,n) }}").f
    for architecture in ("sm_80", "sm_100"):
        kernel = reduce.compile((3, 70), target=f"cuda:{architecture}", options=tc.GpuOptions(split_k_threads=(32,)))
        assert exchanges(kernel) == 1


@pytest.mark.parametrize("type", ["int8", "uint8", "int16", "bool"])
def test_what_shuffles_do_not_move_goes_through_shared_memory(type: str) -> None:
    reduce = tc.define(f"def f({type}(M,N) X) -> (O) {{ O(m) max=! X(m,n) }}").f
    values = random((3, 70), type)
    kernel = reduce.compile(values, target="emulator", options=tc.GpuOptions(split_k_threads=(32,)))
    assert exchanges(kernel) == 0
    assert "team->shared" in kernel.source
    assert agrees(reduce, kernel, values)


def test_a_warp_alone_needs_neither_barriers_nor_shared_memory() -> None:
    kernel = SUMS.compile((512, 70), target="cuda:sm_90")
    assert "__syncthreads" not in kernel.source
    assert "shared" not in kernel.source
    wide = SUMS.compile((512, 4096), target="cuda:sm_90")
    assert wide.source.count("__syncthreads") == 1  # eight warps


def test_a_single_element_lies_in_no_lane() -> None:
    text = "def f(int64(N) A, double(M) B) -> (C) { S +=! A(i)  C(i) = S where i in 0:N  C(i) += int64(B(k)) }"
    comprehension = tc.define(text).single()
    arrays = (random((7,), "int64"), random((9,), "float64"))
    assert agrees(comprehension, comprehension.compile(*arrays, target="emulator"), *arrays)


def test_shuffles_can_be_declined() -> None:
    values = random((5, 70))
    kernel = SUMS.compile(values, target="emulator", options=tc.GpuOptions(split_k_threads=(32,), shuffles=False))
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
@pytest.mark.parametrize("block", every(2, [(16,), (48,), (64,), (128,), (8, 2), (64, 3), (48, 2), (128, 4)]), ids=str)
def test_blocks_of_any_shape_are_right(block: tuple[int, ...]) -> None:
    values = random((9, 300))
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(block[1:] or (1,))), block=block, split_k_threads=(128, 4))
    kernel = SUMS.compile(values, target="emulator", options=options)
    assert exchanges(kernel) == (block[0] == 128)
    assert agrees(SUMS, kernel, values)


# Sums over as many elements as a warp has lanes, which look like what lanes could exchange; few of them are.
LOOKALIKES = {
    "another row in every lane": ("P(m, q%2, l)", "q in 0:32, l in 0:32", 0),
    "another row in every half": ("P(m, q/16, l)", "q in 0:32, l in 0:32", 0),
    "another row in every iteration": ("P(m, l%2, l)", "q in 0:32, l in 0:32", 0),
    "one row": ("P(m, 1, l)", "q in 0:32, l in 0:32", 1),
    "some lanes in some iterations": ("P(m, 1-j, l)", "q in 0:32, l in 0:32, j in 0:2, 32*j+l < 40", 0),
    "fewer lanes in every iteration": ("P(m, 1-j, l)", "q in 0:32, l in 0:32, j in 0:2, l >= j", 0),
    "fewer readers in some iterations": ("P(m, 1-j, l)", "q in 0:32, l in 0:32, j in 0:2, q <= 16*j+20", 0),
    "each row in its own iteration": ("P(m, 1-j, l)", "q in 0:32, l in 0:32, j in 0:2", 1),
}


@one_in(3)
@pytest.mark.parametrize("name", LOOKALIKES)
def test_only_what_is_the_same_for_all_lanes_is_exchanged(name: str) -> None:
    read, ranges, exchanged = LOOKALIKES[name]
    text = f"""
    def f(float(M,J,N) X) -> (O, Z) {{
      P(m,j,p) = X(m,j,p) where p in 0:32
      O(m,q) +=! {read} where {ranges}
      Z(m) = O(m,0)
    }}
    """
    comprehension = tc.define(text).single()
    values = random((3, 2, 40))
    kernel = comprehension.compile(values, target="emulator")
    assert exchanges(kernel) == exchanged
    assert agrees(comprehension, kernel, values)


def test_threads_keep_no_more_in_lanes_than_elsewhere() -> None:
    text = """
    def f(float(M,J,N) X) -> (O, Z) {
      P(m,j,p) = X(m,j,p) where p in 0:32
      O(m,q) +=! P(m,7,l) where q in 0:32, l in 0:32
      Z(m) = O(m,0)
    }
    """
    comprehension = tc.define(text).single()
    for rows, exchanged in ((20, 1), (2000, 0)):
        kernel = comprehension.compile((3, rows, 40), target="cuda:sm_90")
        assert ("__shfl_xor_sync" in kernel.source) == exchanged


@pytest.mark.parametrize("grid", [(2,), (5,)])
def test_blocks_that_work_on_several_tiles_meet_at_their_barriers(grid: tuple[int, ...]) -> None:
    values = random((9, 600))
    options = tc.GpuOptions(tc.ScheduleOptions(fusion=tc.Fusion.MINIMAL), grid=grid)
    assert agrees(SUMS, SUMS.compile(values, target="emulator", options=options), values)


def test_staged_totals_are_ordered_by_their_copies() -> None:
    text = "def f(float(M,N) X) -> (S, Q) { S(m) +=! X(m,n)  Q(m) +=! (X(m,n) - S(m)) * (X(m,n) - S(m)) }"
    comprehension = tc.define(text).single()
    values = random((3, 129))
    for tile in ((1, 2), (1, 3)):
        options = tc.GpuOptions(tc.ScheduleOptions(tile=tile), distribution=tc.Distribution.BLOCKED)
        assert agrees(comprehension, comprehension.compile(values, target="emulator", options=options), values)
