"""What the pipeline is run with: the options asked for, and what is changed of them where it cannot make loops of them.

Whether loops can be taken shows only once they are there (``tc.polyhedral.generate.obstacles``).  What is then tried
next, and why, is decided here alone, and returned as values.  Limits are lowered and what was left open is chosen; what
was asked for exactly is never changed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final, assert_never

from tc.base.decision import Decision
from tc.base.errors import OptionsError
from tc.base.frozen import frozen
from tc.language.program.specialization import Specialization
from tc.language.program.terms import matrix_factors
from tc.polyhedral.cpu.part_sums import PARTS, part_sums
from tc.polyhedral.cpu.row_blocks import row_blocks
from tc.polyhedral.generate.obstacles import (
    DivergentSteps,
    InBuffers,
    LongSums,
    MissingInstances,
    NoChain,
    NoGroups,
    NoMatrices,
    Obstacle,
)
from tc.polyhedral.gpu.mapping.chain_plan import with_chain
from tc.polyhedral.gpu.mapping.reread_rows import reread_bytes
from tc.polyhedral.gpu.mapping.split_plan import Group, Plan, plan_split
from tc.polyhedral.gpu.tensor.groups import has_groups, has_large_product, has_wide_product
from tc.polyhedral.schedule.counted import with_counts
from tc.polyhedral.schedule.scan import Scanning
from tc.polyhedral.schedule.scatter_plan import Owners, Sharers, plan_scatters
from tc.targets.machine import CpuMachine, GpuMachine, Machine
from tc.targets.options import CpuOptions, Fusion, GpuOptions, Options, TensorCores
from tc.targets.resolve import known, resolved


@frozen
class Attempt:
    """One run of the pipeline.

    ``asked``: the options that were asked for.  ``plan``: how reductions are split, and which are accumulated in
    float64.  ``whole_sums``: loops over sums of iterators are not divided among blocks, threads or tiles.
    ``decisions``: what differs from what was asked for, at most one for each option.
    """

    asked: Options
    options: Options
    plan: Plan
    whole_sums: bool = False
    decisions: tuple[Decision, ...] = ()


def first_attempt(specialization: Specialization, options: Options, machine: Machine) -> Attempt:
    """With the options as they were asked for, but for what the machine has not, and with products in one kernel."""
    attempt = _unchained(specialization, options, machine)
    match attempt.options, machine:
        case GpuOptions() as own, GpuMachine():
            plan, needed = with_chain(attempt.plan, specialization, own, machine)
            if plan.chain is None or needed <= known(own.shared_memory):
                return replace(attempt, plan=plan)
            room = _room_for(attempt.decisions, needed, machine)
            return attempt if room is None else replace(attempt, plan=plan, options=_taking(own, room), decisions=room)
        case _:
            return attempt


def _room_for(decisions: tuple[Decision, ...], needed: int, machine: GpuMachine) -> tuple[Decision, ...] | None:
    """The decisions with so much shared memory; None where the machine has less, or it was said how much to take."""
    if needed > machine.most_shared or all(own.option != "shared_memory" for own in decisions):
        return None
    reason = f"the tiles of two products in one kernel take {needed} bytes"
    return tuple(
        replace(own, taken=needed, reason=reason) if own.option == "shared_memory" else own for own in decisions
    )


def _unchained(specialization: Specialization, options: Options, machine: Machine) -> Attempt:
    match options, machine:
        case GpuOptions(), GpuMachine():
            statements = specialization.program.statements
            rounded = options.numerics.products
            products = any(own.reduction and matrix_factors(own.value, rounded) for own in statements)
            matrices = options.tensor_cores is not TensorCores.NONE and bool(machine.matrix_shapes) and products
            decided = resolved(options, machine, matrices=matrices)
            large = _large_tiles(specialization, options, machine) if matrices else None
            decisions = tuple(_with_room(own, specialization, machine, large) for own in decided)
        case _:
            decisions = ()
    taken = _taking(options, decisions)
    return Attempt(options, taken, plan_of(specialization, taken, machine), decisions=decisions)


# What a block shares beside a row: the partial results of its threads.
_BESIDE_ROWS: Final = 8 << 10


def _large_tiles(specialization: Specialization, options: GpuOptions, machine: GpuMachine) -> str | None:
    """Why a block has all of the shared memory for its product; None where it has none of this kind."""
    if has_groups(options, machine) and has_large_product(specialization, machine):
        return "tiles of groups of four warps are large"
    wide = has_wide_product(specialization, machine)
    return "tiles of 128 by 256 results of single warps are large" if wide else None


def _with_room(decision: Decision, specialization: Specialization, machine: GpuMachine, large: str | None) -> Decision:
    """The decision; on shared memory, with room for a row that is read again where that takes a multiprocessor.

    So has a tile of a product, one block at a time, where something says that it is ``large``.
    """
    if decision.option != "shared_memory":
        return decision
    if large is not None:
        return replace(decision, taken=machine.most_shared, reason=large)
    row = reread_bytes(specialization)
    if not machine.block_shared < row + _BESIDE_ROWS <= machine.most_shared:
        return decision
    return replace(decision, taken=machine.most_shared, reason=f"a row of {row} bytes is read again")


def next_attempt(specialization: Specialization, machine: Machine, attempt: Attempt, obstacle: Obstacle) -> Attempt:
    """What to try after an attempt that met an obstacle.

    It has no matrix instructions, no scans, fewer buffers, or more sums that are whole or in float64, so that attempts
    come to an end.
    """
    if attempt.plan.chain is not None:
        first = _unchained(specialization, attempt.asked, machine)
        return replace(first, decisions=(*first.decisions, _NO_CHAIN))
    no_groups, no_matrices = (_lowered(own, attempt.asked) for own in (_NO_GROUPS, _NO_MATRICES))
    given_up = tuple(own for own in attempt.decisions if own in (_NO_CHAIN, no_groups, no_matrices))
    match obstacle:
        case NoChain():
            raise AssertionError("there is a chain")
        case NoGroups():
            first = _unchained(specialization, _by_warps(attempt.asked), machine)
            return replace(first, asked=attempt.asked, decisions=(*first.decisions, *given_up, no_groups))
        case NoMatrices():
            # Buffers that were given up before may be had again.
            first = _unchained(specialization, _scalar(attempt.asked), machine)
            others = tuple(own for own in given_up if own != no_groups)
            return replace(first, asked=attempt.asked, decisions=(*first.decisions, *others, no_matrices))
        case InBuffers():
            decisions = _without_buffers(attempt, obstacle, specialization.program.name)
            options = _taking(attempt.options, decisions)
            plan = plan_of(specialization, options, machine, attempt.plan.wide)
            # Of what was lowered, it no longer matters what it was lowered from.
            kept = (own for own in attempt.decisions if own.option not in {found.option for found in decisions})
            return replace(attempt, options=options, plan=plan, decisions=(*kept, *decisions))
        case DivergentSteps():
            # Shared memory, which was given up before, may be had again.
            first = _unchained(specialization, attempt.asked, machine)
            options = replace(first.options, schedule=replace(first.options.schedule, scans=False))
            if no_matrices in given_up or no_groups in given_up:
                options = _scalar(options) if no_matrices in given_up else _by_warps(options)
            plan = plan_of(specialization, options, machine)
            return replace(first, options=options, plan=plan, decisions=(*first.decisions, *given_up, _NO_SCANS))
        case MissingInstances():
            return replace(attempt, whole_sums=True, decisions=(*attempt.decisions, _WHOLE_SUMS))
        case LongSums(statements):
            decisions = tuple(map(_in_float64, sorted(statements)))
            plan = plan_of(specialization, attempt.options, machine, attempt.plan.wide | statements)
            return replace(attempt, plan=plan, decisions=attempt.decisions + decisions)
        case _:
            assert_never(obstacle)


def plan_of(
    specialization: Specialization, options: Options, machine: Machine, wide: frozenset[str] = frozenset()
) -> Plan:
    """Which reductions are scans, and which of the others are split; ``wide``: which are accumulated in float64."""
    match options, machine:
        case GpuOptions(), GpuMachine():
            plan = plan_split(specialization, options, machine)
            # Explicit sizes of tiles are those of the loops of the program.
            joins = options.schedule.tile is None and options.schedule.fusion is not Fusion.MINIMAL
            plan = replace(plan, rereads=2 * machine.block_threads if joins else 0)
            owners = Owners(machine.enough_blocks, machine.enough_blocks * machine.block_threads)
            sharers = Sharers(owners, _PARTS_OF_GPUS, machine.atomic_bytes, options.numerics.deterministic, wide)
        case CpuOptions(), CpuMachine():
            # Explicit sizes of tiles are those of the loops of the program.
            joins = options.schedule.tile is None and options.schedule.fusion is not Fusion.MINIMAL
            blocks = row_blocks(specialization) if joins else {}
            parts = {PARTS: few} if joins and (few := part_sums(specialization)) else {}
            together = (*blocks.items(), *parts.items())
            groups = tuple(Group(blocks=count, among=names) for count, names in together)
            transposes = options.packed_operands > 0
            joins = joins and options.register_tile is None and options.vector_axis is None
            plan = Plan(groups, transposes=transposes, pulls=True, joins=joins, hoists=joins, dots=machine.dots)
            cores = options.threads or machine.cores
            # Processors mispredict which elements are an owner's: of single elements, that costs more than it gains.
            sharers = Sharers(Owners(cores, 1), _PARTS)
        case _:
            raise AssertionError("the options are those of the machine")
    counted = with_counts(specialization) if options.check_indices else specialization
    shares = plan_scatters(counted, options.schedule, sharers)
    scans = _scanning(machine) if options.schedule.scans else None
    return replace(
        plan,
        wide=wide,
        scans=scans,
        recurrences=_parting(machine) if options.numerics.reassociate else None,
        shares=shares,
        counts=options.check_indices,
        deterministic=options.numerics.deterministic,
    )


# Rows that do not keep the cores of most machines busy: whatever this one has, it computes the same bits.
_ROWS_OF_CORES: Final = 4
# Steps of a scan in one block, and how many of them are worth a second pass over what is scanned.
_STEPS_OF_CORES: Final = 4096
_WORTH_CORES: Final = 1 << 17
_STEPS_OF_THREADS: Final = 64
_WORTH_THREADS: Final = 256


def _scanning(machine: Machine) -> Scanning:
    """In blocks where there are fewer rows than can be scanned at a time."""
    match machine:
        case CpuMachine():
            return Scanning(_ROWS_OF_CORES, _STEPS_OF_CORES, _WORTH_CORES)
        case GpuMachine():
            return Scanning(machine.enough_blocks * machine.block_threads, _STEPS_OF_THREADS, _WORTH_THREADS)
        case _:
            assert_never(machine)


def _parting(machine: Machine) -> Scanning:
    """Which linear recurrences are in parts: processors have something to do between the steps of two rows."""
    scanning = _scanning(machine)
    return replace(scanning, rows=2) if isinstance(machine, CpuMachine) else scanning


# The most partial results of scatters: enough for the cores of most machines, and for the threads of a GPU.
_PARTS: Final = 64
_PARTS_OF_GPUS: Final = 1 << 14


# What buffers of each kind are limited by, on the way to none.
_OF_PROCESSORS: Final = ("register_accumulators", "packed_operands", "local_temporaries", "nontemporal_stores")
_OF_GPUS: Final = ("register_accumulators", "shared_memory", "register_operands", "shuffles")


def _without_buffers(attempt: Attempt, obstacle: InBuffers, name: str) -> tuple[Decision, ...]:
    """The limits under which there are no such buffers; OptionsError where shuffles were asked for, which is no limit.

    ``name``: of the program.
    """
    options = attempt.options
    names: tuple[str, ...]
    match obstacle:
        case InBuffers.NOT_AFFINE:
            names = _OF_PROCESSORS if isinstance(options, CpuOptions) else _OF_GPUS
        case InBuffers.MOVING_ARRAYS:
            # Results are worth more than operands.
            names = (
                ("register_operands",)
                if isinstance(options, GpuOptions) and options.register_operands
                else ("register_accumulators",)
            )
        case InBuffers.DIVERGENT_BARRIERS | InBuffers.MISSING_COPIES:
            names = ("shared_memory",)
        case _:
            assert_never(obstacle)
    if "shuffles" in names and isinstance(attempt.asked, GpuOptions) and attempt.asked.shuffles:
        raise OptionsError(
            f"shuffles=True cannot be had for {name}: {obstacle.value}; leave shuffles out, or choose other tiles"
        )
    lowered = ((name, getattr(options, name)) for name in names)
    found = tuple(
        Decision(name, getattr(attempt.asked, name), type(value)(), obstacle.value) for name, value in lowered if value
    )
    assert found, f"{obstacle} without buffers"
    return found


def _by_warps(options: Options) -> Options:
    """Options without matrix instructions of groups of warps."""
    return replace(options, tensor_cores=TensorCores.WARPS) if isinstance(options, GpuOptions) else options


def _scalar(options: Options) -> Options:
    """Options without matrix instructions."""
    return replace(options, tensor_cores=TensorCores.NONE) if isinstance(options, GpuOptions) else options


_NO_CHAIN: Final = Decision(
    "products in a row",
    "in one kernel",
    "in kernels of their own",
    "warps would not have the sums of one where the other needs them",
)
_NO_GROUPS: Final = Decision(
    "tensor_cores",
    TensorCores.STREAMS,
    TensorCores.WARPS,
    "no four warps would run whole blocks of a product whose factors lie as they read them",
)


_NO_MATRICES: Final = Decision(
    "tensor_cores",
    TensorCores.STREAMS,
    TensorCores.NONE,
    "the lanes of no warp would run whole blocks of its products together",
)
_NO_SCANS: Final = Decision(
    "scans", True, False, "threads of a block would meet the barriers between its steps unequally often"
)
_WHOLE_SUMS: Final = Decision(
    "loops over sums of iterators",
    "divided",
    "whole",
    "isl's loops over quotients of sums of iterators would leave iterations out",
)


def _lowered(decision: Decision, asked: Options) -> Decision:
    """The decision about matrix instructions, from whatever was asked for."""
    return replace(decision, asked=asked.tensor_cores) if isinstance(asked, GpuOptions) else decision


def _in_float64(statement: str) -> Decision:
    reason = f"{statement} adds up too many terms in float32, into more elements than can have totals beside them"
    return Decision("accumulator", "float32", "float64", reason)


def _taking(options: Options, decisions: tuple[Decision, ...]) -> Options:
    changes: dict[str, Any] = {decision.option: decision.taken for decision in decisions}
    return replace(options, **changes)
