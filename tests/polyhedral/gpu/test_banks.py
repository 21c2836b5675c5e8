"""Clocks of the banks of shared memory, and lines and sectors, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from tc.polyhedral.gpu.cost.banks import by_warp, touched, wavefronts

LANES = np.arange(32)
ALL = np.ones((1, 32), dtype=bool)


@pytest.mark.parametrize(
    ("words", "width", "clocks"),
    [
        (LANES, 1, 1),  # one word of each bank
        (np.zeros(32, dtype=int), 1, 1),  # all lanes want the same
        (2 * LANES, 1, 2),
        (32 * LANES, 1, 32),  # a column of a matrix with 32 columns
        (33 * LANES, 1, 1),  # and with a column of padding
        (LANES // 16, 1, 1),  # two words, in different banks
        (32 * (LANES // 16), 1, 2),  # in the same bank
        (2 * LANES, 2, 2),  # 8 bytes each, in halves of a warp
        (4 * LANES, 4, 4),  # 16 bytes each, in quarters
        (4 * (LANES // 2), 4, 2),  # neighbours ask for the same
        (np.zeros(32, dtype=int), 4, 2),
        (32 * LANES, 4, 32),  # a quarter of a warp wants eight words of one bank
    ],
)
def test_clocks_are_the_most_words_of_one_bank(words: np.ndarray, width: int, clocks: int) -> None:
    assert wavefronts(words[None], ALL, width) == clocks


def test_lanes_that_do_not_run_want_nothing() -> None:
    active = (LANES < 8)[None]
    assert wavefronts(32 * LANES[None], active, 1) == 8
    assert wavefronts(32 * LANES[None], ~ALL, 1) == 0


def test_warps_are_added_up() -> None:
    words = np.stack([LANES, 2 * LANES, LANES + 7])
    assert wavefronts(words, np.ones((3, 32), dtype=bool), 1) == 1 + 2 + 1


@pytest.mark.parametrize(
    ("elements", "lines", "sectors"),
    [
        (LANES, 1, 4),
        (LANES + 8, 2, 4),  # begins at a sector, but at no line
        (LANES + 1, 2, 5),  # begins at neither
        (8 * LANES, 8, 32),
        (1024 * LANES, 32, 32),
        (np.zeros(32, dtype=int), 1, 1),
    ],
)
def test_lines_and_sectors(elements: np.ndarray, lines: int, sectors: int) -> None:
    found = touched(4 * elements[None, None], ALL[None], 4)
    assert (found.requests, found.lines, found.sectors, found.lanes) == (1, lines, sectors, 32)


def test_a_last_warp_that_is_not_whole() -> None:
    threads = np.arange(40)
    found = touched(by_warp(4 * threads)[None], by_warp(np.ones(40, dtype=bool))[None], 4)
    assert (found.requests, found.lines, found.sectors, found.lanes) == (2, 2, 5, 40)
