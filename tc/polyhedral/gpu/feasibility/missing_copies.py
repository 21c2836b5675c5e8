"""Copies into shared memory that isl's loops leave out."""

from __future__ import annotations

import islpy as isl

from tc.language.isl.affine import parameter_name
from tc.polyhedral.analysis.ranges import Range
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, instance_map, inverse_of, loop_paths
from tc.polyhedral.ir.loops import Instance, LoopTree, Sharing
from tc.polyhedral.ir.scop import Scop


def has_missing_copies(root: LoopTree, scop: Scop) -> bool:
    """Whether some copies never run.

    isl's AST generator drops iterations for conditions on several quotients of one number.  Linearized copies have such
    conditions where the used part of a tile is a band, unless all of the tile can be copied
    (``tc.polyhedral.transform.fill``).
    """
    shared = {promotion.loads for promotion in scop.promotions if promotion.buffer.sharing is Sharing.BLOCK}
    missing = {statement.name: statement.domain for statement in scop.statements if statement.name in shared}
    ranges = {parameter_name(name): Range(1, most) for name, most in scop.sizes}
    for instance, path in loop_paths(root, ()):
        domain = missing.get(instance.statement)
        if domain is not None:
            frame = frame_of_path(path, scop.context, scop.sizes)
            copy = Instance(instance.statement, instance.arguments[: domain.dim(isl.dim_type.set)])
            points = follow_path(path, frame).points
            inverse = inverse_of(copy, path, points, frame, ranges)
            run = instance_map(copy, points, frame).range() if inverse is None else inverse.runs
            missing[instance.statement] = domain.subtract(run)
    return any(not domain.is_empty() for domain in missing.values())
