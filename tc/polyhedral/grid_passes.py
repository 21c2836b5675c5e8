"""What is done to a schedule and to the loops of it for a GPU, in which order: literal lists."""

from __future__ import annotations

from typing import Final

import islpy as isl

from tc.base.dots import MatrixShape
from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.generate.constant_guards import without_constant_guards
from tc.polyhedral.generate.constant_trip_counts import constant_trip_counts
from tc.polyhedral.generate.guard_nests import guard_nests
from tc.polyhedral.generate.join_kernels import Limits, join_kernels
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.gpu.mapping.drop_degenerate_loops import drop_degenerate_loops
from tc.polyhedral.gpu.mapping.gather_nests import gather_nests
from tc.polyhedral.gpu.mapping.grid_defaults import default_tiles
from tc.polyhedral.gpu.mapping.join_chains import join_chains
from tc.polyhedral.gpu.mapping.linearize_rows import linearize_rows
from tc.polyhedral.gpu.mapping.map_to_grid import grid_cuts, map_to_grid
from tc.polyhedral.gpu.mapping.mark_reductions import mark_reductions
from tc.polyhedral.gpu.mapping.part_nests import part_nests
from tc.polyhedral.gpu.promotion.promote_operands import promote_operands
from tc.polyhedral.gpu.promotion.promote_private import promote_private
from tc.polyhedral.gpu.promotion.promote_shared import SharedRoom, promote_shared
from tc.polyhedral.gpu.promotion.promote_temporaries import Memory, promote_temporaries
from tc.polyhedral.gpu.promotion.unroll_rows import unroll_rows
from tc.polyhedral.gpu.tensor.chain_tree import chain_products
from tc.polyhedral.gpu.tensor.groups import has_groups
from tc.polyhedral.gpu.tensor.instructions import matrix_instructions
from tc.polyhedral.gpu.tensor.products import matrix_product
from tc.polyhedral.gpu.tensor.stream_tiles import stream_tiles
from tc.polyhedral.gpu.tensor.warp_tiles import Asked, with_warp_tiles
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.swizzle import SWIZZLED_ROWS
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.passes import Loops, Passes, State, in_separate_tiles, localize, with_constant_unroll_bounds
from tc.polyhedral.separate.complete_tiles import complete_tiles
from tc.polyhedral.separate.separate_counts import separate_counts
from tc.polyhedral.separate.separate_stages import separate_stages
from tc.polyhedral.transform.buffer_layouts import Padding
from tc.polyhedral.transform.share_loops import Grid, whole_loops
from tc.polyhedral.transform.tile import ChooseCuts, explicit_sizes, tile_tree
from tc.polyhedral.transform.unroll import unroll_tree
from tc.targets.machine import GpuMachine
from tc.targets.options import Fusion, GpuOptions, TensorCores
from tc.targets.resolve import known

MAP: Final = "map"
# Of tiles of operands of products by default.
_GROUP_STEPS: Final = 64
_WARP_STEPS: Final = 32


def _map(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    tiles, grid = tiles_of(options, scop, machine), grid_of(options, scop, machine)
    return map_to_grid(tree, tiles, grid, launched_steps=launches_steps(options)), scop


def launches_steps(options: GpuOptions) -> bool:
    """Whether steps may be launched: sizes of tiles begin with the outermost loop, which is one of the kernel then."""
    return options.schedule.tile is None


def grid_of(options: GpuOptions, scop: Scop, machine: GpuMachine) -> Grid:
    """The grid that options ask for."""
    return Grid(options.grid, options.block, options.distribution, machine, scop.row_threads)


def _tile_blocks(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    return tile_tree(tree, grid_cuts(tiles_of(options, scop, machine), grid_of(options, scop, machine))), scop


def _drop_degenerate_loops(tree: ScheduleTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> State:
    return drop_degenerate_loops(tree), scop


def _chain_products(tree: ScheduleTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> State:
    return chain_products(tree, scop), scop


def _mark_reductions(tree: ScheduleTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> State:
    return mark_reductions(tree, scop), scop


def _unroll_rows(tree: ScheduleTree, scop: Scop, _options: GpuOptions, machine: GpuMachine) -> State:
    return unroll_rows(tree, scop, machine.multiprocessor.registers), scop


def _promote_temporaries(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    private, shuffles = options.register_accumulators, options.shuffles
    tile = options.schedule.tile or (_GROUP_STEPS if has_groups(options, machine) else _WARP_STEPS,)
    memory = Memory(
        known(private),
        _shared_room(options, machine),
        known(shuffles),
        machine.multiprocessor.registers,
        _matrix_shapes(options, machine),
        options.stages,
        tile[-1],
    )
    return promote_temporaries(tree, scop, memory)


def _promote_private(tree: ScheduleTree, scop: Scop, options: GpuOptions, _machine: GpuMachine) -> State:
    private = known(options.register_accumulators)
    return promote_private(tree, scop, private) if private else (tree, scop)


def _shared_room(options: GpuOptions, machine: GpuMachine) -> int:
    """Bytes for buffers.  Of all that a block can have, or one of two blocks, the channels of a stream take some: they
    lie before what is swizzled.
    """
    shared = known(options.shared_memory)
    streams = has_groups(options, machine) and options.tensor_cores is TensorCores.STREAMS
    return shared - SWIZZLED_ROWS if streams and shared in (machine.most_shared, machine.block_shared) else shared


def _promote_shared(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    shared = _shared_room(options, machine)
    if not shared:
        return tree, scop
    padding = Padding.BANKS if options.padding is None else options.padding
    groups, registers = has_groups(options, machine), machine.multiprocessor.registers
    room = SharedRoom(shared, options.layout, padding, options.stages, machine.stages, registers, groups)
    return promote_shared(tree, scop, room)


def _promote_operands(tree: ScheduleTree, scop: Scop, options: GpuOptions, _machine: GpuMachine) -> State:
    return promote_operands(tree, scop, options.register_operands) if options.register_operands else (tree, scop)


def _place_barriers(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    return place_barriers(tree, scop, ahead=machine.asynchronous_copies and options.stages != 1)


def tiles_of(options: GpuOptions, scop: Scop, machine: GpuMachine) -> ChooseCuts:
    """Where loops are tiled: as the options say, or by default."""
    sizes = options.schedule.tile
    if sizes is None:
        choose = default_tiles(scop, machine, options.block or ())
    else:
        choose = whole_loops(explicit_sizes(sizes, rounded=True))
    if options.tensor_cores is TensorCores.NONE:
        return choose
    asked = Asked(sizes, options.block, has_groups(options, machine), known(options.shared_memory))
    return with_warp_tiles(choose, scop, machine, asked)


def _unroll_in_threads(tree: ScheduleTree, scop: Scop, options: GpuOptions, _machine: GpuMachine) -> State:
    return unroll_tree(tree, options.schedule.unroll), scop


def _part_nests(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    chosen = options.schedule.tile is not None or options.grid is not None or options.block is not None
    together = chosen or options.schedule.fusion is Fusion.MAXIMAL
    return (tree if together else part_nests(tree, scop, machine)), scop


def _linearize_rows(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    sizes = (options.schedule.tile, options.block, options.grid)
    shapes = _matrix_shapes(options, machine)

    def multiplies(domain: isl.UnionSet) -> bool:
        return matrix_product(scop, shapes, domain) is not None

    return linearize_rows(tree, scop, max(len(own or ()) for own in sizes), multiplies), scop


def _gather_nests(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    chosen = options.schedule.tile is not None or options.grid is not None or options.block is not None
    apart = chosen or options.schedule.fusion is Fusion.MINIMAL
    return (tree if apart else gather_nests(tree, machine.block_threads)), scop


def _join_chains(tree: ScheduleTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> State:
    chosen = options.schedule.tile is not None or options.grid is not None or options.block is not None
    apart = chosen or options.schedule.fusion is not Fusion.PRESERVE_PARALLEL
    return (tree if apart else join_chains(tree, scop, machine)), scop


# The last ones that make buffers for results.
PROMOTING_RESULTS: Final = ("promote", "promote private")


# The one that makes loops over sums of iterators of others.
JOINING_ROWS: Final = "linearize rows"


GRID_PASSES: Final[Passes[ScheduleTree, GpuOptions, GpuMachine]] = (
    ("part nests", _part_nests),
    ("join chains", _join_chains),
    (JOINING_ROWS, _linearize_rows),
    ("gather nests", _gather_nests),
    (MAP, _map),
    ("tile", _tile_blocks),
    ("drop degenerate loops", _drop_degenerate_loops),
    ("chain products", _chain_products),
    ("mark reductions", _mark_reductions),
    ("unroll rows", _unroll_rows),
    ("promote temporaries", _promote_temporaries),
    ("promote private", _promote_private),
    ("promote shared", _promote_shared),
    ("promote operands", _promote_operands),
    ("unroll", _unroll_in_threads),
    ("place barriers", _place_barriers),
)


def _without_constant_guards(root: LoopTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> Loops:
    return without_constant_guards(root, size_ranges(scop.sizes)), scop


def _guard_nests(root: LoopTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> Loops:
    return guard_nests(root), scop


def _constant_trip_counts(root: LoopTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> Loops:
    return constant_trip_counts(root, scop), scop


def _complete_tiles(root: LoopTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> Loops:
    buffers = tuple(promotion.buffer for promotion in scop.promotions)
    return complete_tiles(root, scop.bodies, buffers, size_ranges(scop.sizes)), scop


def _separate_counts(root: LoopTree, scop: Scop, _options: GpuOptions, _machine: GpuMachine) -> Loops:
    return separate_counts(root), scop


def _separate_stages(root: LoopTree, scop: Scop, _options: GpuOptions, machine: GpuMachine) -> Loops:
    # Where nothing is copied asynchronously, PoCL gets loops of few iterations around barriers wrong.
    if not machine.asynchronous_copies:
        return root, scop
    return without_constant_guards(separate_stages(root), size_ranges(scop.sizes)), scop


def _join_kernels(root: LoopTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> Loops:
    if options.schedule.fusion is Fusion.MINIMAL or options.grid is not None:
        return root, scop
    return join_kernels(root, scop, size_ranges(scop.sizes), joined_limits(options, machine)), scop


# More bytes than any block has.
_ANY: Final = 1 << 30


def _stream_tiles(root: LoopTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> Loops:
    streams = machine.warpgroups and options.tensor_cores is TensorCores.STREAMS
    # What nothing is known of has as much as was asked for.
    room = machine.most_shared if machine.multiprocessor.reserved else _ANY
    return (stream_tiles(root, scop, room) if streams else root), scop


def joined_limits(options: GpuOptions, machine: GpuMachine) -> Limits:
    """What nests in one kernel keep to."""
    longest = machine.short_nest if options.schedule.fusion is Fusion.PRESERVE_PARALLEL else None
    return Limits(longest, known(options.shared_memory), machine.branches)


def _matrix_instructions(root: LoopTree, scop: Scop, options: GpuOptions, machine: GpuMachine) -> Loops:
    shapes = _matrix_shapes(options, machine)
    return matrix_instructions(root, scop, shapes, groups=has_groups(options, machine)), scop


def _matrix_shapes(options: GpuOptions, machine: GpuMachine) -> tuple[MatrixShape, ...]:
    return () if options.tensor_cores is TensorCores.NONE else machine.matrix_shapes


GRID_LOOP_PASSES: Final[Passes[LoopTree, GpuOptions, GpuMachine]] = (
    ("localize", localize),
    ("separate tiles", in_separate_tiles),
    ("constant unroll bounds", with_constant_unroll_bounds),
    ("drop constant guards", _without_constant_guards),
    ("guard nests", _guard_nests),
    ("constant trip counts", _constant_trip_counts),
    ("matrix instructions", _matrix_instructions),
)


# Of these loops, and then of those that run more than the statements have, which are printed.
COMPLETING_PASSES: Final[Passes[LoopTree, GpuOptions, GpuMachine]] = (("complete tiles", _complete_tiles),)


LAST_GRID_LOOP_PASSES: Final[Passes[LoopTree, GpuOptions, GpuMachine]] = (
    ("separate counts", _separate_counts),
    ("separate stages", _separate_stages),
    ("join kernels", _join_kernels),
    ("stream tiles", _stream_tiles),
)
