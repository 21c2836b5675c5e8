"""Proof of the leaves of loops: each is printed as what the proofs take it for.

The other proofs know barriers by their names.  Here it is shown that what has the name of a barrier is one, and that
copies are asynchronous, and barriers wait for them, as ``tc.polyhedral.proof.verify_rotation`` supposes.
"""

from __future__ import annotations

from tc.polyhedral.execution.execution import Execution
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import Barrier, Copy
from tc.polyhedral.ir.scop import Scop


def check_leaves(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first leaf that is something else than the scop has by this name, or that is not waited for."""
    names = scop.barrier_names
    for node in execution.nodes:
        if isinstance(node, Barrier) != (node.statement in names):
            return Counterexample(Violation.WRONG_NODE, node.statement)
        if isinstance(node, Barrier) and not _waits(scop, node):
            return Counterexample(Violation.NOT_AWAITED, node.statement)
        if isinstance(node, Copy) and not _is_awaited(scop, node):
            return Counterexample(Violation.NOT_AWAITED, node.statement)
    return None


def _is_awaited(scop: Scop, copy: Copy) -> bool:
    """Whether the copy is synchronous, or proven to have arrived behind the barrier of its group."""
    awaited = scop.awaits.get(copy.statement)
    return copy.group is None or (awaited is not None and awaited.barrier == copy.group)


def _waits(scop: Scop, barrier: Barrier) -> bool:
    """Whether it commits a group where there are asynchronous copies, and waits for all that are complete behind it."""
    if not scop.awaits:
        return True
    most = [awaited.pending for awaited in scop.awaits.values() if awaited.barrier == barrier.statement]
    return barrier.pending is not None and all(barrier.pending <= own for own in most)
