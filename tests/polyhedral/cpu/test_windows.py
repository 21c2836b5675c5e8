"""Lines of windows, beside those that are counted one by one."""

from __future__ import annotations

import math
from itertools import product

import pytest

from tc.polyhedral.cpu.windows import window_lines

Loops = list[tuple[int, int]]

# The loops of a reduction, the last of which goes from window to window, and those of a tile.
CASES: tuple[tuple[Loops, Loops], ...] = (
    ([(1, 3), (64, 3), (4096, 32)], [(1, 8), (64, 1)]),
    ([(1, 3), (64, 3), (4096, 32)], [(1, 4), (64, 2)]),
    ([(2, 3), (128, 3), (4096, 32)], [(1, 4), (64, 3)]),
    ([(1, 7), (64, 3), (4096, 32)], [(64, 6), (0, 16)]),
    ([(1, 3), (32, 3), (1024, 3), (32768, 16)], [(1, 5), (32, 2), (1024, 2)]),
)


@pytest.mark.parametrize(("reduced", "tile"), CASES)
def test_each_element_alone_in_its_line_is_counted_once(reduced: Loops, tile: Loops) -> None:
    moving = [own for own in (*reduced[:-1], *tile) if own[0]]
    elements = {sum(at) for at in product(*(range(0, step * count, step) for step, count in moving))}
    steps = math.prod(count for _, count in reduced[:-1])
    assert window_lines(reduced, tile, 1) * steps == pytest.approx(len(elements))


@pytest.mark.parametrize(("reduced", "tile"), CASES)
def test_elements_side_by_side_share_lines(reduced: Loops, tile: Loops) -> None:
    """As many as there are on average, wherever in a line a window begins."""
    moving = [own for own in (*reduced[:-1], *tile) if own[0]]
    offsets = [sum(at) for at in product(*(range(0, step * count, step) for step, count in moving))]
    counted = [len({(first + offset) // 16 for offset in offsets}) for first in range(16)]
    steps = math.prod(count for _, count in reduced[:-1])
    assert window_lines(reduced, tile, 16) * steps == pytest.approx(sum(counted) / 16, rel=0.02)


def test_a_reduction_of_one_loop_has_no_windows() -> None:
    assert window_lines([(4096, 32)], [(1, 8)], 16) == 0.0
