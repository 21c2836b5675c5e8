"""The proof that guards may stand between barriers instead of around them."""

from __future__ import annotations

from tc.base.errors import VerificationError
from tc.language.isl.session import isl_context
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, loop_paths
from tc.polyhedral.ir.loops import Allocation, Barrier, IndexLiteral, Loop, LoopProgram, LoopTree


def prove_sunk_guards(program: LoopProgram, root: LoopTree) -> None:
    """VerificationError unless ``root`` runs, in the same loops and order, what the program runs.

    Barriers alone may run where they did not, and then without any condition: in all threads of all blocks.
    """
    before, after = list(loop_paths(program.root, ())), list(loop_paths(root, ()))
    if [leaf for leaf, _ in before] != [leaf for leaf, _ in after]:
        raise VerificationError("guards are not proven to be moved rightly: other statements run")
    with isl_context() as context:
        for (leaf, path), (_, moved) in zip(before, after, strict=True):
            old, new = ([(s.iterator, s.kind, s.step) for s in steps if isinstance(s, Loop)] for steps in (path, moved))
            wanted, found = (
                follow_path(steps, frame_of_path(steps, context, program.sizes)).points for steps in (path, moved)
            )
            same = wanted.is_equal(found)
            if isinstance(leaf, Barrier) and all(map(_is_unconditional, moved)):
                same = wanted.is_subset(found)
            if old != new or not same:
                raise VerificationError(f"guards are not proven to be moved rightly: those around {leaf.statement}")


def _is_unconditional(step: Step) -> bool:
    """Whether all threads that are launched go on; loops that are no blocks or threads are the same for all of them."""
    match step:
        case Loop(kind=kind, lower=lower, upper=upper):
            return not kind.is_mapped or (lower == IndexLiteral(0) and isinstance(upper, IndexLiteral))
        case Allocation() | int():
            return True
        case _:
            return False
