"""The default search: seeds first, then neighbours and children in turn."""

from __future__ import annotations

from collections import defaultdict
from random import Random

from tc.targets.options import CpuOptions
from tc.tuner.search.combined import combined_search
from tc.tuner.search.search import Origin
from tests.tuner.landscapes import SPACE, convex
from tests.tuner.searches import run

SEEDS = [CpuOptions(packed_operands=0), CpuOptions(gather_prefetch=4), CpuOptions(register_tile=(7, 33))]


def test_generations_of_neighbours_and_of_children_take_turns() -> None:
    origins: defaultdict[int, set[Origin]] = defaultdict(set)
    for decision in run("combined", convex, 200):
        origins[decision.generation].add(decision.origin)
    assert origins[0] == {Origin.SEED, Origin.REFINED, Origin.RANDOM}
    for generation in range(1, 9):
        if generation % 2 == 0:
            assert Origin.CROSSED in origins[generation]
            assert Origin.REFINED not in origins[generation]
        else:
            assert origins[generation] == {Origin.REFINED}


def test_seeds_come_first_as_they_are() -> None:
    asked = combined_search(SPACE, Random(0), SEEDS).ask()
    assert [candidate.options for candidate in asked[:4]] == [CpuOptions(), *SEEDS]
    assert [candidate.origin for candidate in asked[:5]] == [*(Origin.SEED for _ in range(4)), Origin.REFINED]
    assert len(asked) == 20


def test_most_of_the_first_guesses_are_neighbours_of_the_default() -> None:
    guesses = combined_search(SPACE, Random(0)).ask()[1:]
    default = SPACE.encode(CpuOptions())
    changed = [sum(a != b for a, b in zip(guess.genome, default, strict=True)) for guess in guesses]
    assert max(changed[:15]) <= 3  # a size more or less takes its count along, and what repairs it
    assert sum(changed[15:]) > 3 * len(changed[15:])
    assert [guess.origin for guess in guesses] == [Origin.REFINED] * 15 + [Origin.RANDOM] * 4


def test_a_good_seed_helps() -> None:
    plain = combined_search(SPACE, Random(0))
    seeded = combined_search(SPACE, Random(0), [CpuOptions(packed_operands=1 << 16, register_tile=(6, 16))])
    for search in (plain, seeded):
        for _ in range(4):
            search.tell([convex(candidate.options) for candidate in search.ask()])
    assert plain.best is not None
    assert seeded.best is not None
    assert seeded.best.seconds < plain.best.seconds
