"""Offsets in one arena: first fit, branch and bound, OR-Tools."""

from __future__ import annotations

import importlib.util
import itertools
import random
from collections.abc import Sequence

import pytest

import tc
import tc.graph
from tc.graph.memory import cp_sat
from tc.graph.memory.blocks import Block, arena_size, live_peak, peak_step
from tc.graph.memory.canonical import improved
from tc.graph.memory.first_fit import first_fit
from tc.graph.memory.offsets import ALIGNMENT, placed
from tc.graph.memory.placing import Placing

UNIT = 64


def require_apart(blocks: Sequence[Block], offsets: Sequence[int]) -> None:
    for (one, at), (other, beside) in itertools.combinations(zip(blocks, offsets, strict=True), 2):
        assert not one.meets(other) or at + one.bytes <= beside or beside + other.bytes <= at
    assert all(offset >= 0 and offset % ALIGNMENT == 0 for offset in offsets)


def packing(seed: int, count: int) -> list[Block]:
    """Blocks that fill an arena in all steps: a rectangle that is cut again and again, along time or memory."""
    chosen = random.Random(seed)
    parts = [(0, 1000, 0, 4000)]
    while len(parts) < count:
        parts.sort(key=lambda part: (part[1] - part[0]) * (part[3] - part[2]))
        first, until, low, high = parts.pop(chosen.randrange(len(parts) // 2, len(parts)))
        along = chosen.random() < 0.5
        if along and until - first > 1:
            cut = chosen.randint(first + 1, until - 1)
            parts += [(first, cut, low, high), (cut, until, low, high)]
        elif high - low > 1:
            cut = chosen.randint(low + 1, high - 1)
            parts += [(first, until, low, cut), (first, until, cut, high)]
        else:
            parts.append((first, until, low, high))
    chosen.shuffle(parts)
    return [Block(str(n), UNIT * (d - c), a, b - 1) for n, (a, b, c, d) in enumerate(parts)]


@pytest.mark.parametrize(("count", "most"), [(40, 1.0), (60, 1.0), (100, 1.02), (150, 1.13)])
@pytest.mark.parametrize("seed", range(4))
def test_arenas_that_can_be_full_nearly_are(count: int, most: float, seed: int) -> None:
    blocks = packing(seed, count)
    least = live_peak(blocks)
    assert least == 4000 * UNIT
    found = placed(blocks)
    require_apart(blocks, found)
    assert arena_size(blocks, found) <= most * least
    assert arena_size(blocks, found) <= arena_size(blocks, first_fit(blocks))


@pytest.mark.parametrize("seed", range(30))
def test_few_blocks_have_the_least_arena(seed: int) -> None:
    """Orders of all blocks, each at the lowest offset that is left, are all that is to be compared."""
    chosen = random.Random(seed)
    blocks = []
    for number in range(6):
        first = chosen.randint(0, 5)
        blocks.append(Block(str(number), UNIT * chosen.randint(1, 9), first, first + chosen.randint(0, 4)))

    def in_turn(order: Sequence[int]) -> int:
        offsets = [-1] * len(blocks)
        for number in order:
            placed = [n for n in order if offsets[n] >= 0 and blocks[n].meets(blocks[number])]
            places = [0, *(offsets[n] + blocks[n].bytes for n in placed)]
            offsets[number] = min(
                at
                for at in places
                if all(at >= offsets[n] + blocks[n].bytes or at + blocks[number].bytes <= offsets[n] for n in placed)
            )
        return arena_size(blocks, offsets)

    found = placed(blocks)
    require_apart(blocks, found)
    assert arena_size(blocks, found) == min(map(in_turn, itertools.permutations(range(len(blocks)))))


@pytest.mark.parametrize("seed", range(30))
def test_random_blocks_lie_apart(seed: int) -> None:
    chosen = random.Random(seed)
    blocks = []
    for number in range(chosen.randint(2, 90)):
        first = chosen.randint(0, 60)
        blocks.append(
            Block(str(number), UNIT * chosen.choice((1, 2, 3, 50, 400)), first, first + chosen.randint(0, 30))
        )
    begun = first_fit(blocks)
    found = improved(blocks, begun, 10**8)
    require_apart(blocks, found)
    assert live_peak(blocks) <= arena_size(blocks, found) <= arena_size(blocks, begun)
    assert improved(blocks, begun, 10**8) == found
    assert improved(blocks, begun, 0) == begun


def test_nothing_takes_no_arena() -> None:
    assert placed([]) == ()
    blocks = [Block("a", 0, 0, 3), Block("b", 70, 1, 2), Block("c", 0, 0, 9)]
    assert placed(blocks) == (0, 0, 0)
    assert peak_step(blocks) == 1
    assert peak_step([]) == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"solver": "simplex"}, "offsets are found by `search` or `ortools`, not by 'simplex'"),
        ({"seconds": -1}, "a search for offsets takes 0 seconds or more, not -1"),
        ({"seconds": float("nan")}, "a search for offsets takes 0 seconds or more, not nan"),
    ],
)
def test_settings_are_checked(change: dict[str, object], message: str) -> None:
    with pytest.raises(tc.OptionsError) as caught:
        Placing(**change)  # type: ignore[arg-type]
    assert str(caught.value) == message


def test_the_extra_is_named_where_or_tools_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cp_sat, "find_spec", lambda _name: None)
    with pytest.raises(tc.OptionsError, match=r"pip install 'tensor-comprehensions\[ortools\]'"):
        placed([Block("a", 64, 0, 1)], tc.graph.Placing("ortools"))


@pytest.mark.skipif(importlib.util.find_spec("ortools") is None, reason="OR-Tools are not installed")
@pytest.mark.parametrize("seed", range(6))
def test_or_tools_find_no_larger_arena(seed: int) -> None:
    blocks = packing(seed, 12 + 6 * seed)
    found = placed(blocks, Placing("ortools"))
    require_apart(blocks, found)
    assert found == placed(blocks, Placing("ortools"))
    assert arena_size(blocks, found) <= arena_size(blocks, placed(blocks))
