"""What is done to a schedule, in which order: one literal list for processors, one for machines that run grids."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from tc.polyhedral.cpu.defaults import default_sizes
from tc.polyhedral.cpu.microkernel import VectorUnit
from tc.polyhedral.cpu.parallelize import parallelize_tree
from tc.polyhedral.cpu.promote import Room, promote_tree
from tc.polyhedral.cpu.register_tile import default_tile, explicit_tile, register_tile_tree
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.gpu.mapping.drop_degenerate_loops import drop_degenerate_loops
from tc.polyhedral.gpu.mapping.gather_nests import gather_nests
from tc.polyhedral.gpu.mapping.grid_defaults import default_tiles
from tc.polyhedral.gpu.mapping.linearize_rows import linearize_rows
from tc.polyhedral.gpu.mapping.map_to_grid import grid_cuts, map_to_grid
from tc.polyhedral.gpu.mapping.mark_reductions import mark_reductions
from tc.polyhedral.gpu.promotion.promote_operands import promote_operands
from tc.polyhedral.gpu.promotion.promote_private import promote_private
from tc.polyhedral.gpu.promotion.promote_shared import SharedRoom, promote_shared
from tc.polyhedral.gpu.promotion.promote_temporaries import Memory, promote_temporaries
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.transform.share_loops import Grid, whole_loops
from tc.polyhedral.transform.stream import streamed_results
from tc.polyhedral.transform.tile import ChooseCuts, explicit_sizes, tile_tree
from tc.polyhedral.transform.unroll import unroll_tree
from tc.polyhedral.transform.vectorize import vectorize_tree
from tc.targets.options import CpuOptions, Fusion, GpuOptions


@dataclass(frozen=True, slots=True)
class Machine:
    """What the passes know of the processor: its vector registers, and how many cores there are to keep busy.

    ``streams``: it can write whole lines of memory past its caches.  ``branches``: threads of a block may wait for each
    other in a branch that not all blocks take.  ``shuffles``: the lanes of a warp may read each other's registers.
    ``copies_ahead``: tiles can be copied to shared memory while others are used.
    """

    vectors: VectorUnit
    cores: int
    streams: bool = False
    branches: bool = True
    shuffles: bool = True
    copies_ahead: bool = True


# Promotion adds statements to the scop, so passes hand both on.
State: TypeAlias = tuple[ScheduleTree, Scop]
Pass: TypeAlias = Callable[[ScheduleTree, Scop, CpuOptions, Machine], State]
GridPass: TypeAlias = Callable[[ScheduleTree, Scop, GpuOptions], State]


def _register_tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    sizes = options.register_tile
    if sizes is None:
        choose = default_tile(scop, machine.vectors, packs=options.packed > 0)
    else:
        choose = explicit_tile(scop, sizes, options.lane)
    tiles = options.schedule.tile or ()
    return register_tile_tree(tree, scop, choose, lanes=options.vectorize, tiles=tiles), scop


def _tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: Machine) -> State:
    sizes = options.schedule.tile
    chosen = default_sizes(scop, packs=options.packed > 0) if sizes is None else explicit_sizes(sizes)
    return tile_tree(tree, chosen), scop


def _vectorize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    streamed = streamed_by(scop, options, machine)
    return vectorize_tree(tree, scop, machine.vectors.bytes, mark=options.vectorize, streamed=streamed), scop


def _parallelize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    join = options.schedule.fusion is not Fusion.MINIMAL
    return parallelize_tree(tree, scop, options.threads or machine.cores, options.packed, join=join), scop


def _promote(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: Machine) -> State:
    streamed = streamed_by(scop, options, machine)
    room = Room(options.accumulators, options.packed, options.local, lanes=options.vectorize, streamed=streamed)
    return promote_tree(tree, scop, room)


def streamed_by(scop: Scop, options: CpuOptions, machine: Machine) -> frozenset[str]:
    """Results that are stored with non-temporal stores."""
    return streamed_results(scop, options.streamed) if machine.streams else frozenset()


def _unroll(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: Machine) -> State:
    return unroll_tree(tree, options.schedule.unroll), scop


PASSES: Final[tuple[tuple[str, Pass], ...]] = (
    ("register tile", _register_tile),
    ("tile", _tile),
    ("vectorize", _vectorize),
    ("parallelize", _parallelize),
    ("promote", _promote),
    ("unroll", _unroll),
)


def _map(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return map_to_grid(tree, tiles_of(options, scop), grid_of(options)), scop


def grid_of(options: GpuOptions) -> Grid:
    """The grid that options ask for."""
    return Grid(options.grid, options.block, options.distribution)


def _tile_blocks(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return tile_tree(tree, grid_cuts(tiles_of(options, scop), grid_of(options))), scop


def _drop_degenerate_loops(tree: ScheduleTree, scop: Scop, _options: GpuOptions) -> State:
    return drop_degenerate_loops(tree), scop


def _mark_reductions(tree: ScheduleTree, scop: Scop, _options: GpuOptions) -> State:
    return mark_reductions(tree, scop), scop


def _promote_temporaries(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return promote_temporaries(tree, scop, Memory(options.private, options.shared, options.shuffles))


def _promote_private(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return promote_private(tree, scop, options.private) if options.private else (tree, scop)


def _promote_shared(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    if not options.shared:
        return tree, scop
    return promote_shared(tree, scop, SharedRoom(options.shared, options.layout, options.padding, options.stages))


def _promote_operands(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return promote_operands(tree, scop, options.fragments) if options.fragments else (tree, scop)


def _place_barriers(tree: ScheduleTree, scop: Scop, _options: GpuOptions) -> State:
    return place_barriers(tree, scop)


def tiles_of(options: GpuOptions, scop: Scop) -> ChooseCuts:
    """Where loops are tiled: as the options say, or by default."""
    sizes = options.schedule.tile
    if sizes is None:
        return default_tiles(scop, options.block or ())
    return whole_loops(explicit_sizes(sizes, rounded=True))


def _unroll_in_threads(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    return unroll_tree(tree, options.schedule.unroll), scop


def _linearize_rows(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    sizes = (options.schedule.tile, options.block, options.grid)
    return linearize_rows(tree, scop, max(len(own or ()) for own in sizes)), scop


def _gather_nests(tree: ScheduleTree, scop: Scop, options: GpuOptions) -> State:
    chosen = options.schedule.tile is not None or options.grid is not None or options.block is not None
    apart = chosen or options.schedule.fusion is Fusion.MINIMAL
    return (tree if apart else gather_nests(tree)), scop


# The one that makes loops over sums of iterators of others.
JOINING_ROWS: Final = "linearize rows"

GRID_PASSES: Final[tuple[tuple[str, GridPass], ...]] = (
    (JOINING_ROWS, _linearize_rows),
    ("gather nests", _gather_nests),
    ("map", _map),
    ("tile", _tile_blocks),
    ("drop degenerate loops", _drop_degenerate_loops),
    ("mark reductions", _mark_reductions),
    ("promote temporaries", _promote_temporaries),
    ("promote private", _promote_private),
    ("promote shared", _promote_shared),
    ("promote operands", _promote_operands),
    ("unroll", _unroll_in_threads),
    ("place barriers", _place_barriers),
)
