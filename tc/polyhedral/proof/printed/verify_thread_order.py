"""Proof that threads in another order run all iterations of the loops over them, and each of them once.

What is proven of a block is so for any numbers that its threads have, but where they exchange what is in registers:
then it matters who is in which warp.
"""

from __future__ import annotations

import math
from itertools import product

from tc.base.errors import VerificationError
from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.launch_order import LaunchOrder
from tc.polyhedral.ir.loops import Allocation, Loop, LoopKind, LoopTree, Sharing


def prove_thread_order(nest: LoopTree, block: tuple[int, ...], order: LaunchOrder) -> None:
    """VerificationError where threads of a block of this size cannot have this order; the last loop is x."""
    found = find_misplaced_thread(nest, block, order)
    if found is not None:
        raise VerificationError(f"the order of threads is not proven correct: {found}")


def find_misplaced_thread(nest: LoopTree, block: tuple[int, ...], order: LaunchOrder) -> Counterexample | None:
    """An iteration that no thread has, or what exchanges values between lanes; None if all is well."""
    for leaf, path in loop_paths(nest, ()):
        for step in path:
            lanes = isinstance(step, Loop) and step.kind is LoopKind.LANES
            if lanes or (isinstance(step, Allocation) and step.buffer.sharing is Sharing.LANES):
                return Counterexample(Violation.ALONE, leaf.statement)
    found = {order.iterations(number) for number in range(math.prod(block))}
    missing = set(product(*map(range, block))) - found
    # There are as many numbers as iterations: where none is missing, none is there twice, and no other one.
    return Counterexample(Violation.UNLAUNCHED, f"thread {min(missing)}") if missing else None
