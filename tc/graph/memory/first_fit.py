"""Offsets by first fit: each block, in some order, at the lowest offset at which it lies apart from those before.

The largest first is greedy by size (Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*,
arXiv 2001.03288, Section 5.2).
"""

from __future__ import annotations

from collections.abc import Sequence

from tc.graph.memory.blocks import Block, arena_size


def first_fit(blocks: Sequence[Block]) -> tuple[int, ...]:
    """The offsets of the best of some orders: by size, by duration, by both, by the beginning, by the end."""
    meeting = _meeting(blocks)
    found = (_in_turn(blocks, meeting, order) for order in _orders(blocks))
    return min(found, key=lambda offsets: arena_size(blocks, offsets))


def _orders(blocks: Sequence[Block]) -> list[list[int]]:
    numbers = range(len(blocks))
    lasting = [block.last - block.first + 1 for block in blocks]
    return [
        sorted(numbers, key=lambda n: (-blocks[n].bytes, blocks[n].first)),
        sorted(numbers, key=lambda n: (-lasting[n], -blocks[n].bytes)),
        sorted(numbers, key=lambda n: (-blocks[n].bytes * lasting[n], blocks[n].first)),
        sorted(numbers, key=lambda n: (blocks[n].first, -blocks[n].bytes)),
        sorted(numbers, key=lambda n: (-blocks[n].last, -blocks[n].bytes)),
    ]


def _in_turn(blocks: Sequence[Block], meeting: Sequence[Sequence[int]], order: Sequence[int]) -> tuple[int, ...]:
    offsets = [-1] * len(blocks)
    for number in order:
        needed, end = blocks[number].bytes, 0
        taken = [(offsets[n], offsets[n] + blocks[n].bytes) for n in meeting[number] if offsets[n] >= 0]
        for start, until in sorted(taken):
            if start - end >= needed:
                break
            end = max(end, until)
        offsets[number] = end
    return tuple(offsets)


def _meeting(blocks: Sequence[Block]) -> list[list[int]]:
    """For each block, those that are needed at the same time."""
    found: list[list[int]] = [[] for _ in blocks]
    active: list[int] = []
    for number in sorted(range(len(blocks)), key=lambda n: blocks[n].first):
        active = [other for other in active if blocks[other].last >= blocks[number].first]
        for other in active:
            found[number].append(other)
            found[other].append(number)
        active.append(number)
    return found
