"""Transfer: options of winners elsewhere with which a search begins, adapted to other sizes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace

from tc.base.frozen import frozen
from tc.targets.options import Options
from tc.tuner.space.genes import Genome
from tc.tuner.space.nest import Nest
from tc.tuner.space.space import Space
from tc.tuner.trial.trial_outcome import Failed


@frozen
class Winner:
    """Options that won for a program with these loops; ``program``: any text that is the same for the same program."""

    program: str
    nest: Nest
    options: Options


def seeds(space: Space, program: str, winners: Iterable[Winner], most: int) -> tuple[Options, ...]:
    """At most so many options to begin with, each once, legal in this space, the most promising first.

    First those of the same program, the nearest sizes first; then those of kernels with as many loops.  Every winner of
    the same program gives two: its sizes as parts of the loops, and as they are.
    """
    usable = [winner for winner in winners if type(winner.options) is type(space.defaults)]
    same = [winner for winner in usable if _is_resized(winner, program, space.nest)]
    alike = [winner for winner in usable if winner.program != program and winner.nest.is_like(space.nest)]
    found: dict[Options, None] = {}
    for winner in sorted(same, key=lambda winner: distance(winner.nest, space.nest)):
        found.update(dict.fromkeys(_resized(winner, space)))
    for winner in sorted(alike, key=lambda winner: _sorted_distance(winner.nest, space.nest)):
        found.update(dict.fromkeys(_legal(space, space.encode(winner.options))))
    return tuple(found)[:most]


def distance(one: Nest, other: Nest) -> float:
    """How far the sizes of two nests of the same loops lie apart: Euclidean, in doublings."""
    return math.hypot(*(_doublings(extent, other.extents[loop]) for loop, extent in one.extents.items()))


def _sorted_distance(one: Nest, other: Nest) -> float:
    """The same where loops have other names: those of similar lengths are compared."""
    lengths = (sorted(nest.extents.values(), reverse=True) for nest in (one, other))
    return math.hypot(*(_doublings(mine, yours) for mine, yours in zip(*lengths, strict=False)))


def _doublings(one: int, other: int) -> float:
    return math.log2(max(one, 1) / max(other, 1))


def _is_resized(winner: Winner, program: str, nest: Nest) -> bool:
    return winner.program == program and winner.nest.is_like(nest) and winner.nest.extents.keys() == nest.extents.keys()


def _resized(winner: Winner, space: Space) -> Iterator[Options]:
    """The options with sizes as parts of the loops, and with the same sizes."""
    home = replace(space, nest=winner.nest)
    yield from _legal(space, space.adopt(home.encode(winner.options, relative=True)))
    yield from _legal(space, space.encode(winner.options))


def _legal(space: Space, genome: Genome) -> Iterator[Options]:
    options = space.decode(space.repair(genome))
    if not isinstance(options, Failed):
        yield options
