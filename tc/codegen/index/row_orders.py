"""In which order the rows of a register tile come that several loops number.

Rows multiply vectors, which some loops number, by numbers that other loops do.  What depends on inner loops alone is
needed again in each iteration of the outer ones, and compilers keep it in registers until then, or keep other things
elsewhere.  A tile of 2 x 6 rows with sixteen registers, six of which had the numbers, took twice as long as one of
6 x 2.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence, Set
from dataclasses import replace
from typing import TypeAlias

from tc.language.program.program import iterators_in, reads_in
from tc.polyhedral.analysis.access_boxes import trips
from tc.polyhedral.ir.loops import IndexLiteral, Instance, Loop, StatementBody, variables

# For each operand, the iterators that it depends on, and how many registers it takes.
Operands: TypeAlias = Sequence[tuple[Set[str], int]]


def row_order(nest: Sequence[Loop], operands: Operands, room: int) -> tuple[Loop, ...]:
    """The loops over rows, outermost first, in the given order, or, where ``room`` registers are fewer than hold what
    is needed again, in that with the fewest.
    """
    order = tuple(nest)
    if not all(map(_has_numbers, nest)) or _needed(order, operands) <= room:
        return order
    return min(itertools.permutations(order), key=lambda loops: _needed(loops, operands))


def nested(loops: Sequence[Loop], lanes: Loop) -> Loop:
    """The loops, one inside of the other, around that over lanes."""
    for loop in reversed(loops):
        lanes = replace(loop, body=lanes)
    return lanes


def chooses_rows(nest: Sequence[Loop], instance: Instance, body: StatementBody) -> bool:
    """Whether each iteration of all loops reduces into elements of its own, and reads none of the others."""
    arguments = dict(zip(body.iterators, instance.arguments, strict=True))
    written = {name for own in iterators_in(body.subscripts) for name in variables(arguments[own])}
    others = (own for own in reads_in(body.value) if own.tensor == body.target and own.subscripts != body.subscripts)
    return body.reduction is not None and all(loop.iterator in written for loop in nest) and not any(others)


def operands_of(instance: Instance, body: StatementBody, lane: str, vectors: int) -> Operands:
    """What a statement reads beside its target: vectors where it depends on the lane."""
    arguments = {name: variables(own) for name, own in zip(body.iterators, instance.arguments, strict=True)}
    found: list[tuple[Set[str], int]] = []
    for read in dict.fromkeys(own for own in reads_in(body.value) if own.tensor != body.target):
        names = frozenset[str]().union(*(arguments[name] for name in iterators_in(read.subscripts)))
        found.append((names, vectors if lane in names else 1))
    return found


def _needed(loops: Sequence[Loop], operands: Operands) -> int:
    """The registers of the operands that are needed again, or now."""
    return sum(registers * _again(loops, names) for names, registers in operands)


def _again(loops: Sequence[Loop], names: Set[str]) -> int:
    """The values that depend on these iterators and are there before the outermost loop on which they do not."""
    inner = itertools.dropwhile(lambda loop: loop.iterator in names, loops)
    return math.prod(_count(loop) for loop in inner if loop.iterator in names)


def _count(loop: Loop) -> int:
    found = trips(loop)
    assert found is not None, "the bounds are numbers"
    return found


def _has_numbers(loop: Loop) -> bool:
    return isinstance(loop.lower, IndexLiteral) and isinstance(loop.upper, IndexLiteral)
