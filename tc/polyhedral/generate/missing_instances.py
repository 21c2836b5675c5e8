"""Instances that the generated loops leave out.

isl's AST generator drops iterations for conditions on several quotients of one number: those of linearized copies
where the used part of a tile is a band (``tc.polyhedral.transform.fill``), and those of loops over a sum of
iterators, ``2*i + 4*j``, of which a quotient or a remainder goes to blocks, threads or tiles.  Which sums and sizes
these are is hard to tell beforehand, so the loops themselves are asked, where there is a reason to.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet

import islpy as isl

from tc.polyhedral.analysis.ranges import size_ranges
from tc.polyhedral.execution.loop_execution import follow_path, frame_of_path, instance_map, inverse_of, loop_paths
from tc.polyhedral.ir.loops import Instance, LoopTree, Sharing
from tc.polyhedral.ir.scop import Scop


def has_missing_copies(root: LoopTree, scop: Scop) -> bool:
    """Whether some copies into shared memory never run."""
    shared = {promotion.loads for promotion in scop.promotions if promotion.buffer.sharing is Sharing.BLOCK}
    return has_missing_instances(root, scop, {s.name for s in scop.statements} & shared)


def has_missing_instances(root: LoopTree, scop: Scop, names: AbstractSet[str]) -> bool:
    """Whether some instances of these statements never run."""
    missing = {statement.name: statement.domain for statement in scop.statements if statement.name in names}
    ranges = size_ranges(scop.sizes)
    for instance, path in loop_paths(root, ()):
        domain = missing.get(instance.statement)
        if domain is not None and not domain.is_empty():
            frame = frame_of_path(path, scop.context, scop.sizes)
            own = Instance(instance.statement, instance.arguments[: domain.dim(isl.dim_type.set)])
            points = follow_path(path, frame).points
            inverse = inverse_of(own, path, points, frame, ranges)
            run = instance_map(own, points, frame).range() if inverse is None else inverse.runs
            missing[instance.statement] = _without(domain, run)
    return any(not domain.is_empty() for domain in missing.values())


def _without(domain: isl.Set, run: isl.Set) -> isl.Set:
    """The difference, piece by piece, the simplest first: isl makes products of the pieces of what it subtracts."""
    found = run.intersect(domain).coalesce().get_basic_set_list()
    pieces = [found.get_at(number) for number in range(found.n_basic_set())]
    for piece in sorted(pieces, key=lambda piece: piece.dim(isl.dim_type.div)):
        if domain.is_empty():
            break
        domain = domain.subtract(piece.to_set()).coalesce()
    return domain
