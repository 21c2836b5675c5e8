"""Proofs of what single passes make, between the first and the last one."""

from __future__ import annotations

import islpy as isl

from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.execution.loop_execution import loop_execution
from tc.polyhedral.execution.tree_execution import member_values, tree_execution
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.ir.loops import LoopTree
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import ScheduleTree
from tc.polyhedral.proof.demands import Demands
from tc.polyhedral.proof.verify import prove
from tc.targets.machine import GpuMachine, Machine


def prove_tree_after(name: str, tree: ScheduleTree, scop: Scop, machine: Machine) -> None:
    """VerificationError if the tree that the pass made is wrong.

    Barriers are placed by the last pass for GPUs.  What an earlier one made is proven with those that it needs.
    """
    if isinstance(machine, GpuMachine) and not scop.barriers:
        tree, scop = place_barriers(tree, scop)
    prove(scop, tree_execution(tree, scop.context, scop.barrier_names), f"schedule after {name}")


def prove_loops_after(name: str, root: LoopTree, tree: ScheduleTree, scop: Scop, demands: Demands) -> None:
    """VerificationError if the loops that the pass made of those of the tree are wrong; ``demands``: of the scop."""
    prove(scop, execution_of(root, tree, scop), f"code after {name}", demands)


def execution_of(root: LoopTree, tree: ScheduleTree, scop: Scop) -> Execution:
    """How loops that were generated for the tree run its statements."""
    dimensions = {s.name: s.domain.dim(isl.dim_type.set) for s in scop.statements}
    dimensions |= {barrier.get_tuple_name(): barrier.dim(isl.dim_type.set) for barrier in scop.barriers}
    return loop_execution(root, dimensions, scop.context, scop.sizes, lambda name: member_values(tree, name))
