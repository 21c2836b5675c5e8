"""Memory for large results, which results that were let go of leave to the next ones.

Memory that comes from the system is cleared first, page by page: for a kernel that does little more than to write its
result, that takes longer than the kernel.  glibc gives every block of 32 MiB or more back to the system as soon as it
is freed, so that in a loop every result pays for it again.  Here a block is kept for the next result of its size.
Meanwhile the system, which is told that its contents are not needed, may reclaim its pages.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
from collections import deque
from typing import Final

import numpy as np

from tc.runtime.host.pages import huge_room, huge_start, in_huge_pages, prefer_huge_pages


class Block:
    """Bytes on whole huge pages of their own, which return to the system with this object.

    MemoryError if it has no more.
    """

    __slots__ = ("_mapping", "_start", "address", "size")

    def __init__(self, size: int) -> None:
        self.size: Final = size
        try:
            self._mapping: Final = mmap.mmap(-1, huge_room(size), mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        except OSError as error:
            raise MemoryError(f"the system has no {size} bytes for a result ({error})") from error
        mapped = ctypes.addressof(ctypes.c_char.from_buffer(self._mapping))
        self._start: Final = huge_start(mapped)
        self.address: Final = mapped + self._start
        prefer_huge_pages(self.address, size)

    # A default, because finalizers of the last blocks run when modules are already empty.
    def forget(self, advice: int | None = getattr(mmap, "MADV_FREE", None)) -> None:
        """Tells the system that the contents of the block are not needed."""
        if advice is not None:
            self._mapping.madvise(advice, self._start, self.size)


class _Lease:
    """A block in use.  NumPy's arrays over it keep this object, whose end gives the block back."""

    __slots__ = ("__array_interface__", "_block", "_store")

    def __init__(self, block: Block, store: BlockStore) -> None:
        data = (block.address, False)
        self.__array_interface__ = {"version": 3, "shape": (block.size,), "typestr": "|u1", "data": data}
        self._block = block
        self._store = store

    def __del__(self) -> None:
        self._store.give_back(self._block)


class BlockStore:
    """Blocks that no result uses.  Safe from many threads, and from finalizers, which run at any time.

    Blocks in use and kept ones together take no more memory than those in use once took: before a block comes from the
    system, at least as much returns to it, or all that is kept.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        # The oldest first.  All that is done to it are single steps, which are atomic.
        self._kept: deque[Block] = deque()

    def lease(self, size: int) -> np.ndarray:
        """At least ``size`` bytes with any content, from the beginning of a huge page, until nothing refers to them.

        MemoryError if the system has no more.
        """
        size = in_huge_pages(size)
        block = self._take(size)
        if block is None:
            self._release(size)
            block = Block(size)
        return np.asarray(_Lease(block, self))

    def give_back(self, block: Block) -> None:
        """The block is in use no more."""
        block.forget()
        self._kept.append(block)

    def _take(self, size: int) -> Block | None:
        """A kept block of this size."""
        for _ in range(len(self._kept)):
            try:
                block = self._kept.popleft()
            except IndexError:  # another thread was quicker
                break
            if block.size == size:
                return block
            self._kept.append(block)
        return None

    def _release(self, size: int) -> None:
        """Lets go of the oldest blocks, so many bytes or a little more."""
        while size > 0:
            try:
                size -= self._kept.popleft().size
            except IndexError:
                break


@functools.cache
def result_blocks() -> BlockStore:
    """Where results of all kernels lie, from ``FRESH_BYTES`` on."""
    return BlockStore()
