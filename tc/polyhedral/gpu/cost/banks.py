"""Shared memory and lines of the first-level cache: what the lanes of a warp take together, from their addresses."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.base.grid import WARP
from tc.polyhedral.gpu.cost.lane_values import Array
from tc.prediction.demand import LINE, SECTOR

_BANKS: Final = 32
_BANK_BYTES: Final = 4
# Bytes of the widest access of a thread.
WIDEST: Final = 16


@frozen
class Touched:
    """Of the accesses of several warps: how many there are, the lines, the sectors and the lanes."""

    requests: int
    lines: int
    sectors: int
    lanes: int


def by_warp(threads: Array, fill: int = 0) -> Array:
    """An array whose last axis is threads, with that axis cut into warps; lanes that there are not are ``fill``."""
    missing = -threads.shape[-1] % WARP
    if missing:
        padding = [(0, 0)] * (threads.ndim - 1) + [(0, missing)]
        threads = np.pad(threads, padding, constant_values=fill)
    return threads.reshape(*threads.shape[:-1], -1, WARP)


def wavefronts(words: Array, active: Array, width: int) -> int:
    """Clocks that the banks take for one access of each warp: ``words`` (warps, lanes) are where each lane begins.

    ``width``: words of each lane.  A clock delivers one word of each bank, to as many lanes as want it, and of accesses
    of two or four words at most what 16 or 8 lanes, in order, ask for, or twice as many where neighbours ask for the
    same.
    """
    patterns: dict[bytes, tuple[int, Array, Array]] = {}
    relative = words - np.min(np.where(active, words, np.iinfo(np.int64).max), axis=-1, keepdims=True)
    relative = np.where(active, relative, -1)
    for own, lanes in zip(relative, active, strict=True):
        key = own.tobytes()
        patterns[key] = (patterns[key][0] + 1 if key in patterns else 1, own, lanes)
    return sum(count * _clocks(own, lanes, width) for count, own, lanes in patterns.values() if lanes.any())


def _clocks(words: Array, active: Array, width: int) -> int:
    lanes = WARP // width
    if width > 1 and _pairs_share(words, active):
        lanes *= 2
    clocks = 0
    for begin in range(0, WARP, lanes):
        own = words[begin : begin + lanes][active[begin : begin + lanes]]
        if own.size:
            wanted = np.unique(own[:, None] + np.arange(width))
            clocks += int(np.bincount(wanted % _BANKS).max())
    return clocks


def _pairs_share(words: Array, active: Array) -> bool:
    """Whether each lane asks for what the next one, or the next but one, asks for."""
    if not active.all():
        return False
    pairs, fours = words.reshape(-1, 2), words.reshape(-1, 2, 2)
    return bool((pairs[:, 0] == pairs[:, 1]).all() or (fours[:, 0] == fours[:, 1]).all())


def touched(bytes: Array, active: Array, width: int) -> Touched:
    """Accesses (requests, warps, lanes) to global memory of ``width`` bytes each, at these addresses."""
    running = active.any(axis=-1)
    requests = int(running.sum())
    lanes = int(active.sum())
    counts = []
    for size in (LINE, SECTOR):
        places = np.where(active, bytes // size, -1)
        if width > size:
            raise AssertionError(width)
        ordered = np.sort(places, axis=-1)
        first = (ordered[..., :1] >= 0).sum()
        counts.append(int(((ordered[..., 1:] != ordered[..., :-1]) & (ordered[..., 1:] >= 0)).sum() + first))
    return Touched(requests, counts[0], counts[1], lanes)


def words_of(offsets: Array, itemsize: int) -> Array:
    """The bank words at which elements begin."""
    return offsets * itemsize // _BANK_BYTES
