"""Genes tell their values, and which of them lie next to one another."""

from __future__ import annotations

from random import Random

import pytest

from tc.targets.options import Fusion
from tc.tuner.space.genes import ChoiceGene, CountGene, Gene, Share, SizeGene, ascending, plain, powers_of_two, shares

EXTENTS = {"m": 100, "n": 7}


def test_powers_of_two_reach_the_largest_extent() -> None:
    assert powers_of_two([100, 7]) == (1, 2, 4, 8, 16, 32, 64, 128)
    assert powers_of_two([64]) == (1, 2, 4, 8, 16, 32, 64)
    assert powers_of_two([1]) == powers_of_two([]) == powers_of_two([0]) == (1,)


def test_shares_are_extents_divided_by_powers_of_two() -> None:
    found = shares(EXTENTS)
    assert [share.size for share in found] == [100, 50, 25, 13, 7, 4, 2, 7, 4, 2]
    assert found[3] == Share("m", 8, 13)
    assert [share.size for share in shares(EXTENTS, most=13)] == [13, 7, 4, 2, 7, 4, 2]
    assert shares({"empty": 0}) == ()


def test_sizes_stand_once_and_in_order() -> None:
    assert ascending((0, 8, 2), shares(EXTENTS)) == (
        *(0, 2, Share("m", 32, 4), Share("m", 16, 7), 8),
        *(Share("m", 8, 13), Share("m", 4, 25), Share("m", 2, 50), Share("m", 1, 100)),
    )


def test_sizes_lie_next_to_the_smaller_and_the_larger() -> None:
    gene = SizeGene(("tile",), (1, Share("m", 32, 4), 8), 0)
    assert gene.neighbours(Share("m", 32, 4)) == (1, 8)
    assert gene.neighbours(1) == (Share("m", 32, 4),)
    assert gene.neighbours(8) == (Share("m", 32, 4),)
    assert gene.neighbours(5) == (Share("m", 32, 4), 8), "a size between the values"
    assert gene.neighbours(100) == (8,)
    assert gene.sizes() == (1, 4, 8)
    assert [gene.value_of(number) for number in (4, 5)] == [Share("m", 32, 4), 5]


def test_counts_grow_and_shrink_by_one() -> None:
    gene = CountGene(("tile",), 3)
    assert gene.values == (None, 0, 1, 2, 3)
    assert gene.neighbours(None) == (0, 1, 2, 3)
    assert gene.neighbours(0) == (None, 1)
    assert gene.neighbours(2) == (None, 1, 3)
    assert gene.neighbours(3) == (None, 2)


def test_all_other_choices_are_neighbours() -> None:
    gene = ChoiceGene(("fusion",), tuple(Fusion))
    assert gene.neighbours(Fusion.MAXIMAL) == (Fusion.PRESERVE_PARALLEL, Fusion.MINIMAL)


@pytest.mark.parametrize(
    "gene", [ChoiceGene((), (False, True)), CountGene((), 4), SizeGene((), (0, 3, Share("m", 1, 100)))], ids=str
)
def test_every_value_is_drawn_and_no_other(gene: Gene) -> None:
    random = Random(1)
    assert {gene.random(random) for _ in range(200)} == set(gene.values)


def test_shares_are_plain_in_options() -> None:
    assert [plain(Share("m", 2, 50)), plain(3), plain(None), plain(Fusion.MINIMAL)] == [50, 3, None, Fusion.MINIMAL]
