"""Genes: the parts of options that a search varies, each with its values in order."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping
from enum import Enum
from random import Random
from typing import TypeAlias

from tc.base.frozen import frozen


@frozen
class Share:
    """A size that is meant as a part of a loop: ``ceil(extent / divisor)`` of the loop called ``loop``.

    ``size``: what it comes to at the extent of the space that it belongs to.
    """

    loop: str
    divisor: int
    size: int

    @staticmethod
    def of(loop: str, divisor: int, extents: Mapping[str, int]) -> Share:
        """The part of a loop with these extents."""
        return Share(loop, divisor, -(-extents[loop] // divisor))


Size: TypeAlias = int | Share
Path: TypeAlias = tuple[str, ...]
# None stands for what the target chooses, and for a place beyond the end of its list.
Value: TypeAlias = bool | int | Share | Enum | tuple[int, ...] | None
Genome: TypeAlias = tuple[Value, ...]


def plain(value: Value) -> bool | int | Enum | tuple[int, ...] | None:
    """The value as it stands in options."""
    return value.size if isinstance(value, Share) else value


@frozen
class ChoiceGene:
    """Any of ``values``; all others are neighbours of one."""

    path: Path
    values: tuple[Value, ...]

    def random(self, random: Random) -> Value:
        """Any value."""
        return random.choice(self.values)

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """All other values."""
        return tuple(other for other in self.values if other != value)


@frozen
class CountGene:
    """How many sizes a list has, from 0 to ``most``; None lets the target choose the list."""

    path: Path
    most: int

    @property
    def values(self) -> tuple[Value, ...]:
        """None, and all counts from 0."""
        return (None, *range(self.most + 1))

    def random(self, random: Random) -> Value:
        """Any value."""
        return random.choice(self.values)

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """One size more or less, and the target's choice; from that, any count."""
        if not isinstance(value, int):
            return tuple(range(self.most + 1))
        return (None, *(count for count in (value - 1, value + 1) if 0 <= count <= self.most))


@frozen
class SizeGene:
    """A number: of an option, or at ``place`` in its list.  ``values`` ascend.

    A genome may hold a number between the values, so that options from elsewhere are kept as they are.  ``open``: the
    number may be left to the target, as None.
    """

    path: Path
    values: tuple[Size, ...]
    place: int | None = None
    open: bool = False

    def random(self, random: Random) -> Value:
        """Any value."""
        return random.choice((None, *self.values) if self.open else self.values)

    def neighbours(self, value: Value) -> tuple[Value, ...]:
        """The next smaller and the next larger value, and the target's choice; from that, any value."""
        if value is None:
            return self.values
        sizes, number = self.sizes(), plain(value)
        assert isinstance(number, int)
        below, above = bisect_left(sizes, number), bisect_right(sizes, number)
        chosen = (None,) if self.open else ()
        return (*chosen, *self.values[max(0, below - 1) : below], *self.values[above : above + 1])

    def sizes(self) -> tuple[int, ...]:
        """The values as numbers."""
        return tuple(size.size if isinstance(size, Share) else size for size in self.values)

    def value_of(self, number: int) -> Size:
        """The value that comes to this number, or the number itself."""
        return next((value for value in self.values if plain(value) == number), number)


Gene: TypeAlias = ChoiceGene | CountGene | SizeGene


def shares(extents: Mapping[str, int], most: int | None = None) -> tuple[Share, ...]:
    """``ceil(v / p)`` of every loop with ``v`` iterations, for the powers of two ``p <= v``; none over ``most``.

    These are the values that the original tries beside powers of two.
    """
    found = [
        Share.of(loop, 1 << power, extents) for loop, extent in extents.items() for power in range(extent.bit_length())
    ]
    return tuple(share for share in found if most is None or share.size <= most)


def powers_of_two(extents: Iterable[int]) -> tuple[int, ...]:
    """1, 2, 4, … up to ``2^ceil(log2 v)`` of the largest extent."""
    longest = max(extents, default=1)
    return tuple(1 << power for power in range(max(longest - 1, 0).bit_length() + 1))


def ascending(numbers: Iterable[int], parts: Iterable[Share] = ()) -> tuple[Size, ...]:
    """Each size once, in order: as a number where there is one, else as the first of the shares."""
    known: dict[int, Size] = {}
    for share in parts:
        known.setdefault(share.size, share)
    known.update({number: number for number in numbers})
    return tuple(known[size] for size in sorted(known))
