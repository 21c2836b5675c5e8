"""Proof of loops over ranges that read tensors: what they leave out does nothing.

For every loop with ranges and every instance inside: the instance has one of the ranges, whose bounds do not change
while the loop runs, and its index lies between the ends that the loop takes it to have.  The bounds are read before the
loop, and wherever it begins there is such an instance, which would read them.  Where instances do not ask whether they
are inside, the loop runs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping

import islpy as isl

from tc.base.errors import VerificationError
from tc.base.frozen import frozen
from tc.language.isl.affine import Frame
from tc.language.isl.session import isl_context
from tc.language.program.program import InRange, Read, iterators_in, walk
from tc.language.program.specialization import Sizes
from tc.polyhedral.analysis.index_functions import index_condition
from tc.polyhedral.analysis.offsets import subscript_form
from tc.polyhedral.analysis.reads import data_ranges
from tc.polyhedral.execution.barriers import Step
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, loop_paths
from tc.polyhedral.ir.loops import (
    IndexExpression,
    IndexLiteral,
    IndexOperation,
    IndexOperator,
    IndexVariable,
    Instance,
    Loop,
    LoopProgram,
    LoopTree,
    ReadRange,
    Scheduled,
    StatementBody,
    variables,
)


def prove_ranges(program: LoopProgram) -> None:
    """VerificationError where a loop with ranges leaves out an instance that does something."""
    if not any(data_ranges(body) for body in program.bodies):
        return
    with isl_context() as context:
        _Proof({body.name: body for body in program.bodies}, context, program.sizes).prove(program.root)


@frozen
class _Proof:
    bodies: Mapping[str, StatementBody]
    context: isl.Context
    sizes: Sizes

    def prove(self, root: LoopTree) -> None:
        for leaf, path in loop_paths(root, ()):
            loops = tuple(step for step in path if isinstance(step, Loop))
            ranged = [position for position, loop in enumerate(loops) if loop.ranges]
            if ranged:
                frame = frame_of_path(path, self.context, self.sizes)
                points = follow_path(path, frame).points
                for position in ranged:
                    self.prove_loop(leaf, loops[position:], points, frame)
                    begun = self.beginnings(path, loops[position])
                    reached = points.project_out(isl.dim_type.set, position, len(loops) - position)
                    if not begun.is_subset(reached.reset_tuple_id()):
                        raise _refused(f"the bounds of {leaf.statement} are read where it may have no instance")
            for inside in leaf.holds if isinstance(leaf, Instance) else ():
                if not any(_is_exact(loop, leaf, inside) for loop in loops):
                    raise _refused(f"{leaf.statement} does not ask whether it is inside of its range")

    def beginnings(self, path: tuple[Step, ...], loop: Loop) -> isl.Set:
        """Where the loop begins: the iterations of the loops around it."""
        around = path[: next(n for n, step in enumerate(path) if step is loop)]
        own = frame_of_path(around, self.context, self.sizes)
        return follow_path(around, own).points.reset_tuple_id()

    def prove_loop(self, leaf: Scheduled, loops: tuple[Loop, ...], points: isl.Set, frame: Frame) -> None:
        """The first of the loops around the leaf that are given is one with ranges."""
        loop = loops[0]
        changing = {own.iterator for own in loops}
        if not any(self.fits(own, leaf, loop, changing, points, frame) for own in loop.ranges):
            raise _refused(f"{leaf.statement} is left out where it may do something")
        written = {self.bodies[own.statement].target for own, _ in loop_paths(loop, ())}
        if written & {tensor for own in loop.ranges for tensor in _read(own)}:
            raise _refused(f"the bounds of {leaf.statement} change while the loop runs")

    def fits(
        self, own: ReadRange, leaf: Scheduled, loop: Loop, changing: set[str], points: isl.Set, frame: Frame
    ) -> bool:
        """Whether the range is one of the leaf's, known before the loop, and the loop takes its index rightly."""
        if own.statement != leaf.statement or not isinstance(leaf, Instance) or own.factor < 1:
            return False
        body = self.bodies[leaf.statement]
        if own.inside not in data_ranges(body):
            return False
        values = dict(zip(body.iterators, leaf.arguments, strict=True))
        told = dict(zip(body.iterators, own.arguments, strict=True))
        asked = iterators_in((own.inside.begin, own.inside.end))
        if any(told[name] != values[name] or variables(values[name]) & changing for name in asked):
            return False
        if (variables(own.low) | variables(own.high)) & changing:
            return False
        form = subscript_form(own.inside.index, values)
        if form is None:
            return False
        index = form.expression()
        moved = IndexOperation(IndexOperator.MULTIPLY, (IndexLiteral(own.factor), IndexVariable(loop.iterator)))
        ends = ((_plus(moved, own.low), index), (index, _plus(moved, own.high)))
        ordered = (IndexOperation(IndexOperator.LESS_EQUAL, sides) for sides in ends)
        return all(points.is_subset(index_condition(condition, frame)) for condition in ordered)


def _refused(reason: str) -> VerificationError:
    return VerificationError(f"the loops over ranges that read tensors are not proven correct: {reason}")


def _plus(left: IndexExpression, right: IndexExpression) -> IndexExpression:
    return IndexOperation(IndexOperator.ADD, (left, right))


def _is_exact(loop: Loop, leaf: Scheduled, inside: InRange) -> bool:
    """Whether the loop runs nothing but what is inside."""
    if len(loop.ranges) != 1 or loop.step != 1:
        return False
    (own,) = loop.ranges
    return own.statement == leaf.statement and own.inside == inside and own.factor == 1 and own.low == own.high


def _read(own: ReadRange) -> set[str]:
    """The tensors that bounds are read from."""
    bounds = (own.inside.begin, own.inside.end)
    return {part.tensor for bound in bounds for part in walk(bound) if isinstance(part, Read)}
