"""The corpus on the emulator: blocks and threads, at ragged sizes, against the oracle."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tc
from tests.comprehensions.case import Case
from tests.comprehensions.corpus import CASES
from tests.gpu_cases import OPTIONS, SOME, check
from tests.turns import one_in

SOME_EVEN = CASES[5::55]


@one_in(6)
@pytest.mark.parametrize("number", range(len(SOME)), ids=[case.name for case in SOME])
def test_some_of_the_corpus_agrees_with_the_oracle(number: int) -> None:
    """With one set of options each, by turns; all combinations are in ``test_all_combinations_agree``."""
    options = tuple(OPTIONS.values())
    check(SOME[number], SOME[number].large_ragged_sizes, options[number % len(options)])


@one_in(3)
@pytest.mark.parametrize("number", range(len(SOME_EVEN)), ids=[case.name for case in SOME_EVEN])
def test_some_of_the_corpus_agrees_at_divisible_sizes(number: int) -> None:
    options = tuple(OPTIONS.values())
    check(SOME_EVEN[number], SOME_EVEN[number].divisible_sizes, options[number % len(options)])


@pytest.mark.slow
@pytest.mark.parametrize("divisible", [False, True], ids=["ragged", "divisible"])
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_all_combinations_agree(case: Case, options: tc.GpuOptions, divisible: bool) -> None:
    """At sizes that have no common factor with those of the options, and at sizes that these divide."""
    check(case, case.divisible_sizes if divisible else case.large_ragged_sizes, options)


MM = tc.define("def mm(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,k) * B(k,n) }").mm
A, B = np.ones((100, 64), np.float32), np.ones((64, 70), np.float32)


PLAIN = tc.GpuOptions(register_accumulators=0, shared_memory=0)


def loops(options: tc.GpuOptions = PLAIN) -> list[str]:
    """The headers of the loops in the source, outermost first: those of the threads, then of the launch."""
    source = MM.compile(
        A, B, target="emulator", options=replace(options, register_accumulators=0, shared_memory=0)
    ).source
    return re.findall(r"for \(int\d\d_t (.*?;.*?);", source.replace("_turn", ""))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("sums_of_diagonals", "several points"),
        pytest.param("overlap_add", "operands in registers", marks=pytest.mark.slow),
    ],
)
def test_loops_of_many_pieces_do_not_take_all_operations(name: str, options: str) -> None:
    """What they leave out is asked piece by piece."""
    (case,) = (case for case in CASES if case.name == name)
    check(case, case.large_ragged_sizes, OPTIONS[options], "emulator")


@pytest.mark.parametrize(("name", "options"), [("gauss_seidel", "several points"), ("gru", "partial results")])
def test_steps_of_blocks_stay_in_order_under_tiles_and_have_partial_results(name: str, options: str) -> None:
    (case,) = (case for case in CASES if case.name == name)
    check(case, case.large_ragged_sizes, OPTIONS[options], "emulator")


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

    def columns(distribution: tc.Distribution) -> set[tuple[str, str]]:
        options = tc.GpuOptions(
            schedule, block=(8,), distribution=distribution, register_accumulators=0, shared_memory=0
        )
        source = MM.compile(A, B, target="emulator", options=options).source
        sums = dict(re.findall(r"const int32_t (offset\d) = 16 \* block_x \+ (.*?);", source))
        return {(sums[name], rest) for name, rest in re.findall(r"(offset\d) \+ 70 \* c0 \+ (.*?),", source)}

    assert columns(tc.Distribution.CYCLIC) == {("thread_x", "8 * c1")}
    assert columns(tc.Distribution.BLOCKED) == {("2 * thread_x", "c1")}


def test_gathers_check_their_indices() -> None:
    pick = tc.define("def pick(float(N) X, int32(K) I) -> (O) { O(k) = X(I(k)) }").pick
    x, wrong = np.arange(8, dtype=np.float32), np.array([0, 8], np.int32)
    with pytest.raises(tc.ArgumentError, match="index"):
        pick(x, wrong, target="emulator")
    unchecked = pick.compile(x, wrong, target="emulator", options=tc.GpuOptions(check_indices=False))
    assert "faulted, 1)" in pick.compile(x, wrong, target="emulator").source
    assert "faulted, 1)" not in unchecked.source


ORDER = "(block and grid begin with x, the innermost of the loops that are shared; tile begins with the outermost loop)"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            tc.GpuOptions(block=(8, 4, 2)),
            (
                "block has 3 sizes, but at most 2 loops of a nest can be shared by threads; leave out the last "
                "ones, or tile more loops " + ORDER
            ),
        ),
        (
            tc.GpuOptions(tc.ScheduleOptions(tile=(8,)), grid=(8, 4)),
            (
                "grid has 2 sizes, but at most 1 loop of a nest can be shared by blocks; leave out the last "
                "ones, or tile more loops " + ORDER
            ),
        ),
    ],
)
def test_what_a_kernel_cannot_honour_is_refused(options: tc.GpuOptions, message: str) -> None:
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        MM.compile(A, B, target="emulator", options=options)


def test_a_block_has_at_most_64_threads_along_z() -> None:
    copy = tc.define("def copy(float(L,M,N) A) -> (B) { B(l,m,n) = A(l,m,n) }").copy
    options = tc.GpuOptions(tc.ScheduleOptions(tile=(128, 1, 1)), block=(1, 1, 128))
    message = "a block has 128 threads along dimension 2, where GPUs have at most 64; make the block smaller " + ORDER
    with pytest.raises(tc.OptionsError, match=f"^{re.escape(message)}$"):
        copy.compile((200, 3, 5), target="emulator", options=options)


def test_options_of_another_target_are_refused() -> None:
    with pytest.raises(tc.OptionsError, match=r"options must be tc\.GpuOptions for target 'emulator', got CpuOptions"):
        MM.compile(A, B, target="emulator", options=tc.CpuOptions())
    with pytest.raises(tc.OptionsError, match=r"options must be tc\.CpuOptions for target 'cpu:.*', got GpuOptions"):
        MM.compile(A, B, target="cpu", options=tc.GpuOptions())


def test_indices_have_as_many_bits_as_they_need(tmp_path: Path) -> None:
    twice = tc.define("def twice(float(M,N) X) -> (Y) { Y(m,n) = 2.0 * X(m,n) }").twice
    stride = (1 << 31) + 8
    # A file with holes: two rows, more than 2^31 elements apart.
    memory = np.memmap(tmp_path / "sparse", np.float32, "w+", shape=(stride + 5,))
    rows = np.lib.stride_tricks.as_strided(memory, (2, 5), (4 * stride, 4))
    rows[...] = np.arange(10, dtype=np.float32).reshape(2, 5)
    np.testing.assert_array_equal(np.asarray(twice(rows, target="emulator")), 2 * rows)
    near = np.ones((2, 5), np.float32)
    for array, type in ((rows, "int64_t"), (near, "int32_t")):
        assert f"    {type} thread_x" in twice.compile(array, target="emulator").source


@pytest.mark.parametrize("shape", [(1 << 40, 1), (1 << 20, 1 << 20), (1000003, 1000003), (3, 1 << 40)])
def test_arrays_may_have_more_elements_than_a_grid_has_threads(shape: tuple[int, int]) -> None:
    copy = tc.define("def copy(int8(M,N) X) -> (Y) { Y(m,n) = X(m,n) }").copy
    kernel = copy.compile(shape, target="emulator")
    assert kernel.proof.statements == 1
    assert "int64_t" in kernel.source


def test_loops_up_to_the_end_of_32_bits_are_counted_in_64() -> None:
    fill = tc.define("def fill(int8(N) X) -> (Y) { Y() max=! X(n) }").fill
    large = tc.ArraySpec((1 << 31,), tc.ScalarType.INT8, (0,))
    assert "int64_t c0 = 0" in fill.compile(large, target="emulator").source
    small = tc.ArraySpec(((1 << 31) - 1,), tc.ScalarType.INT8, (0,))
    assert "int32_t c0 = 0" in fill.compile(small, target="emulator").source


def test_reads_that_no_iteration_reaches_are_proven_too() -> None:
    """For two elements, nothing of `X` is read: its access relation is empty."""
    text = "A(i % 1) +=! O(i)  X(i) = A(i)  B min=! i < X.0 ? X(i) : 1.5 where i in 1:M  C(j) max=! X(j)"
    comprehension = tc.define(f"def f(uint32(M) O) -> (B) {{ {text} }}").single()
    assert comprehension(np.array([8, 1], np.uint32), target="emulator") == 1.5
