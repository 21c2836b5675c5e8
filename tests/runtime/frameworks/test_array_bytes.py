"""Extents and overlap of strided arrays, against brute force."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tc.base.types import ScalarType
from tc.runtime.frameworks.array_bytes import Sharing, extent, overlaps_itself, sharing
from tc.runtime.frameworks.numpy_arrays import describe_numpy
from tc.runtime.views.view import ArrayView, Framework

dimensions = st.lists(st.tuples(st.integers(0, 4), st.integers(-7, 7)), max_size=3)


def view(dims: list[tuple[int, int]], address: int = 4096, type: ScalarType = ScalarType.INT16) -> ArrayView:
    shape, strides = tuple(n for n, _ in dims), tuple(s for _, s in dims)
    return ArrayView(address, shape, strides, type, True, Framework.OTHER, None)


def element_addresses(array: ArrayView) -> list[int]:
    size = array.type.itemsize
    return [
        array.address + size * sum(i * s for i, s in zip(index, array.strides, strict=True))
        for index in itertools.product(*map(range, array.shape))
    ]


def bytes_of(array: ArrayView) -> set[int]:
    return {place + k for place in element_addresses(array) for k in range(array.type.itemsize)}


@given(dimensions)
def test_extent(dims: list[tuple[int, int]]) -> None:
    array = view(dims)
    touched = bytes_of(array)
    begin, end = extent(array)
    assert (begin, end) == ((min(touched), max(touched) + 1) if touched else (4096, 4096))


@given(dimensions, dimensions, st.integers(-16, 16), st.sampled_from([ScalarType.INT8, ScalarType.INT16]))
def test_sharing(left: list[tuple[int, int]], right: list[tuple[int, int]], offset: int, type: ScalarType) -> None:
    a, b = view(left), view(right, 4096 + offset, type)
    verdict = sharing(a, b)
    assert (verdict is Sharing.DISJOINT) == bytes_of(a).isdisjoint(bytes_of(b))
    assert sharing(b, a) is verdict


@given(dimensions)
def test_self_overlap_is_never_missed(dims: list[tuple[int, int]]) -> None:
    array = view(dims)
    places = element_addresses(array)
    if len(set(places)) < len(places):
        assert overlaps_itself(array)


@given(st.permutations(range(3)), st.lists(st.sampled_from([1, 2, -1, -2]), min_size=3, max_size=3), st.booleans())
def test_self_overlap_is_exact_for_views_of_contiguous_arrays(order: list[int], steps: list[int], wide: bool) -> None:
    block = np.zeros((5, 3, 4), np.float32)[tuple(slice(None, None, step) for step in steps)].transpose(order)
    assert not overlaps_itself(describe_numpy(block, "block"))
    if wide:
        assert overlaps_itself(describe_numpy(np.broadcast_to(block, (2, *block.shape)), "block"))


def test_identical_needs_the_same_elements_at_the_same_places() -> None:
    array = view([(4, 5), (5, 1)])
    assert sharing(array, array) is Sharing.IDENTICAL
    assert sharing(array, view([(5, 1), (4, 5)])) is Sharing.OVERLAPPING
    assert sharing(array, view([(4, 5), (5, 1)], type=ScalarType.FLOAT16)) is Sharing.OVERLAPPING
    assert sharing(view([(4, 0)]), view([(4, 0)])) is Sharing.OVERLAPPING


@pytest.mark.parametrize(
    "halves", [(np.s_[::2], np.s_[1::2]), (np.s_[:, :7], np.s_[:, 7:]), (np.s_[..., 0], np.s_[..., 1])]
)
def test_interleaved_halves_are_disjoint(halves: tuple[slice, slice]) -> None:
    block = np.zeros((129, 14))
    left, right = (describe_numpy(block[half], "half") for half in halves)
    assert sharing(left, right) is Sharing.DISJOINT
    assert sharing(left, describe_numpy(block, "block")) is Sharing.OVERLAPPING
