"""What kernels ask for, counted from their loops and by hand."""

from __future__ import annotations

import pytest

import tc
from tc.polyhedral.gpu.cost.count_kernels import count_kernels
from tc.polyhedral.gpu.cost.sample_loops import alike
from tc.prediction.counts import KernelCount
from tests.translated import translated

COPY = tc.define("def copy(float(N) x) -> (y) { y(i) = x(i) }").single()
PRODUCT = tc.define("def product(float(M,K) A, float(K,N) B) -> (C) { C(m,n) +=! A(m,r_k) * B(r_k,n) }").single()
ROWS = tc.define("def rows(float(M,N) x) -> (y) { y(m) +=! x(m,r_n) }").single()
TRIANGLE = tc.define("def triangle(float(N,N) x) -> (y) { y(i) +=! x(i,j) where i in 0:N, j in 0:i+1 }").single()
CHOSEN = tc.define("def chosen(float(E,D) table, int32(N) index) -> (y) { y(n,d) = table(index(n),d) }").single()


def counted(
    definition: tc.Comprehension, *shapes: tuple[int, ...], options: tc.GpuOptions | None = None, target: str = "sm_90"
) -> tuple[KernelCount, ...]:
    return count_kernels(translated(definition, *shapes, target=f"cuda:{target}", options=options).mapped.loops)


def tiled(*, padding: int = 0, **others: object) -> tc.GpuOptions:
    schedule = tc.ScheduleOptions(tile=(32, 32, 16))
    return tc.GpuOptions(schedule=schedule, block=(16, 16), padding=padding, stages=1, **others)  # type: ignore[arg-type]


def test_a_copy() -> None:
    (kernel,) = counted(COPY, (1 << 16,))
    demand = kernel.demand
    assert (kernel.read, kernel.written, kernel.chosen) == (1 << 18, 1 << 18, 0)
    assert (demand.global_reads, demand.global_writes) == (1 << 11, 1 << 11)
    assert demand.global_lines == 1 << 12
    assert demand.near == demand.far == demand.written == 1 << 13
    assert demand.width == 4
    assert (demand.fma, demand.shared_wavefronts, demand.copied) == (0, 0, 0)


def test_a_tiled_product() -> None:
    """Each of the 8 warps of a block has 2 rows of 16 threads; a thread has 2 x 2 points, 16 apart."""
    (kernel,) = counted(PRODUCT, (64, 32), (32, 96), options=tiled())
    assert kernel.grid == (2, 3)
    assert kernel.threads == 256
    (kind,) = kernel.kinds
    assert kind.count == 6
    assert kind.demand.multiply_adds == 32 * 32 * 32 / 32
    # For each step, 2 words of A and 2 of B for each thread; of A, compilers read four steps at once.
    assert kind.demand.shared_reads == 8 * (2 * 32 / 4 + 2 * 32)
    # A tile of 32 x 16 and one of 16 x 32, twice, in pieces of 16 bytes.
    assert kind.demand.global_reads == 2 * (128 + 128) / 32
    assert kind.demand.near == 2 * (32 * 16 + 16 * 32) * 4 / 32
    assert kind.demand.written == 32 * 32 * 4 / 32


def test_padding_takes_conflicts_away() -> None:
    """What lies along the columns of an operand is in one bank, unless rows are as long as 33 words."""
    transposed = tc.define("def transposed(float(M,N) x) -> (y) { y(n,m) = x(m,n) }").single()
    schedule = tc.ScheduleOptions(tile=(32, 32))
    options = tc.GpuOptions(schedule=schedule, block=(32, 8), shared_memory=1 << 14, padding=0)
    (plain,) = counted(transposed, (64, 64), options=options)
    padded_options = tc.GpuOptions(schedule=schedule, block=(32, 8), shared_memory=1 << 14, padding=1)
    (padded,) = counted(transposed, (64, 64), options=padded_options)
    assert plain.demand.shared_reads == padded.demand.shared_reads > 0
    assert plain.demand.shared_wavefronts > 8 * padded.demand.shared_wavefronts


def test_edges_are_apart() -> None:
    (kernel,) = counted(PRODUCT, (64, 32), (32, 90), options=tiled())
    full, *edges = kernel.kinds
    assert (full.count, sum(kind.count for kind in edges)) == (4, 2)
    assert sum(kind.count for kind in kernel.kinds) == kernel.blocks
    assert full.demand.multiply_adds == 32 * 32 * 32 / 32
    assert all(edge.demand.written < full.demand.written for edge in edges)


def test_asynchronous_copies_have_stages() -> None:
    schedule = tc.ScheduleOptions(tile=(32, 32, 16))
    (kernel,) = counted(
        PRODUCT, (64, 256), (256, 96), options=tc.GpuOptions(schedule=schedule, block=(16, 16), stages=3)
    )
    demand = kernel.kinds[0].demand
    assert demand.global_reads == 0
    assert demand.copies == 16 * (128 + 128) / 32
    # Of three tiles two are under way: two waits count for one.
    assert demand.copy_waits == pytest.approx(demand.barriers / 2)


def test_rows_are_summed_by_shuffles() -> None:
    (kernel,) = counted(ROWS, (64, 4096))
    demand = kernel.demand
    assert demand.shuffles > 0
    assert demand.global_reads == 64 * 4096 / 32
    assert demand.far == 64 * 4096 / 8


def test_ranges_that_grow() -> None:
    """All multiply-adds of a triangle, which are half of the square and half of its diagonal."""
    options = tc.GpuOptions(block=(32,), split_k_threads=(), split_k_blocks=1, shared_memory=0)
    (kernel,) = counted(TRIANGLE, (512, 512), options=options)
    # Warps go on as long as one of their threads does.
    lanes = sum(32 * (row // 32 * 32 + 32) for row in range(0, 512, 32)) / 32
    assert kernel.demand.fma == lanes


def test_data_choose_rows() -> None:
    (kernel,) = counted(CHOSEN, (1 << 20, 64), (256,))
    demand = kernel.demand
    assert kernel.chosen == (1 << 20) * 64 * 4
    # Rows of 256 bytes are eight sectors.
    assert demand.gathered == pytest.approx(256 * 8, rel=0.05)
    assert max(kind.demand.global_waits for kind in kernel.kinds) == 2


def test_iterations_that_are_alike() -> None:
    def signature(number: int) -> object:
        return number < 3, number == 999

    runs = list(alike(1000, signature))
    assert sum(count for _, count in runs) == 1000
    assert sum(count for number, count in runs if number < 3) == 3
    assert sum(count for number, count in runs if number == 999) == 1


@pytest.mark.parametrize(("tile", "block", "in_memory"), [((64, 128), (16, 16), False), ((128, 256), (32, 32), True)])
def test_totals_in_the_memory_of_threads(tile: tuple[int, int], block: tuple[int, int], in_memory: bool) -> None:
    """32 warps of threads with 32 sums each have no registers for these and their totals."""
    options = tc.GpuOptions(schedule=tc.ScheduleOptions(tile=(*tile, 16)), block=block, stages=1)
    (kernel,) = counted(PRODUCT, (tile[0], 256), (256, tile[1]), options=options)
    (kind,) = kernel.kinds
    # Each total grows by four runs of 64 terms, and is added to what is left.
    added = block[0] * block[1] * 5
    assert kind.demand.multiply_adds == tile[0] * tile[1] * 256 / 32
    assert kind.demand.fma == kind.demand.multiply_adds + added
    assert kind.demand.local_reads == kind.demand.local_writes == (added if in_memory else 0)


@pytest.mark.parametrize(("width", "count"), [(64, 4), (32, 1)])
def test_threads_store_vectors_of_what_they_keep(width: int, count: int) -> None:
    """Of neighbouring points, as many as a vector has; two of them are stored one by one."""
    schedule = tc.ScheduleOptions(tile=(32, width, 16))
    options = tc.GpuOptions(schedule=schedule, block=(16, 16), distribution=tc.Distribution.BLOCKED, stages=1)
    (kernel,) = counted(PRODUCT, (32, 32), (32, width), options=options)
    assert kernel.demand.global_writes == 32 * width / count / 32
    assert kernel.demand.written == (1 if count > 1 else 2) * 32 * width * 4 / 32
