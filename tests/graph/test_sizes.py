"""Open sizes: arithmetic is that of numbers, for all values."""

from __future__ import annotations

import operator
import random

import pytest

import tc
from tc.graph.ir.sizes import Dimension, Size, elements, least, number, open_size, shape_text

NAMES = ("N", "H", "W")
OPERATORS = (operator.add, operator.sub, operator.mul, operator.floordiv)


def drawn(chosen: random.Random, depth: int) -> tuple[Dimension, str]:
    """A size, and the same as a formula of Python."""
    if depth == 0 or chosen.random() < 0.2:
        if chosen.random() < 0.5:
            held = chosen.randint(1, 6)
            return held, str(held)
        name = chosen.choice(NAMES)
        return open_size(name), name
    (left, first), (right, second) = drawn(chosen, depth - 1), drawn(chosen, depth - 1)
    kind = chosen.randrange(6)
    if kind == 4:
        return least(left, right), f"min({first}, {second})"
    if kind == 5:
        held = chosen.randint(1, 5)
        return left % held, f"(({first}) % {held})"
    if kind == 3:
        held = chosen.choice((1, 2, 3, 4))
        return left // held, f"(({first}) // {held})"
    sign = "+-*"[kind]
    return OPERATORS[kind](left, right), f"(({first}) {sign} ({second}))"


@pytest.mark.parametrize("seed", range(200))
def test_arithmetic_is_that_of_numbers(seed: int) -> None:
    chosen = random.Random(seed)
    size, formula = drawn(chosen, 4)
    for _ in range(5):
        values = {name: chosen.randint(1, 20) for name in NAMES}
        wanted = eval(formula, {"min": min}, dict(values))
        assert (size.at(values) if isinstance(size, Size) else size) == wanted, (str(size), formula)


def test_equal_polynomials_are_equal() -> None:
    n, h = open_size("N"), open_size("H")
    assert (n + 1) * (n - 1) == n * n - 1
    assert n * h * 4 // (2 * h) == 2 * n
    assert n - n == 0
    assert 2 * n // 2 == n
    assert elements((n, 3, h)) == 3 * h * n
    assert shape_text((2, n, n + 1)) == "2, N, N + 1"


def test_comparisons_that_hold_for_all_sizes() -> None:
    n = open_size("N")
    assert n > 0
    assert n + 1 >= 1
    assert not n < 1 - n


def test_what_only_some_sizes_fulfil() -> None:
    with pytest.raises(tc.GraphError, match=r"whether `N < 4` depends on sizes that are open; call the graph"):
        _ = open_size("N") < 4
    with pytest.raises(tc.GraphError, match=r"k must be a number, and is `N`; call the graph, or give its sizes"):
        number(open_size("N"), "k")
    with pytest.raises(tc.GraphError, match="the size N is divided by 0"):
        _ = open_size("N") // 0
