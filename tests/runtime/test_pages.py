"""Large results lie on huge pages, whichever framework allocates them."""

from __future__ import annotations

import mmap
from pathlib import Path

import numpy as np
import pytest

from tc.runtime.arrays import allocator, describe
from tc.runtime.pages import LEAST_BYTES, prefer_huge_pages
from tc.runtime.view import Framework
from tc.types import ScalarType

pytestmark = pytest.mark.skipif(
    not Path("/sys/kernel/mm/transparent_hugepage/enabled").exists(), reason="this system has no huge pages"
)


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


def test_only_whole_pages_inside_are_marked() -> None:
    block = mmap.mmap(-1, 16 * mmap.PAGESIZE)
    begin = np.frombuffer(block, np.uint8).ctypes.data
    prefer_huge_pages(begin + 2 * mmap.PAGESIZE - 1, 2 * mmap.PAGESIZE)
    assert [wants_huge_pages(begin + n * mmap.PAGESIZE) for n in range(4)] == [False, False, True, False]
    # Nothing whole is inside.
    prefer_huge_pages(begin + 8 * mmap.PAGESIZE + 1, mmap.PAGESIZE)
    prefer_huge_pages(begin, 0)
    assert not wants_huge_pages(begin + 8 * mmap.PAGESIZE)
