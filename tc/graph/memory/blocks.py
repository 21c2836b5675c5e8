"""``Block``: memory that is needed from one step to another; and how much of it is needed at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from tc.base.frozen import frozen


@frozen
class Block:
    """``bytes`` that are needed from step ``first`` to step ``last``, both included."""

    name: str
    bytes: int
    first: int
    last: int

    def meets(self, other: Block) -> bool:
        """Whether both are needed in one step."""
        return self.first <= other.last and other.first <= self.last


def live_peak(blocks: Iterable[Block]) -> int:
    """The most bytes that are needed in one step: no arena is smaller."""
    return max((total for _, total in _totals(blocks)), default=0)


def peak_step(blocks: Iterable[Block]) -> int:
    """The first step in which the most bytes are needed."""
    return max(_totals(blocks), key=lambda found: found[1], default=(0, 0))[0]


def _totals(blocks: Iterable[Block]) -> Iterator[tuple[int, int]]:
    """Steps at which what is needed changes, with how many bytes are needed from then on."""
    changes: dict[int, int] = {}
    for block in blocks:
        changes[block.first] = changes.get(block.first, 0) + block.bytes
        changes[block.last + 1] = changes.get(block.last + 1, 0) - block.bytes
    total = 0
    for step in sorted(changes):
        total += changes[step]
        yield step, total


def arena_size(blocks: Sequence[Block], offsets: Sequence[int]) -> int:
    """The bytes of an arena in which the blocks lie at these offsets."""
    return max((offset + block.bytes for block, offset in zip(blocks, offsets, strict=True)), default=0)
