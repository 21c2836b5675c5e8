"""Deferred free: unused memory of GPUs is freed once no pending work can use it, without blocking for that work."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from typing import Final, Protocol

from tc.base.errors import DeviceError
from tc.runtime.cuda.cuda_driver import CudaDriver
from tc.runtime.views.view import DEFAULT_STREAM, CudaMemory


class Borrower(Enum):
    """Who works with memory that was exported, apart from the stream that it is of.

    DLPack's deleter says that no more work will be given to a stream, not that it has ended; and the streams that were
    named when the memory was exported may be gone by then, all but the default one.
    """

    DEFAULT_STREAM = 1
    JAX = 2
    UNKNOWN = 3


class End(Protocol):
    """The completion of work that a borrower has submitted."""

    def done(self) -> bool:
        """Whether it has come."""


@dataclass(slots=True, eq=False)
class _Block:
    """Memory to be freed after ``ends``, and after what the default stream was given so far, if ``default``."""

    driver: CudaDriver
    memory: CudaMemory
    address: int
    borrowers: frozenset[Borrower]
    ends: tuple[End, ...] = ()
    default: bool = False

    def freed(self) -> bool:
        """Whether the memory could be freed now; DeviceError if the driver did not do it."""
        with self.driver.on(self.memory.device):
            if self.default:
                # It is unusable while others capture a stream that it waits for.
                if self.driver.captures(DEFAULT_STREAM):
                    return False
                self.ends, self.default = (*self.ends, self.driver.record(DEFAULT_STREAM)), False
            # What a stream is given that captures becomes part of a graph, in which only memory of the graph is freed.
            if not all(end.done() for end in self.ends) or self.driver.captures(self.memory.stream):
                return False
            self.driver.free(self.address, self.memory.stream)
            return True


class DeferredFree:
    """Memory that is not freed yet.  Safe from many threads and from finalizers, which come at any time."""

    def __init__(self) -> None:
        # Finalizers never wait for it: they may run in the thread that has it.
        self._lock = threading.Lock()
        self._waiting: deque[_Block] = deque()
        # Of borrowers whose work has no known end.
        self._borrowed: deque[_Block] = deque()
        self._jax_ends: dict[int, End] = {}

    def add(self, driver: CudaDriver, memory: CudaMemory, address: int, borrowers: frozenset[Borrower]) -> None:
        """Frees memory in the order of its stream, once borrowers have no work with it; at once if there are none."""
        block = _Block(driver, memory, address, borrowers, default=Borrower.DEFAULT_STREAM in borrowers)
        known = borrowers <= {Borrower.DEFAULT_STREAM}
        (self._waiting if known else self._borrowed).append(block)
        self.purge()

    def purge(self) -> None:
        """Frees what can be freed now; what the driver refuses is tried again the next time."""
        if not self._waiting or not self._lock.acquire(blocking=False):
            return
        try:
            # Where one block waits for its end, later ones do, too.
            stuck: set[tuple[CudaMemory, bool]] = set()
            for _ in range(len(self._waiting)):
                block = self._waiting.popleft()
                kind = block.memory, bool(block.ends or block.default)
                try:
                    if kind not in stuck and block.freed():
                        continue
                    stuck.add(kind)
                except DeviceError:
                    pass
                self._waiting.append(block)
        finally:
            self._lock.release()

    def holds(self, device: int) -> bool:
        """Whether a wait for a device would free memory of it."""
        with self._lock:
            return any(block.memory.device == device for queue in (self._waiting, self._borrowed) for block in [*queue])

    @contextmanager
    def settled(self, device: int) -> Iterator[None]:
        """The ``with`` block waits for all work of a device; memory deferred before it can be freed then."""
        with self._lock:
            before = [(queue, block) for queue in (self._waiting, self._borrowed) for block in _taken(queue)]
        settled = False
        try:
            yield
            settled = True
        finally:
            for queue, block in before:
                if settled and block.memory.device == device:
                    block.ends, block.default = (), False
                    self._waiting.append(block)
                else:
                    queue.append(block)
        self.purge()

    def follow_jax(self, device: int, end: Callable[[], End]) -> None:
        """Frees what JAX was lent once an ``end`` has come that is made now, of all that JAX was given so far.

        There is one at a time: it takes JAX longer to make one than it takes us to ask for it.
        """
        last = self._jax_ends.get(device)
        if not self._borrowed or (last is not None and not last.done()):
            return
        with self._lock:
            blocks = _taken(self._borrowed)
        lent = [b for b in blocks if b.memory.device == device and Borrower.UNKNOWN not in b.borrowers]
        self._borrowed.extend(block for block in blocks if block not in lent)
        if lent:
            try:
                self._jax_ends[device] = last = end()
            except BaseException:
                self._borrowed.extend(lent)
                raise
            for block in lent:
                block.ends = (*block.ends, last)
            self._waiting.extend(lent)
            self.purge()


def _taken(queue: deque[_Block]) -> list[_Block]:
    """What is there now, and no longer then; more may come meanwhile."""
    return [queue.popleft() for _ in range(len(queue))]


# Of this process.
DEFERRED_FREE: Final = DeferredFree()
