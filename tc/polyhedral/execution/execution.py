"""When and where every instance runs: what a schedule tree or a loop tree comes down to, for the proofs.

Time is a vector.  Its dimensions alternate between ordered ones and unordered ones: positions in sequences and
iterations of sequential loops are ordered; iterations of parallel and vector loops are not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

import islpy as isl

from tc.polyhedral.analysis.times import Times
from tc.polyhedral.execution.barriers import WarpPlace
from tc.polyhedral.execution.streams import StreamPlace
from tc.polyhedral.ir.loops import Buffer, GroupMma, Mma, Scheduled

# Of a buffer, around the instances of some statements; None where it is around none of them.
ArraysOf: TypeAlias = Callable[[str, Collection[str]], isl.UnionMap | None]


class Concurrency(Enum):
    """What two different values of a time dimension say about two instances that agree on all outer ones."""

    ORDERED = "ordered"  # the smaller one runs first
    LANES = "lanes"  # partial results of one reduction may be kept apart
    BLOCKS = "blocks"  # they run in different blocks, and may do so at the same time
    THREADS = "threads"  # they run in different threads of a block, which only barriers order
    UNORDERED = "unordered"  # they may run at the same time


@dataclass(frozen=True)
class ThreadLeaf:
    """A place where a statement stands, as the check of barriers sees it.

    ``times``: of the instances there.  ``threads``: the levels of time that are loops over threads.  ``kernel``: the
    dimensions of time that say which launch of which kernel it is.  For every dimension of time, ``barriers`` are the
    positions of barriers in the sequence that it numbers; ``after`` and ``before`` say whether, deeper inside, one
    iteration runs a barrier after the statement, or before it.  ``by_warp``: other lanes of the warp read what it
    reads.
    """

    statement: str
    times: Times
    threads: tuple[int, ...]
    kernel: int
    barriers: tuple[frozenset[int], ...]
    after: tuple[bool, ...]
    before: tuple[bool, ...]
    by_warp: bool = False


@dataclass(frozen=True)
class LocalSubscripts:
    """What a place in loops says of buffers: ``{ loop iterators -> statement instance }``, and each local subscript
    that the statement has there as a function of the iterators.

    ``warp``: where the loops over threads and lanes are.
    """

    instances: isl.Map
    subscripts: tuple[isl.PwAff, ...]
    warp: WarpPlace


@dataclass(frozen=True)
class MatrixPlace:
    """A place of matrix instructions in loops.

    ``iterators``: of all loops around the instance, of which the first ``around`` stand around the node; ``points``:
    their values; ``outside``: those of the loops around the node.  ``instances``: ``{ loop iterators -> statement
    instance }``; ``subscripts``: its local subscripts as functions of them.  ``threads``: the places of the loops over
    threads; ``block``: the threads along each, x last.  ``arrays``: by buffer, how many loops stand around its
    allocation.
    """

    node: Mma | GroupMma
    iterators: tuple[str, ...]
    around: int
    points: isl.Set
    outside: isl.Set
    instances: isl.Map
    subscripts: tuple[isl.PwAff, ...]
    threads: tuple[int, ...]
    block: tuple[int, ...]
    arrays: Mapping[str, int]


@dataclass(frozen=True)
class Execution:
    """The times of every statement at each of its places, padded with zeros to one length, and what a dimension means.

    ``leaves``: the number of places where a statement stands.  ``running``: the instances that have a time; ``once``:
    none can have two, as it is made.  ``scoped``: for every buffer, the instances inside of its allocations;
    ``scopes``: ``{ instance -> time of the allocation around it }`` of a buffer, for instances of some statements,
    which may say something of instances that do not run, too: those with one value see one array; ``rounds``: the same
    as if all of a block shared one array.  ``misuse``: loop iterations that divide by a form that C gets wrong there
    (see ``IndexOperator``).  ``locals``: of every place in loops where a statement stands; None for a schedule tree,
    which does not say.  ``allocated``: the buffers as the loops bring them; ``nodes``: what stands at their leaves.
    ``places``: of programs that run on threads.  ``divergent``: barriers that some thread of a block may miss.
    ``unlaunched``: statements that hardware does not run as the loops around them say.  ``matrices``: where whole warps
    run several instances by matrix instructions.  ``streams``: loops that two sorts of threads may run.
    """

    times: Mapping[str, tuple[Times, ...]]
    dimensions: tuple[Concurrency, ...]
    leaves: int
    running: isl.UnionSet
    once: bool
    scopes: ArraysOf
    scoped: Mapping[str, isl.UnionSet]
    rounds: ArraysOf
    misuse: tuple[isl.Set, ...] = ()
    locals: tuple[LocalSubscripts, ...] | None = None
    allocated: tuple[Buffer, ...] = ()
    nodes: tuple[Scheduled, ...] = ()
    places: tuple[ThreadLeaf, ...] = ()
    divergent: tuple[str, ...] = ()
    unlaunched: tuple[str, ...] = ()
    matrices: tuple[MatrixPlace, ...] = ()
    streams: tuple[StreamPlace, ...] = ()
