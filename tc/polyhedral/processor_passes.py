"""What is done to a schedule and to the loops of it for a processor, in which order: literal lists."""

from __future__ import annotations

from typing import Final

from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.cpu.chunk_steps import chunk_steps
from tc.polyhedral.cpu.defaults import default_sizes
from tc.polyhedral.cpu.distribute_products import distribute_products
from tc.polyhedral.cpu.parallelize import parallelize_tree
from tc.polyhedral.cpu.promote import Room, promote_tree
from tc.polyhedral.cpu.register_tile import default_tile, explicit_tile, register_tile_tree
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.passes import Loops, Passes, State, in_separate_tiles, localize, with_constant_unroll_bounds
from tc.polyhedral.prefetch.prefetch_blocks import prefetch_blocks
from tc.polyhedral.prefetch.prefetch_copies import prefetch_copies
from tc.polyhedral.prefetch.prefetch_fills import prefetch_fills, strip_fills
from tc.polyhedral.prefetch.prefetch_gathers import prefetch_gathers
from tc.polyhedral.prefetch.prefetch_panels import prefetch_panels
from tc.polyhedral.prefetch.prefetch_pieces import prefetch_pieces
from tc.polyhedral.prefetch.prefetch_stores import prefetch_stores
from tc.polyhedral.prefetch.stream_fills import stream_fills
from tc.polyhedral.separate.guard_tiles import guard_tiles
from tc.polyhedral.separate.separate_borders import separate_borders
from tc.polyhedral.separate.unroll_borders import unroll_borders
from tc.polyhedral.transform.stream import collected_results, streamed_results
from tc.polyhedral.transform.tile import ChooseCuts, explicit_sizes, tile_tree
from tc.polyhedral.transform.unroll import unroll_tree
from tc.polyhedral.transform.vectorize import vectorize_tree
from tc.targets.machine import CpuMachine
from tc.targets.options import CpuOptions, Fusion


def _register_tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> State:
    sizes = options.register_tile
    if sizes is None:
        choose = default_tile(scop, machine.vectors, packs=options.packed_operands > 0)
    else:
        choose = explicit_tile(scop, sizes, options.vector_axis)
    tiles = options.schedule.tile or ()
    return register_tile_tree(tree, scop, choose, lanes=options.vectorize, tiles=tiles), scop


def _distribute_products(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> State:
    together = options.schedule.fusion is Fusion.MAXIMAL
    return (tree if together else distribute_products(tree, scop)), scop


def _chunk_steps(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> State:
    return chunk_steps(tree, scop, options.threads or machine.cores), scop


def _tile(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> State:
    return tile_tree(tree, panels_of(options, scop)), scop


def panels_of(options: CpuOptions, scop: Scop) -> ChooseCuts:
    """Where loops of a processor are tiled: as the options say, or by default."""
    sizes = options.schedule.tile
    return default_sizes(scop, packs=options.packed_operands > 0) if sizes is None else explicit_sizes(sizes)


def _vectorize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> State:
    streamed = _collected_by(scop, options, machine)
    return vectorize_tree(tree, scop, machine.vectors.bytes, mark=options.vectorize, streamed=streamed), scop


def _parallelize(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> State:
    join = options.schedule.fusion is not Fusion.MINIMAL
    return parallelize_tree(tree, scop, options.threads or machine.cores, options.packed_operands, join=join), scop


def _promote(tree: ScheduleTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> State:
    streamed = _collected_by(scop, options, machine)
    room = Room(
        options.register_accumulators,
        options.packed_operands,
        options.local_temporaries,
        lanes=options.vectorize,
        streamed=streamed,
        registers=machine.vectors.registers,
    )
    return promote_tree(tree, scop, room)


def _collected_by(scop: Scop, options: CpuOptions, machine: CpuMachine) -> frozenset[str]:
    """Results that go to buffers first, and from there past the caches."""
    if not machine.streams:
        return frozenset()
    least = options.nontemporal_stores
    return streamed_results(scop, least) | collected_results(scop, least)


def streamed_by(scop: Scop, options: CpuOptions, machine: CpuMachine) -> frozenset[str]:
    """Results that are stored with non-temporal stores."""
    return streamed_results(scop, options.nontemporal_stores) if machine.streams else frozenset()


def _unroll(tree: ScheduleTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> State:
    return unroll_tree(tree, options.schedule.unroll), scop


# The passes before loops are tiled.
REGISTER_TILE: Final = "register tile"


PASSES: Final[Passes[ScheduleTree, CpuOptions, CpuMachine]] = (
    ("distribute products", _distribute_products),
    ("chunk steps", _chunk_steps),
    (REGISTER_TILE, _register_tile),
    ("tile", _tile),
    ("vectorize", _vectorize),
    ("parallelize", _parallelize),
    ("promote", _promote),
    ("unroll", _unroll),
)


def _separate_borders(root: LoopTree, scop: Scop, _options: CpuOptions, _machine: CpuMachine) -> Loops:
    return separate_borders(root, scop.bodies, size_ranges(scop.sizes)), scop


def _unroll_borders(root: LoopTree, scop: Scop, _options: CpuOptions, _machine: CpuMachine) -> Loops:
    return unroll_borders(root, size_ranges(scop.sizes)), scop


def _guard_tiles(root: LoopTree, scop: Scop, _options: CpuOptions, _machine: CpuMachine) -> Loops:
    return guard_tiles(root, scop.context, scop.sizes), scop


def _stream_fills(root: LoopTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> Loops:
    least = options.nontemporal_stores if machine.streams else 0
    return stream_fills(root, (*scop.buffers, *scop.temporaries), scop.bodies, least, scop.sizes), scop


def _strip_fills(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return (strip_fills(root, scop.buffers, scop.bodies, scop.sizes) if options.block_prefetch else root), scop


# Of the loops that isl generates for the tree.
LOOP_PASSES: Final[Passes[LoopTree, CpuOptions, CpuMachine]] = (
    ("localize", localize),
    ("separate tiles", in_separate_tiles),
    ("constant unroll bounds", with_constant_unroll_bounds),
    ("unroll borders", _unroll_borders),
    ("guard tiles", _guard_tiles),
    ("separate borders", _separate_borders),
    ("stream fills", _stream_fills),
    ("strip fills", _strip_fills),
)


def _prefetch_gathers(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return prefetch_gathers(root, scop.bodies, options.gather_prefetch), scop


def _prefetch_blocks(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return prefetch_blocks(root, scop.buffers, scop.bodies, options.block_prefetch), scop


def _prefetch_stores(root: LoopTree, scop: Scop, options: CpuOptions, machine: CpuMachine) -> Loops:
    if not options.block_prefetch:
        return root, scop
    streamed = streamed_by(scop, options, machine)
    return prefetch_stores(root, (*scop.buffers, *scop.temporaries), scop.bodies, streamed, scop.sizes), scop


def _prefetch_fills(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return (prefetch_fills(root, scop.buffers, scop.bodies, scop.sizes) if options.block_prefetch else root), scop


def _prefetch_copies(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return (prefetch_copies(root, scop.buffers, scop.bodies, scop.sizes) if options.block_prefetch else root), scop


def _prefetch_panels(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return (prefetch_panels(root, scop.promotions, scop.bodies) if options.block_prefetch else root), scop


def _prefetch_pieces(root: LoopTree, scop: Scop, options: CpuOptions, _machine: CpuMachine) -> Loops:
    return (prefetch_pieces(root, scop.buffers, scop.bodies, scop.sizes) if options.block_prefetch else root), scop


# Of the loops once they are unrolled.
PREFETCH_PASSES: Final[Passes[LoopTree, CpuOptions, CpuMachine]] = (
    ("prefetch gathers", _prefetch_gathers),
    ("prefetch blocks", _prefetch_blocks),
    ("prefetch stores", _prefetch_stores),
    ("prefetch fills", _prefetch_fills),
    ("prefetch copies", _prefetch_copies),
    ("prefetch panels", _prefetch_panels),
    ("prefetch pieces", _prefetch_pieces),
)
