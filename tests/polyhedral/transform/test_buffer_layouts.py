"""Where rows of buffers begin: in different banks of shared memory, whatever their length."""

from __future__ import annotations

import pytest

from tc.base.types import ScalarType
from tc.polyhedral.analysis.box import Box
from tc.polyhedral.transform.buffer_layouts import ordered_strides, padded_layout

# Of 4 bytes each.
BANKS = 32


def strides(type: ScalarType, *extents: int, padding: int | None = None) -> tuple[int, ...]:
    box = Box(0, tuple((0, ()) for _ in extents), extents, *(tuple(1 for _ in extents) for _ in range(2)))
    return padded_layout(type, box, range(len(extents)), padding).strides


@pytest.mark.parametrize(
    ("type", "extents", "expected"),
    [
        (ScalarType.FLOAT32, (32, 32), (36, 1)),
        (ScalarType.FLOAT32, (64, 28), (28, 1)),
        (ScalarType.FLOAT32, (32, 2, 28), (60, 28, 1)),
        (ScalarType.FLOAT32, (8, 8, 3, 3), (73, 9, 3, 1)),
        (ScalarType.FLOAT32, (16, 26), (26, 1)),
        (ScalarType.FLOAT32, (1, 32), (32, 1)),
        (ScalarType.FLOAT16, (64, 32), (40, 1)),
        (ScalarType.FLOAT64, (16, 16), (18, 1)),
        (ScalarType.UINT8, (4, 64), (80, 1)),
    ],
)
def test_neighbours_are_an_odd_number_of_vectors_apart(
    type: ScalarType, extents: tuple[int, ...], expected: tuple[int, ...]
) -> None:
    assert strides(type, *extents) == expected


@pytest.mark.parametrize("row", range(4, 132, 4))
def test_eight_threads_that_read_a_vector_each_read_all_banks(row: int) -> None:
    step, _ = strides(ScalarType.FLOAT32, 8, row)
    touched = [(thread * step + element) % BANKS for thread in range(8) for element in range(4)]
    assert sorted(touched) == list(range(BANKS))


def test_a_number_that_was_asked_for_is_added_to_every_row() -> None:
    assert strides(ScalarType.FLOAT32, 5, 7, 28, padding=4) == (224, 32, 1)
    assert strides(ScalarType.FLOAT32, 5, 7, 28, padding=0) == (196, 28, 1)


@pytest.mark.parametrize(
    ("row", "begin"),
    [
        (32, 32),
        (48, 48),
        (64, 64),  # a register tile reads whole rows: there is nothing to spread
        (50, 64),
        (128, 144),
        (256, 272),
    ],
)
def test_rows_that_are_read_in_parts_spread_over_the_sets_of_the_cache(row: int, begin: int) -> None:
    assert ordered_strides((100, row), (0, 1), pad=True) == (begin, 1)
