"""What the host computes with NumPy, since shapes of the results depend on data in a way that no count foretells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def unique(array: np.ndarray, axis: int | None, *, ascending: bool) -> Sequence[np.ndarray]:
    """The different elements, or slices along an axis; the places where they come first; for each element or slice its
    place among the different ones; how often each of these comes.

    ``ascending``: in ascending order; else in that in which they come first.
    """
    # NumPy compares floats of sixteen bits, some of which it does not know, as those of 32 that they are.
    known = array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
    _, first, inverse, counts = np.unique(known, return_index=True, return_inverse=True, return_counts=True, axis=axis)
    inverse = inverse.reshape(-1)
    if not ascending:
        order = np.argsort(first, kind="stable")
        first, counts, inverse = first[order], counts[order], np.argsort(order, kind="stable")[inverse]
    found = np.take(array, first, axis)
    return found, *(np.asarray(part, np.int64) for part in (first, inverse, counts))


def suppressed(
    boxes: np.ndarray, scores: np.ndarray, most: int, overlap: float, least: float | None, *, centers: bool
) -> np.ndarray:
    """Batch, class and box of those boxes that are kept, as rows: for each batch and class by descending score.

    A box is dropped that overlaps with one that is kept by more than ``overlap``, as intersection over union, or whose
    score is not above ``least``.  No more than ``most`` are kept for a batch and a class.  ``centers``: boxes are
    given as ``x, y, width, height`` of their centers, and not as two corners.
    """
    rows: list[tuple[int, int, int]] = []
    for batch, corners in enumerate(_corners(boxes, centers)):
        for label, own in enumerate(scores[batch]):
            order = np.argsort(-own, kind="stable")
            if least is not None:
                order = order[own[order] > least]
            kept = 0
            while order.size and kept < most:
                best, order = order[0], order[1:]
                rows.append((batch, label, int(best)))
                order = order[~(_overlaps(corners[best], corners[order]) > overlap)]
                kept += 1
    return np.array(rows, np.int64).reshape(-1, 3)


def _corners(boxes: np.ndarray, centers: bool) -> np.ndarray:
    """The least and the greatest coordinates: two of each."""
    first, second = boxes[..., :2], boxes[..., 2:]
    if centers:
        return np.concatenate((first - second / 2, first + second / 2), -1)
    return np.concatenate((np.minimum(first, second), np.maximum(first, second)), -1)


def _overlaps(box: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Intersection over union; 0 where a box has no area."""
    common = np.minimum(box[2:], others[:, 2:]) - np.maximum(box[:2], others[:, :2])
    inside = np.prod(np.maximum(common, 0), -1)
    area, areas = np.prod(box[2:] - box[:2]), np.prod(others[:, 2:] - others[:, :2], -1)
    fair = (area > 0) & (areas > 0) & (inside > 0)
    found: np.ndarray = np.divide(inside, area + areas - inside, out=np.zeros_like(inside), where=fair)
    return found
