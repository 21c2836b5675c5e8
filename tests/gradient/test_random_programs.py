"""Gradients of random programs, beside differences; ``make fuzz`` has many more."""

from __future__ import annotations

import pytest

from tests.fuzz.gradients import found_of
from tests.turns import every

SEED = 3


@pytest.mark.parametrize("turn", every(20, range(40)))
def test_gradients_of_random_programs(turn: int) -> None:
    kinds = []
    for number in range(50 * turn, 50 * turn + 50):
        found = found_of(SEED, number)
        assert found.kind != "wrong", found.message
        kinds.append(found.kind)
    assert kinds.count("agreed") > len(kinds) / 5
