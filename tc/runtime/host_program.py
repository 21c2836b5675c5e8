"""``HostProgram``: kernels of this machine that run one after the other, in one call of the run time."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.runtime.host.pool import shared_pool
from tc.runtime.loaded_kernel import Memory

# In place of the number of a memory.
_NUMBER: Final = -1
_FAULT_BITS: Final = 32


@frozen
class Word:
    """What a kernel is given: the address ``offset`` bytes behind the beginning of a memory, or a number itself."""

    memory: int
    offset: int

    @staticmethod
    def number(value: int) -> Word:
        """A number of 64 bits, or an address that never changes."""
        return Word(_NUMBER, value)

    def at(self, addresses: Sequence[int]) -> int:
        """The word, where memories begin at these addresses."""
        return self.offset if self.memory == _NUMBER else addresses[self.memory] + self.offset


@frozen
class Step:
    """A kernel: its address, the memory it needs beyond its arrays, and what it is given, ``buffers`` addresses first.

    ``most_threads``: how many threads are useful, 0 for all.  ``report`` raises the error for a fault.
    """

    address: int
    needs: Memory
    words: tuple[Word, ...]
    buffers: int
    most_threads: int
    report: Callable[[int], None]


def copying(target: Word, source: Word, bytes: int) -> Step:
    """The step that copies so many bytes."""
    words = (target, source, Word.number(bytes))
    return Step(shared_pool().copy_address, Memory(), words, 2, 1, _no_fault)


def _no_fault(fault: int) -> None:
    raise AssertionError(f"copying has no faults, got {fault}")


@frozen
class HostProgram:
    """Steps in order, over memories that are numbered from 0.

    ``memories``: how many the caller brings.  The next number is that of an arena, in which steps pass values to each
    other: each run has one of its own, of ``arena`` bytes, or, if that is 0, that of the caller.
    """

    steps: tuple[Step, ...]
    memories: int
    arena: int = 0

    def packed(self) -> bytes:
        """The ``tc_program`` of ``pool.h``."""
        numbers = [len(self.steps), self.memories, self.arena]
        for step in self.steps:
            needs = step.needs
            numbers += (step.address, step.most_threads, needs.shared, needs.scratch, step.buffers, len(step.words))
            numbers += (number for word in step.words for number in (word.memory, word.offset))
        return struct.pack(f"{len(numbers)}q", *numbers)

    def report(self, found: int) -> None:
        """Raises the error for what a run returned, which is not 0."""
        number = found >> _FAULT_BITS
        if number == len(self.steps):
            raise MemoryError(f"no memory for the values that kernels pass to each other ({self.arena} bytes)")
        self.steps[number].report(ctypes.c_int32(found).value)


class PackedProgram:
    """A program ready to run, from any number of threads."""

    __slots__ = ("_bytes", "_memories", "_run", "program")

    def __init__(self, program: HostProgram) -> None:
        self.program: Final = program
        self._bytes = program.packed()
        self._memories = ctypes.c_uint64 * (program.memories + 1)
        self._run = shared_pool().run_program

    def run(self, addresses: Sequence[int], threads: int) -> None:
        """Runs the program on memories at these addresses; raises what a kernel finds in them.

        Where the program has no arena of its own, but one is used, its address comes last.
        """
        found = self._run(self._bytes, threads, self._memories(*addresses))
        if found:
            self.program.report(found)
