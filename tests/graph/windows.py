"""Convolutions and windows in NumPy, to compare with."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

Numbers = Sequence[int]


def extents_of(x: np.ndarray, kernel: Numbers, strides: Numbers, dilations: Numbers, pads: Numbers) -> list[int]:
    """How many windows there are along each spatial axis."""
    rank = x.ndim - 2
    return [
        (x.shape[2 + a] + pads[a] + pads[rank + a] - (kernel[a] - 1) * dilations[a] - 1) // strides[a] + 1
        for a in range(rank)
    ]


def _moved(
    kernel: Numbers, extents: Numbers, strides: Numbers, dilations: Numbers
) -> Iterator[tuple[Numbers, tuple[slice, ...]]]:
    """The places of a kernel, each with the slices of the elements that all windows have there."""
    for place in np.ndindex(*kernel):
        axes = zip(place, extents, strides, dilations, strict=True)
        parts = [slice(k * d, k * d + (extent - 1) * s + 1, s) for k, extent, s, d in axes]
        yield place, (slice(None), slice(None), *parts)


def convolved(
    x: np.ndarray, w: np.ndarray, *, strides: Numbers, dilations: Numbers, pads: Numbers, group: int = 1
) -> np.ndarray:
    """The convolution with weights (F, C / groups, ...)."""
    rank, extents = x.ndim - 2, extents_of(x, w.shape[2:], strides, dilations, pads)
    whole = np.pad(x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    found = np.zeros((x.shape[0], group, w.shape[0] // group, *extents))
    for place, part in _moved(w.shape[2:], extents, strides, dilations):
        image = whole[part].reshape(x.shape[0], group, -1, *extents)
        weights = np.moveaxis(w, (0, 1), (-2, -1))[tuple(place)].reshape(group, -1, w.shape[1])
        found += np.einsum("ngc...,gfc->ngf...", image, weights)
    return found.reshape(x.shape[0], w.shape[0], *extents)


def adjoint(
    x: np.ndarray,
    w: np.ndarray,
    *,
    strides: Numbers,
    dilations: Numbers,
    pads: Numbers,
    group: int = 1,
    output_padding: Numbers | None = None,
) -> np.ndarray:
    """The transposed convolution with weights (C, F / groups, ...)."""
    rank, more = x.ndim - 2, output_padding or [0] * (x.ndim - 2)
    sizes = [strides[a] * (x.shape[2 + a] - 1) + (w.shape[2 + a] - 1) * dilations[a] + 1 + more[a] for a in range(rank)]
    made = w.shape[1] * group
    found = np.zeros((x.shape[0], made, *sizes))
    image = x.astype(np.float64).reshape(x.shape[0], group, -1, *x.shape[2:])
    for place, part in _moved(w.shape[2:], x.shape[2:], strides, dilations):
        weights = np.moveaxis(w, (0, 1), (-2, -1))[tuple(place)].reshape(group, -1, w.shape[1])
        found[part] += np.einsum("ngc...,gcf->ngf...", image, weights).reshape(x.shape[0], made, *x.shape[2:])
    ends = [size - end for size, end in zip(sizes, pads[rank:], strict=True)]
    return found[(slice(None), slice(None), *(slice(*pair) for pair in zip(pads[:rank], ends, strict=True)))]


def in_windows(
    x: np.ndarray, kernel: Numbers, *, strides: Numbers, dilations: Numbers, pads: Numbers, extents: Numbers
) -> np.ndarray:
    """The elements of each window along a last axis, NaN outside of the tensor."""
    rank = x.ndim - 2
    more = [(extents[a] - 1) * strides[a] + (kernel[a] - 1) * dilations[a] + 1 for a in range(rank)]
    after = [max(more[a] - x.shape[2 + a] - pads[a], 0) for a in range(rank)]
    whole = np.pad(
        x.astype(np.float64), [(0, 0), (0, 0), *zip(pads[:rank], after, strict=True)], constant_values=np.nan
    )
    return np.stack([whole[part] for _, part in _moved(kernel, extents, strides, dilations)], -1)


def geometries(rank: int, count: int, seed: int) -> Iterator[dict[str, Any]]:
    """Strides, dilations and pads of some windows of this rank, which fit ragged images."""
    generator = np.random.default_rng([rank, seed])
    for _ in itertools.repeat(None, count):
        yield {
            "strides": generator.integers(1, 4, rank).tolist(),
            "dilations": generator.integers(1, 3, rank).tolist(),
            "pads": generator.integers(0, 3, 2 * rank).tolist(),
        }
