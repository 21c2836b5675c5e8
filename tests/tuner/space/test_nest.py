"""What is known of a kernel's loops."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tc.tuner.space.nest import Nest
from tests.tuner.landscapes import NEST

ROWS = Nest({"n": 64, "d": 100}, depth=2)


def test_loops_are_counted() -> None:
    assert (NEST.parallel, NEST.iterations, NEST.longest_reduced()) == (2, 128 * 1024 * 1000, 1000)
    assert (ROWS.parallel, ROWS.iterations, ROWS.longest_reduced()) == (2, 6400, 0)


def test_reduced_loops_have_extents() -> None:
    with pytest.raises(ValueError, match="reduced loops without an extent: q"):
        Nest({"m": 1}, depth=1, reduced=("q",))


def test_kernels_are_alike_if_they_have_as_many_loops_of_each_kind() -> None:
    assert NEST.is_like(Nest({"a": 1, "b": 2, "c": 3}, depth=3, independent=2, reduced=("a",)))
    assert not NEST.is_like(ROWS)
    assert not NEST.is_like(replace(NEST, independent=1))
    assert not NEST.is_like(replace(NEST, depth=4))
    assert not NEST.is_like(replace(NEST, reduced=("m", "k")))
