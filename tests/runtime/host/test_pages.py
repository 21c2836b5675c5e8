"""Large results lie on huge pages, whichever framework allocates them."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path
from resource import RUSAGE_THREAD, getrusage

import numpy as np
import pytest

from tc.base.types import ScalarType
from tc.runtime.frameworks.arrays import allocator, describe
from tc.runtime.host.pages import FRESH_BYTES, LEAST_BYTES, prefer_huge_pages
from tc.runtime.views.view import Framework

ENABLED = Path("/sys/kernel/mm/transparent_hugepage/enabled")
HUGE_PAGE = 2 << 20

pytestmark = pytest.mark.skipif(not ENABLED.exists(), reason="this system has no huge pages")


def wants_huge_pages(address: int) -> bool:
    """Whether the mapping around ``address`` is marked for huge pages."""
    inside = False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        first, _, rest = line.partition(" ")
        if first == "VmFlags:":
            if inside:
                return "hg" in rest.split()
        elif not first.endswith(":"):
            begin, end = (int(bound, 16) for bound in first.split("-"))
            inside = begin <= address < end
    raise AssertionError(f"nothing is mapped at {address:#x}")


@pytest.mark.parametrize("framework", [Framework.NUMPY, Framework.TORCH, Framework.JAX])
def test_large_results_lie_on_huge_pages(framework: Framework) -> None:
    if framework is Framework.JAX:
        pytest.importorskip("jax")
    memory = allocator(framework, (LEAST_BYTES + 3,), ScalarType.FLOAT32)()
    assert wants_huge_pages(describe(memory, "memory").address + 2 * LEAST_BYTES)


@pytest.mark.parametrize("framework", [Framework.NUMPY, Framework.TORCH, Framework.JAX])
@pytest.mark.parametrize("type", [ScalarType.FLOAT32, ScalarType.BFLOAT16])
def test_fresh_results_cost_a_fault_for_every_huge_page(framework: Framework, type: ScalarType) -> None:
    if framework is Framework.JAX:
        pytest.importorskip("jax")
    if "[never]" in ENABLED.read_text():
        pytest.skip("huge pages are switched off")
    rows = FRESH_BYTES // 1024 // type.itemsize
    memory = allocator(framework, (rows, 1025), type)()
    view = describe(memory, "memory")
    assert (view.shape, view.strides) == ((rows, 1025), (1025, 1))
    assert view.address % HUGE_PAGE == 0
    before = getrusage(RUSAGE_THREAD).ru_minflt
    ctypes.memset(view.address, 1, rows * 1025 * type.itemsize)
    # Where memory is in pieces, the system may have no huge page at hand.
    assert getrusage(RUSAGE_THREAD).ru_minflt - before < FRESH_BYTES // mmap.PAGESIZE // 2


def test_only_whole_pages_inside_are_marked() -> None:
    block = mmap.mmap(-1, 16 * mmap.PAGESIZE)
    begin = np.frombuffer(block, np.uint8).ctypes.data
    prefer_huge_pages(begin + 2 * mmap.PAGESIZE - 1, 2 * mmap.PAGESIZE)
    assert [wants_huge_pages(begin + n * mmap.PAGESIZE) for n in range(4)] == [False, False, True, False]
    # Nothing whole is inside.
    prefer_huge_pages(begin + 8 * mmap.PAGESIZE + 1, mmap.PAGESIZE)
    prefer_huge_pages(begin, 0)
    assert not wants_huge_pages(begin + 8 * mmap.PAGESIZE)
