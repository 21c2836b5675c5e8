"""Offsets of blocks in one arena: greedy, improved by local search.

Greedy takes the blocks in some order, the largest first, and gives each the lowest offset at which it fits between
those that are needed at the same time (Pisarchyk and Lee, *Efficient Memory Management for Deep Neural Net Inference*,
arXiv 2001.03288, Section 5.2).  The search changes the order by simulated annealing: it moves a block ahead that ends
at the top of the arena, or one of those on which that rests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.graph.memory.blocks import Block, arena_size, live_peak

# Vectors are loaded at multiples of it, and threads write to no line of the cache that another one writes to.
ALIGNMENT: Final = 64
# Placements of single blocks that the search takes, some tenths of a second.
WORK: Final = 50_000
MOST_ATTEMPTS: Final = 1000
# How much larger an arena may be for a while, in parts of the least one.
TEMPERATURE: Final = 0.01
# How often a block moves, and not two change places; and how often it is one at the top.
MOVES: Final = 0.85
AT_THE_TOP: Final = 0.5


@frozen
class _Placed:
    """An order, the offsets that it gives, and the size of the arena."""

    order: tuple[int, ...]
    offsets: tuple[int, ...]
    size: int


def placed(blocks: Sequence[Block], *, alignment: int = ALIGNMENT) -> tuple[int, ...]:
    """Offsets at which no two blocks that are needed in one step overlap; the same ones for the same blocks."""
    if not blocks:
        return ()
    rounded = [Block(b.name, -(-b.bytes // alignment) * alignment, b.first, b.last) for b in blocks]
    search = _Search(rounded)
    return search.best().offsets


class _Search:
    """The blocks, and which of them are needed at the same time."""

    def __init__(self, blocks: Sequence[Block]) -> None:
        self._blocks: Final = blocks
        self._meeting: Final = _meeting(blocks)
        self._least: Final = live_peak(blocks)
        from random import Random  # which takes longer to import than a plan that is kept takes to read

        self._chosen: Final = Random(len(blocks))

    def best(self) -> _Placed:
        """The smallest arena that is found."""
        now = best = min(map(self._in_turn, self._orders()), key=lambda found: found.size)
        attempts = min(WORK // len(self._blocks), MOST_ATTEMPTS)
        for attempt in range(attempts):
            if best.size <= self._least:
                break
            found = self._in_turn(self._changed(now))
            temperature = TEMPERATURE * self._least * (1 - attempt / attempts)
            if found.size <= now.size or self._chosen.random() < math.exp((now.size - found.size) / temperature):
                now = found
            best = found if found.size < best.size else best
        return best

    def _orders(self) -> list[tuple[int, ...]]:
        """Those that the search begins with: by size, by duration, by both, by the beginning."""
        numbers, blocks = range(len(self._blocks)), self._blocks
        lasting = [block.last - block.first + 1 for block in blocks]
        return [
            tuple(sorted(numbers, key=lambda n: (-blocks[n].bytes, blocks[n].first))),
            tuple(sorted(numbers, key=lambda n: (-lasting[n], -blocks[n].bytes))),
            tuple(sorted(numbers, key=lambda n: (-blocks[n].bytes * lasting[n], blocks[n].first))),
            tuple(sorted(numbers, key=lambda n: (blocks[n].first, -blocks[n].bytes))),
            tuple(sorted(numbers, key=lambda n: (-blocks[n].last, -blocks[n].bytes))),
        ]

    def _in_turn(self, order: Sequence[int]) -> _Placed:
        """Each block at the lowest offset at which it meets none of those before."""
        blocks, offsets = self._blocks, [-1] * len(self._blocks)
        for number in order:
            needed, end = blocks[number].bytes, 0
            taken = [(offsets[n], offsets[n] + blocks[n].bytes) for n in self._meeting[number] if offsets[n] >= 0]
            for start, until in sorted(taken):
                if start - end >= needed:
                    break
                end = max(end, until)
            offsets[number] = end
        return _Placed(tuple(order), tuple(offsets), arena_size(blocks, offsets))

    def _changed(self, now: _Placed) -> list[int]:
        """The order with a block moved ahead, or two blocks exchanged."""
        order, chosen = list(now.order), self._chosen
        place = order.index(self._in_the_way(now))
        if place and chosen.random() < MOVES:
            order.insert(chosen.randrange(place), order.pop(place))
        else:
            other = chosen.randrange(len(order))
            order[place], order[other] = order[other], order[place]
        return order

    def _in_the_way(self, now: _Placed) -> int:
        """A block at the top, or one of those on which it rests."""
        blocks, offsets, chosen = self._blocks, now.offsets, self._chosen
        ends = [offset + block.bytes for block, offset in zip(blocks, offsets, strict=True)]
        pile = [chosen.choice([number for number, end in enumerate(ends) if end == now.size])]
        while below := [n for n in self._meeting[pile[-1]] if ends[n] == offsets[pile[-1]] and blocks[n].bytes]:
            pile.append(chosen.choice(below))
        return pile[0] if chosen.random() < AT_THE_TOP else chosen.choice(pile)


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
