"""Refinement goes to what is quickest nearby."""

from __future__ import annotations

from random import Random

from tc.targets.options import CpuOptions
from tc.tuner.search.refine import refining_search
from tc.tuner.search.search import Origin
from tc.tuner.space.genes import Genome
from tests.tuner.landscapes import SPACE, convex
from tests.tuner.searches import best_microseconds, run


def differing(one: Genome, other: Genome) -> int:
    """Options that differ, lists counting as one."""
    return len({gene.path for gene, a, b in zip(SPACE.genes, one, other, strict=True) if a != b})


def test_neighbours_of_the_best_are_tried_first_along_one_gene_then_along_two() -> None:
    search = refining_search(SPACE, Random(0))
    first = search.ask()
    search.tell([convex(candidate.options) for candidate in first])
    steps: list[int] = []
    for _ in range(60):
        best = search.best
        assert best is not None
        asked = search.ask()
        for candidate in asked:
            assert (candidate.origin, candidate.parents) == (Origin.REFINED, (best.candidate.number,))
            steps.append(differing(candidate.genome, best.candidate.genome))
        search.tell([convex(candidate.options) for candidate in asked])
    assert steps[:16].count(1) >= 12
    assert {1, 2} <= set(steps)
    assert max(steps) <= 4, "two genes, and what had to be repaired"


def test_it_comes_close_to_the_best_of_a_convex_landscape() -> None:
    assert best_microseconds(run("refining", convex, 400)) < 120


def test_it_starts_at_the_quickest_seed() -> None:
    good = CpuOptions(packed_operands=1 << 16, register_tile=(6, 16))
    search = refining_search(SPACE, Random(0), [CpuOptions(vectorize=False), good])
    first = search.ask()
    outcomes = [convex(candidate.options) for candidate in first]
    search.tell(outcomes)
    assert search.best is not None
    assert all(candidate.parents == (search.best.candidate.number,) for candidate in search.ask())
