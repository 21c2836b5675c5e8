"""Huge pages for large fresh memory.

Memory that comes from the system costs a page fault wherever a kernel touches it first.  With pages of 4 KiB those
faults cost a memory-bound kernel several times its own work; with pages of 2 MiB there are five hundred times fewer.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections.abc import Callable
from typing import Final

# NumPy asks for huge pages from this size on, too.
LEAST_BYTES: Final = 4 << 20
# From this size on glibc returns memory to the system as soon as it is freed, so that every result would be new memory.
FRESH_BYTES: Final = 32 << 20
_HUGE_PAGE: Final = 2 << 20


def in_huge_pages(size: int) -> int:
    """The bytes of as many whole huge pages as ``size`` bytes take."""
    return -(-size // _HUGE_PAGE) * _HUGE_PAGE


def huge_room(size: int) -> int:
    """Bytes to allocate so that ``size`` bytes can lie on whole huge pages of their own."""
    return in_huge_pages(size) + _HUGE_PAGE


def huge_start(address: int) -> int:
    """Bytes from ``address`` to the next huge page."""
    return -address % _HUGE_PAGE


def prefer_huge_pages(address: int, size: int) -> None:
    """Asks the system to back the whole pages inside ``size`` bytes at ``address`` by huge ones.

    A hint: it changes no content, and a system that knows no such hint, or declines, goes on as before.
    """
    advise = _advise()
    first = -(-address // mmap.PAGESIZE) * mmap.PAGESIZE
    length = (address + size) // mmap.PAGESIZE * mmap.PAGESIZE - first
    if advise is not None and length > 0:
        advise(first, length)


@functools.cache
def _advise() -> Callable[[int, int], object] | None:
    advice: int | None = getattr(mmap, "MADV_HUGEPAGE", None)
    if advice is None:
        return None
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes, madvise.restype = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int), ctypes.c_int
    return lambda first, length: madvise(first, length, advice)
