"""Points of an image that a thread has: those of a convolution whose taps share what they read."""

from __future__ import annotations

import math
from collections.abc import Mapping, Set
from typing import Final

from tc.language.program.affine_form import coefficient
from tc.language.program.program import iterators_in
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.ir.loops import StatementBody
from tc.targets.machine import GpuMachine

# Elements of float32 that are copied at once.
VECTOR: Final = 4
# Rows of an image so short that a thread may have a whole one.
SHORT_ROW: Final = 8
# Neighbouring points of longer ones.
PAIR: Final = 2
# Warps of a block that has whole rows or pairs at least.
_WARPS_WITH_ROWS: Final = 2
_WARPS_WITH_PAIRS: Final = 4


def image_loops(body: StatementBody, points: Set[str]) -> set[str]:
    """Of loops over points, those along which neighbours read some elements again, since others add to subscripts."""
    found: set[str] = set()
    for read in value_reads(body):
        for subscript in read.subscripts:
            own = iterators_in((subscript,))
            if own - points:
                found |= {name for name in own & points if coefficient(subscript, name) == 1}
    return found


def in_rows(
    body: StatementBody, tile: Mapping[str, int], extents: Mapping[str, int], machine: GpuMachine
) -> dict[str, int]:
    """The threads along some loops of a convolution of small images: each of them has whole rows, and as many filters
    as a vector has.  ``tile``, ``extents``: of loops over points.
    """
    for read in value_reads(body):
        last = iterators_in(read.subscripts[-1:])
        rows = [name for name in last & tile.keys() if coefficient(read.subscripts[-1], name) == 1]
        if len(rows) != 1 or last <= tile.keys() or not 1 < tile[rows[0]] <= SHORT_ROW:
            continue
        row, image = rows[0], iterators_in(read.subscripts)
        filters = {name: size // VECTOR for name, size in tile.items() if name not in image and size % VECTOR == 0}
        others = math.prod(size for name, size in tile.items() if name not in (row, *filters))
        if tile[row] == extents[row] and others * math.prod(filters.values()) >= _WARPS_WITH_ROWS * machine.warp:
            return {row: 1, **filters}
    return {}


def in_pairs(body: StatementBody, tile: Mapping[str, int], machine: GpuMachine) -> dict[str, int]:
    """The threads along loops over a larger image, if each of them has pairs of points along some.

    It has them along as many loops as leave warps enough, and no more results for each than there is room for.
    """
    images = image_loops(body, tile.keys())
    found: dict[str, int] = {}
    for name in (own for own in tile if own in images and tile[own] % PAIR == 0):
        more = {**found, name: tile[name] // PAIR}
        threads = math.prod(more.get(own, tile[own]) for own in images)
        results = math.prod(tile.values()) // threads
        if threads >= _WARPS_WITH_PAIRS * machine.warp and results <= machine.thread_elements:
            found = more
    return found
