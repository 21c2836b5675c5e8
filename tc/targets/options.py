"""Typed options: what a user, the tuner and the cache may choose about a kernel.

Target-neutral options stand inside the options of a target.  Construction validates; ``to_json`` and
``from_json`` round-trip (``options_json``).
"""

from __future__ import annotations

import itertools
import math
from dataclasses import field
from enum import Enum
from typing import TypeAlias

from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.base.grid import MOST_BLOCKS, MOST_THREADS
from tc.targets.numerics import Numerics
from tc.targets.options_json import Written


class Fusion(Enum):
    """Which statements share loops (the paper's three strategies)."""

    MAXIMAL = "maximal"
    PRESERVE_PARALLEL = "preserve-parallel"
    MINIMAL = "minimal"


@frozen
class ScheduleOptions(Written):
    """Choices that every target shares.

    ``fusion``: a limit, what may share loops; none does where isl's budget does not suffice to schedule the program.
    ``tile``: tile sizes of the loops around every statement, outermost first; loops beyond the tuple, or with size 0,
    are not tiled.  None lets the target choose; an empty tuple tiles nothing.  More sizes than loops are refused.  A
    loop that carries dependences among several statements stays whole: OptionsError where only such ones have a size.
    ``unroll``: a limit; loops whose bodies hold at most this many statement instances in all are unrolled; 1 unrolls
    none. Parallel loops and vector lanes stay loops.  OptionsError where that writes out more than 4,096 statements and
    conditions of a kernel.
    ``scans``: a limit; a reduction whose terms grow from element to element is computed as a scan, each element from
    the one before; False computes each by itself (*Scans* in ``docs/language.md``).
    ``scatter_parts``: how many partial results a scatter has, each with some of the terms; 1 has none.
    ``scatter_owners``: how many own ranges of the elements that a scatter without parts writes, and look at all of its
    indices; 1 runs it in a row.  OptionsError for programs in which nothing can be shared so; None lets sizes and the
    target choose.
    """

    fusion: Fusion = Fusion.PRESERVE_PARALLEL
    tile: tuple[int, ...] | None = None
    unroll: int = 1
    scans: bool = True
    scatter_owners: int | None = None
    scatter_parts: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.fusion, Fusion):
            raise OptionsError(f"fusion must be a tc.Fusion, got {self.fusion!r}")
        if self.tile is not None:
            _require_integers("tile", self.tile, 0, 1 << 30)
        _require_integer("unroll", self.unroll, 1, 4096)
        _require_boolean("scans", self.scans)
        _require_open("scatter_owners", self.scatter_owners, 1, 1 << 20)
        _require_open("scatter_parts", self.scatter_parts, 1, 1 << 20)


class Distribution(Enum):
    """How the points of a tile are dealt to the threads of a block."""

    CYCLIC = "cyclic"  # one by one: neighbouring threads work on neighbouring points
    BLOCKED = "blocked"  # in runs: every thread works on neighbouring points
    VECTORS = "vectors"  # in runs along the loops of default tiles where threads then read vectors, else one by one


class TileLayout(Enum):
    """How the tile of an operand lies in shared memory."""

    MEMORY = "memory"  # as its tensor does
    POINTS = "points"  # what the points of a thread's tile read for one step of a reduction lies side by side
    VECTORS = "vectors"  # as its tensor does, or by points where threads read no vectors otherwise


class TensorCores(Enum):
    """Which matrix instructions there may be."""

    NONE = "none"
    WARPS = "warps"  # of 32 threads, with operands in their registers (``mma.sync``)
    WARPGROUPS = "warpgroups"  # of 128 threads too, with operands in shared memory (``wgmma``)
    STREAMS = "streams"  # the same, and a thread of its own copies boxes of operands (``cp.async.bulk.tensor``)


@frozen
class CpuOptions(Written):
    """Options of the ``cpu`` target: exact ones, and limits (*What was asked for* in ``docs/options.md``).

    ``register_tile``: sizes of the tile of independent loops inside a reduction, innermost last; further ones move out
    of the reduction.  None lets the target choose; an empty tuple makes no register tiles.  More sizes than such loops
    are refused.
    ``vector_axis``: the place among the ``register_tile`` sizes of the loop that vectors lie along; None takes the
    last.
    ``register_accumulators``: a limit, the most elements of a reduction's target that are kept in an array of their
    own, for the compiler to hold in registers, while its innermost loops run; 0 keeps none.
    ``packed_operands``: a limit, the most elements of an operand that are copied so that the lanes of a reduction find
    them side by side, and 32 times as many where all steps of a block read one copy; 0 packs none.
    ``local_temporaries``: a limit, the most elements of a temporary that lives in a buffer of one iteration of the
    loops around it; 0 keeps temporaries in memory.
    ``nontemporal_stores``: a limit, the least bytes of a result that is written past the caches, where the processor
    can do so and nothing in the kernel reads it, or that loops only fill with a number; 0 writes none so.
    ``threads``: a limit, the most threads one call uses; 0 means as many as ``tc.set_threads`` allows.
    ``vectorize``: a limit; innermost parallel or reducing loops, if there are any, are marked for the compiler's
    vectorizer.
    ``gather_prefetch``: how many iterations ahead the rows of a gather are asked for; 0 leaves that to the processor.
    ``block_prefetch``: a limit, the most bytes of an argument that one iteration of a loop works on while the block of
    the next one is asked for; 0 leaves that to the processor, and also the lines that register tiles store to or
    that are filled with a number.
    ``check_indices``: gathers check their indices (see *Gathers* in ``docs/language.md``).
    ``numerics``: what the bits of the results may depend on.
    """

    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    register_tile: tuple[int, ...] | None = None
    vector_axis: int | None = None
    register_accumulators: int = 512
    packed_operands: int = 1 << 17
    local_temporaries: int = 1 << 15
    nontemporal_stores: int = 1 << 24
    threads: int = 0
    vectorize: bool = True
    check_indices: bool = True
    gather_prefetch: int = 16
    block_prefetch: int = 1 << 17
    numerics: Numerics = field(default_factory=Numerics)

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, ScheduleOptions):
            raise OptionsError(f"schedule must be tc.ScheduleOptions, got {self.schedule!r}")
        if self.register_tile is not None:
            _require_integers("register_tile", self.register_tile, 1, 1 << 10)
        if self.vector_axis is not None:
            _require_integer("vector_axis", self.vector_axis, 0, max(0, len(self.register_tile or ()) - 1))
        _require_integer("register_accumulators", self.register_accumulators, 0, 1 << 16)
        _require_integer("packed_operands", self.packed_operands, 0, 1 << 18)
        _require_integer("local_temporaries", self.local_temporaries, 0, 1 << 18)
        _require_integer("nontemporal_stores", self.nontemporal_stores, 0, 1 << 62)
        _require_integer("threads", self.threads, 0, 4096)
        _require_integer("gather_prefetch", self.gather_prefetch, 0, 1024)
        _require_integer("block_prefetch", self.block_prefetch, 0, 1 << 30)
        _require_boolean("vectorize", self.vectorize)
        _require_boolean("check_indices", self.check_indices)
        _require_numerics(self.numerics)


@frozen
class GpuOptions(Written):
    """Options of the targets that run blocks of threads: exact ones, and limits.

    *What was asked for* in ``docs/options.md`` says what differs between options and kernels, and how one learns of it.
    ``schedule.tile`` cuts the outermost independent loops into tiles, which go to blocks, the points of a tile to
    threads; where tiles are single points, they share the innermost independent loops that have no size.  None lets the
    target choose.  Mind the order: ``tile`` begins with the outermost loop, ``block`` and ``grid`` with x, which is the
    innermost of the loops that are shared: ``tile=(8, 32)`` goes with ``block=(32, 8)``.
    ``block``: threads of a block along every dimension, x (the innermost of the loops that are shared) first; exactly
    so many are launched, those beyond the points of a tile only copy.  None takes about 256, or as many as a tile has
    points.  Of loops inside that threads share, a tile has a multiple of so
    many points as there are threads, or as each of them takes in a row.
    ``grid``: a limit, the most blocks along every dimension, x first; a block then works on several tiles, and on all
    of those along dimensions that are not named.  None takes as many as there are tiles, and several nests may be one
    kernel.
    ``distribution``: how the points of a tile are dealt to threads.
    ``tensor_cores``: a limit; the warps of a block compute products of halves and bytes by matrix instructions, where a
    GPU has these (NVIDIA's from ``sm_80`` on) and products have enough rows, columns and steps for them; on ``sm_90a``,
    groups of four warps do so with large products of halves, whose operands a thread of its own copies in boxes.
    ``register_accumulators``: a limit, the most elements of a result that a thread keeps to itself while it reduces; 0
    keeps none. None takes a quarter of its registers.
    ``register_operands``: a limit, the most elements of operands that a thread reads into registers before it goes
    through the points of its tile; 0 leaves it to the compiler of the target, which sees that they are read again.
    ``split_k_threads``: how many partial results, each in a thread of its own, the long reductions have for every
    element; a second number says in how many these are combined first, and so on.  None splits the reductions that run
    along memory, but no products; an empty tuple splits none.
    ``split_k_blocks``: how many blocks share each long reduction, products among them (split-K); a second kernel
    combines what they have.  ``tile`` has no size for the loop over these blocks.
    None takes several where there are few results, if ``split_k_threads`` is None, too.
    ``shuffles``: the 32 threads of a warp combine their partial results from register to register.  None does so where
    the target can; OpenCL cannot, and True is an OptionsError there.
    ``shared_memory``: a limit, the most bytes of memory that the threads of a block share; 0 uses none.  None takes so
    many that two blocks fit a multiprocessor.
    ``layout``: how operands lie in shared memory; in the order of their tensors, or with the loops of the reduction
    outermost, element by element, or each of them in the order in which threads read vectors.
    ``padding``: elements added to every row of an operand in shared memory.  None adds as many, to rows and to what is
    made of rows, as it takes for neighbours to lie in different banks.
    ``stages``: tiles of each operand that shared memory holds at a time.  With more than one, the next tiles are on
    their way while threads work on this one; NVIDIA's GPUs copy them asynchronously from ``sm_80`` on.  None takes as
    many as there is room for, four at most.  With a number, operands of which so many find no room are read where they
    lie, as ``explain`` says.
    ``min_blocks_per_multiprocessor``: blocks that must find room on a multiprocessor at a time, for which CUDA's
    compiler limits the registers of a thread; OptionsError where threads or shared memory leave no room, and for
    OpenCL, which knows no such thing.
    ``check_indices``: gathers check their indices (see *Gathers* in ``docs/language.md``).
    ``numerics``: what the bits of the results may depend on.
    """

    schedule: ScheduleOptions = field(default_factory=ScheduleOptions)
    block: tuple[int, ...] | None = None
    grid: tuple[int, ...] | None = None
    distribution: Distribution = Distribution.VECTORS
    split_k_threads: tuple[int, ...] | None = None
    split_k_blocks: int | None = None
    shuffles: bool | None = None
    tensor_cores: TensorCores = TensorCores.STREAMS
    register_accumulators: int | None = None
    register_operands: int = 0
    shared_memory: int | None = None
    layout: TileLayout = TileLayout.VECTORS
    padding: int | None = None
    stages: int | None = None
    min_blocks_per_multiprocessor: int = 1
    check_indices: bool = True
    numerics: Numerics = field(default_factory=Numerics)

    def __post_init__(self) -> None:
        if not isinstance(self.schedule, ScheduleOptions):
            raise OptionsError(f"schedule must be tc.ScheduleOptions, got {self.schedule!r}")
        for name, sizes, most in (("block", self.block, MOST_THREADS), ("grid", self.grid, MOST_BLOCKS[0])):
            if sizes is not None:
                _require_integers(name, sizes, 1, most)
                if len(sizes) > 3:
                    raise OptionsError(f"{name} must have at most 3 sizes, got {sizes!r}")
        if (threads := math.prod(self.block or ())) > MOST_THREADS:
            raise OptionsError(f"a block has at most {MOST_THREADS} threads, got {self.block} = {threads}")
        if not isinstance(self.distribution, Distribution):
            raise OptionsError(f"distribution must be a tc.Distribution, got {self.distribution!r}")
        if self.split_k_threads is not None:
            _require_integers("split_k_threads", self.split_k_threads, 2, 1 << 20)
        if any(then >= parts for parts, then in itertools.pairwise(self.split_k_threads or ())):
            raise OptionsError(
                f"split_k_threads must go from many partial results to few, got {self.split_k_threads!r}"
            )
        _require_open("register_accumulators", self.register_accumulators, 0, 1 << 10)
        _require_integer("register_operands", self.register_operands, 0, 1 << 10)
        _require_open("shared_memory", self.shared_memory, 0, 1 << 18)
        if not isinstance(self.layout, TileLayout):
            raise OptionsError(f"layout must be a tc.TileLayout, got {self.layout!r}")
        _require_open("padding", self.padding, 0, 64)
        _require_open("stages", self.stages, 1, 8)
        _require_integer("min_blocks_per_multiprocessor", self.min_blocks_per_multiprocessor, 1, 32)
        _require_open("split_k_blocks", self.split_k_blocks, 1, 1 << 16)
        if self.shuffles is not None:
            _require_boolean("shuffles", self.shuffles)
        if not isinstance(self.tensor_cores, TensorCores):
            raise OptionsError(f"tensor_cores must be a tc.TensorCores, got {self.tensor_cores!r}")
        _require_boolean("check_indices", self.check_indices)
        _require_numerics(self.numerics)


Options: TypeAlias = CpuOptions | GpuOptions


def _require_integers(name: str, values: object, least: int, most: int) -> None:
    if not isinstance(values, tuple):
        raise OptionsError(f"{name} must be a tuple of integers or None, got {values!r}")
    for value in values:
        _require_integer(name, value, least, most)


def numerics_alone(options: Options) -> Options:
    """Options that say nothing but what the bits of results may depend on: what a derived definition inherits."""
    return type(options)(numerics=options.numerics)


def _require_integer(name: str, value: object, least: int, most: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise OptionsError(f"{name} must be an integer from {least} to {most}, got {value!r}")


def _require_open(name: str, value: object, least: int, most: int) -> None:
    """For what may be left to the target, as None."""
    if value is not None:
        _require_integer(name, value, least, most)


def _require_boolean(name: str, value: object) -> None:
    if not isinstance(value, bool):
        raise OptionsError(f"{name} must be True or False, got {value!r}")


def _require_numerics(value: object) -> None:
    if not isinstance(value, Numerics):
        raise OptionsError(f"numerics must be tc.Numerics, got {value!r}")
