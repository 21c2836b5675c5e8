"""Whether products share a kernel, and how the reductions between them are dealt to lanes then."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tc.language.program.specialization import Specialization
from tc.polyhedral.gpu.mapping.chains import find_chain
from tc.polyhedral.gpu.mapping.split_plan import Group, Plan
from tc.polyhedral.ir.chained import AT_A_TIME, KEYS, QUADS, ROWS, Chain, Part
from tc.targets.machine import GpuMachine
from tc.targets.options import Fusion, GpuOptions, TensorCores
from tc.targets.resolve import known

# Elements that a thread must be able to keep of a product: those of the largest tile of a block's rows.
_KEPT: Final = 64
# Elements of a row that keep rows of halves in different banks.
_PADDING: Final = 8


def with_chain(
    plan: Plan, specialization: Specialization, options: GpuOptions, machine: GpuMachine
) -> tuple[Plan, int]:
    """The plan with the chain of a program, and bytes that it takes of shared memory.

    The plan as it is, and 0, where there is none, or options say how it is mapped.
    """
    sizes = (options.schedule.tile, options.grid, options.block, options.split_k_threads, options.split_k_blocks)
    if any(own is not None for own in sizes) or options.schedule.fusion is not Fusion.PRESERVE_PARALLEL:
        return plan, 0
    if options.tensor_cores is TensorCores.NONE or known(options.register_accumulators) < _KEPT:
        return plan, 0
    if not known(options.shared_memory) or not machine.matrix_shapes:
        return plan, 0
    found = find_chain(specialization, machine.matrix_shapes)
    if found is None:
        return plan, 0
    chain, again = found
    names = {link.statement for link in chain.links}
    kept = [_without(own, names, specialization) for own in plan.groups]
    rows = Group((QUADS,), among=chain.reductions, pairs=True)
    groups = (*(own for own in kept if own is not None), *((rows,) if chain.reductions else ()))
    return replace(plan, groups=groups, rereads=0, chain=chain, again=again), needed_bytes(chain)


def needed_bytes(chain: Chain) -> int:
    """What a block shares: the operands of both products, each time; the left one of the second; and totals of rows."""
    scores = sum(link.part is Part.SCORES for link in chain.links)
    steps, columns = (_padded(min(AT_A_TIME, chain.steps)), _padded(chain.columns))
    between = ROWS * _padded(KEYS)
    rows = 2 * (QUADS + 1) * ROWS * sum(link.part in (Part.REDUCTION, Part.ROW) for link in chain.links)
    return 2 * (scores * (ROWS + KEYS) * steps + KEYS * columns + between + rows)


def _padded(row: int) -> int:
    """Elements of a row, with those that keep rows in different banks."""
    return row + _PADDING


def _without(group: Group, names: set[str], specialization: Specialization) -> Group | None:
    """The group without these statements; None where nothing is left of it."""
    every = frozenset(own.name for own in specialization.program.statements)
    left = (every if group.among is None else group.among) - names
    return replace(group, among=left) if left else None
