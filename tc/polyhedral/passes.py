"""What passes are, and those of processors and of GPUs alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias, TypeVar

from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.generate.constant_unroll_bounds import constant_unroll_bounds
from tc.polyhedral.generate.localize import localize_loops
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.separate.separate_tiles import separate_tiles
from tc.polyhedral.transform.phases import MOST_PHASES
from tc.targets.machine import CpuMachine, GpuMachine, Machine
from tc.targets.options import CpuOptions, GpuOptions, Options

Tree = TypeVar("Tree", ScheduleTree, LoopTree)
ChosenOptions = TypeVar("ChosenOptions", CpuOptions, GpuOptions)
ChosenMachine = TypeVar("ChosenMachine", CpuMachine, GpuMachine)

# From a tree and the statements in it to others, of schedules or of loops: promotion adds statements.  It is told the
# options, none of which are open that ``resolved`` knows, and the machine.
Pass: TypeAlias = Callable[[Tree, Scop, ChosenOptions, ChosenMachine], tuple[Tree, Scop]]
# A list of them, by name.
Passes: TypeAlias = tuple[tuple[str, Pass[Tree, ChosenOptions, ChosenMachine]], ...]

State: TypeAlias = tuple[ScheduleTree, Scop]
Loops: TypeAlias = tuple[LoopTree, Scop]


def localize(root: LoopTree, scop: Scop, _options: Options, _machine: Machine) -> Loops:
    """The loops with subscripts of buffers in terms of the loops around them (``localize_loops``)."""
    return localize_loops(root, scop), scop


def in_separate_tiles(root: LoopTree, scop: Scop, _options: Options, _machine: Machine) -> Loops:
    """The loops with full tiles apart from partial ones (``separate_tiles``)."""
    packing = frozenset(own.loads for own in scop.promotions if own.loads is not None and not own.registers)
    return separate_tiles(root, scop.context, scop.sizes, packing), scop


def with_constant_unroll_bounds(root: LoopTree, scop: Scop, options: Options, _machine: Machine) -> Loops:
    """The loops with constant bounds where they will be unrolled (``constant_unroll_bounds``)."""
    # Loops in phases are unrolled, whatever the option says.
    most = max(options.schedule.unroll, MOST_PHASES)
    return constant_unroll_bounds(root, size_ranges(scop.sizes), most), scop


def run_passes(
    passes: Passes[Tree, ChosenOptions, ChosenMachine],
    tree: Tree,
    scop: Scop,
    options: ChosenOptions,
    machine: ChosenMachine,
) -> Iterator[tuple[str, Tree, Scop]]:
    """What every pass made, by name."""
    for name, run in passes:
        tree, scop = run(tree, scop, options, machine)
        yield name, tree, scop
