"""Random search draws evenly and learns nothing."""

from __future__ import annotations

from random import Random

from tc.targets.options import CpuOptions
from tc.tuner.search.random_search import random_search
from tc.tuner.search.search import Origin
from tests.tuner.landscapes import SPACE, convex, measured
from tests.tuner.searches import run


def test_what_it_is_told_changes_nothing() -> None:
    one, other = run("random", convex, 100), run("random", lambda _: measured(1), 100)
    assert [decision.options for decision in one] == [decision.options for decision in other]


def test_seeds_come_after_the_default() -> None:
    seeds = [CpuOptions(packed_operands=0), CpuOptions(), CpuOptions(gather_prefetch=4)]
    asked = random_search(SPACE, Random(0), seeds).ask()
    assert [c.options for c in asked[:3]] == [
        CpuOptions(),
        CpuOptions(packed_operands=0),
        CpuOptions(gather_prefetch=4),
    ]
    assert [c.origin for c in asked[:4]] == [*(Origin.SEED for _ in range(3)), Origin.RANDOM]


def test_all_seeds_are_tried() -> None:
    seeds = [CpuOptions(gather_prefetch=number) for number in range(40)]
    asked = random_search(SPACE, Random(0), seeds).ask()
    assert {candidate.options for candidate in asked} >= {CpuOptions(), *seeds}
