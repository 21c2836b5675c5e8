"""Accesses of straight-line code, and what they ask of memory.

Compilers keep what a thread has read in registers as far as nothing is between, so an element is read once in such
code, whatever many instances use it; and they make one access of neighbouring elements in shared memory, where these
begin at a multiple of their size.  Arguments may begin anywhere, so accesses to them are as wide as an element,
unless the loops copy pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import Enum

import numpy as np

from tc.base.frozen import frozen
from tc.polyhedral.gpu.cost.banks import WIDEST, by_warp, touched, wavefronts, words_of
from tc.polyhedral.gpu.cost.lane_values import Array
from tc.polyhedral.gpu.cost.tally import NOTHING, Tally, tally
from tc.prediction.demand import SECTOR


class Way(Enum):
    """How data go."""

    READ = "read"
    WRITE = "write"
    COPY = "copy"  # asynchronous, from global memory
    ARRIVE = "arrive"  # where such a copy writes
    ATOMIC = "atomic"


@frozen
class Access:
    """What instances access in one tensor: an element for each thread and each copy of unrolled loops.

    ``offsets``: axes of copies, innermost first, then threads; ``active``: which threads do, likewise.  ``mentioned``:
    the loops that the element depends on.  ``widest``: bytes of an access that the compiler may make of several.
    ``depth``: of reads that wait for one another.  ``pieces``: the innermost copies are one access, if they may be.
    ``constant``: of what the kernel does not write.  ``growth``: how many sectors all iterations of the loops around
    touch, divided by what one does, and by the number of iterations; ``nearest``: with the innermost of these alone.
    """

    tensor: str
    shared: bool
    way: Way
    offsets: Array
    active: Array
    itemsize: int
    mentioned: frozenset[str]
    widest: int
    depth: int = 1
    gathered: bool = False
    constant: bool = False
    pieces: bool = False
    growth: float = 1.0
    nearest: float = 1.0


@frozen
class _Rows:
    """Elements for each thread (rows, threads), all of which the same threads access."""

    offsets: Array
    active: Array


def price(accesses: Sequence[Access], *, apart: bool = False) -> Tally:
    """What accesses in straight-line code come to; ``apart``: of which each is behind a condition of its own."""
    groups: dict[object, list[Access]] = {}
    for access in accesses:
        key = access.tensor, access.shared, access.way, access.itemsize, access.widest
        groups.setdefault(key, []).append(access)
    found = NOTHING
    for group in groups.values():
        for rows in _each(group) if apart else _rows(group):
            found = found + (_shared(group[0], rows) if group[0].shared else _global(group, rows))
    return found + _waits(accesses)


def _waits(accesses: Sequence[Access]) -> Tally:
    """All reads are under way at a time, but those that wait for the address."""
    reads = [access for access in accesses if access.way in (Way.READ, Way.ATOMIC) and access.active.any()]
    deep = max((access.depth for access in reads if not access.shared), default=0)
    return tally(global_waits=deep, shared_waits=any(access.shared for access in reads))


def _rows(group: Iterable[Access]) -> Iterator[_Rows]:
    """The elements, each of them once, by the threads that access them."""
    by_threads: dict[bytes, tuple[list[Array], Array]] = {}
    for access in group:
        offsets, active = _aligned(access.offsets, access.active)
        if active.shape[0] == 1:
            key = np.packbits(active).tobytes()
            by_threads.setdefault(key, ([], active[0]))[0].append(offsets)
            continue
        for row, threads in zip(offsets, active, strict=True):
            key = np.packbits(threads).tobytes()
            by_threads.setdefault(key, ([], threads))[0].append(row[None])
    for rows, active in by_threads.values():
        if active.any():
            yield _Rows(_distinct(np.concatenate(rows), active), active)


def _each(group: Iterable[Access]) -> Iterator[_Rows]:
    """The accesses one by one, but for those of a loop that moves neighbours at once."""
    for access in group:
        if access.pieces:
            yield from _runs(access)
            continue
        offsets, active = _aligned(access.offsets, access.active)
        for row, threads in zip(offsets, np.broadcast_to(active, offsets.shape), strict=True):
            if threads.any():
                yield _Rows(row[None], threads)


def _runs(access: Access) -> Iterator[_Rows]:
    """What each iteration of the loops around a loop of pieces, which has the first axis, moves at once."""
    shape = np.broadcast_shapes(access.offsets.shape, access.active.shape)
    offsets, active = (np.broadcast_to(own, shape) for own in (access.offsets, access.active))
    for place in np.ndindex(shape[1:-1]):
        rows, threads = offsets[(slice(None), *place)], active[(slice(None), *place)]
        if threads.any():
            yield _Rows(rows, np.asarray(threads.any(axis=0)))


def _aligned(offsets: Array, active: Array) -> tuple[Array, Array]:
    """Both as (rows, threads); active with a single row where all have the same one."""
    axes = max(offsets.ndim, active.ndim) - 1
    offsets, active = (a.reshape((1,) * (axes + 1 - a.ndim) + a.shape) for a in (offsets, active))
    unused = tuple(n for n in range(axes) if offsets.shape[n] == 1 and active.shape[n] > 1)
    active = np.asarray(active.any(axis=unused, keepdims=True))
    threads = max(offsets.shape[-1], active.shape[-1])
    rows = np.broadcast_to(offsets, (*offsets.shape[:-1], threads))
    if all(length == 1 for length in active.shape[:-1]):
        return rows.reshape(-1, threads), np.broadcast_to(active, (*active.shape[:-1], threads)).reshape(1, threads)
    every = np.broadcast_to(active, rows.shape)
    return rows.reshape(-1, threads), every.reshape(-1, threads)


def _distinct(rows: Array, active: Array) -> Array:
    """Rows that are no copies of others, ascending; as far as any thread tells that is active."""
    thread = int(np.argmax(active))
    rows = rows[np.argsort(rows[:, thread], kind="stable")]
    kept = np.ones(len(rows), dtype=bool)
    same = rows[1:, thread] == rows[:-1, thread]
    if same.any():
        kept[1:] = ~(same & ((rows[1:] == rows[:-1]) | ~active).all(axis=-1))
    return rows[kept]


def _pieces(rows: _Rows, itemsize: int, widest: int) -> Iterator[tuple[Array, int]]:
    """Accesses as wide as may be: where each thread begins, and how many elements one has."""
    offsets = rows.offsets
    most = max(1, widest // itemsize)
    ends = (offsets[1:] - offsets[:-1] == 1) | ~rows.active
    follows = [bool(own) for own in ends.all(axis=-1)]
    number = 0
    while number < len(offsets):
        count = most
        while count > 1 and not _fits(offsets, rows.active, number, count, follows):
            count //= 2
        yield offsets[number], count
        number += count


def _fits(offsets: Array, active: Array, number: int, count: int, follows: Sequence[bool]) -> bool:
    if number + count > len(offsets) or not all(follows[number : number + count - 1]):
        return False
    return not ((offsets[number] % count != 0) & active).any()


def _shared(access: Access, rows: _Rows) -> Tally:
    active = by_warp(rows.active)
    running = int(active.any(axis=-1).sum())
    instructions = clocks = 0
    known: dict[tuple[int, bytes], int] = {}
    for begin, count in _pieces(rows, access.itemsize, access.widest):
        width = max(1, count * access.itemsize // 4)
        # Banks are all alike, so where the first lane begins is all the same.
        key = width, (begin - begin[0]).tobytes()
        if key not in known:
            known[key] = wavefronts(by_warp(words_of(begin, access.itemsize)), active, width)
        instructions += running
        clocks += known[key]
    match access.way:
        case Way.READ:
            return tally(shared_reads=instructions, shared_wavefronts=clocks)
        case Way.ARRIVE:
            return tally(shared_wavefronts=clocks)
        case Way.ATOMIC:
            return tally(shared_reads=instructions, shared_wavefronts=2 * clocks, atomics=instructions)
        case _:
            return tally(shared_writes=instructions, shared_wavefronts=clocks)


def _global(group: Sequence[Access], rows: _Rows) -> Tally:
    access = group[0]
    found = NOTHING
    active = by_warp(rows.active)
    pieces: dict[int, list[Array]] = {}
    for begin, count in _pieces(rows, access.itemsize, access.widest):
        pieces.setdefault(count, []).append(begin)
    for count, begins in pieces.items():
        width = count * access.itemsize
        bytes = by_warp(np.stack(begins) * access.itemsize)
        lanes = np.broadcast_to(active, bytes.shape)
        own = touched(bytes, lanes, width)
        found = found + tally(global_lines=own.lines, global_lanes=own.lanes, global_bytes=own.lanes * width)
        match access.way:
            case Way.WRITE:
                found = found + tally(global_writes=own.requests, written=own.sectors)
            case Way.ATOMIC:
                found = found + tally(global_writes=own.requests, written=own.sectors, atomics=own.requests)
            case Way.COPY:
                found = found + tally(copies=own.requests, copied=own.sectors)
            case _:
                sectors = len(np.unique((bytes // SECTOR)[lanes]))
                growth = max(one.growth for one in group)
                far = sectors * growth
                gathered = far if access.gathered else 0.0
                near = sectors * max(one.nearest for one in group)
                found = found + tally(global_reads=own.requests, near=near, far=far, gathered=gathered)
    return found


def widest_of(*, shared: bool, pieces: bool, itemsize: int) -> int:
    """Bytes of the widest access that a compiler makes of several."""
    return WIDEST if shared or pieces else itemsize
