"""Small nests that follow each other run in one block: a barrier takes less time than another kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import islpy as isl

from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.gpu.mapping.launched_steps import LAUNCH_ITERATIONS
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.tree import Band, Filter, Member, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.share_loops import inner_loops, statement_of


def gather_nests(tree: ScheduleTree, block_threads: int) -> ScheduleTree:
    """The tree in which consecutive small outermost nests get a loop of one iteration around them, and so share a
    kernel; ``block_threads``: of a block by default.
    """
    if not isinstance(tree.root, Sequence):
        return tree
    groups = groupby(tree.root.filters, lambda branch: is_small(branch, tree.domain, block_threads))
    gathered = [own for small, branches in groups for own in _gathered(tuple(branches), tree.domain, small=small)]
    if len(gathered) == 1:
        return replace(tree, root=gathered[0].child)
    return replace(tree, root=Sequence(tuple(gathered)))


def is_small(branch: Filter, domain: isl.UnionSet, block_threads: int) -> bool:
    """Whether every thread has little work where threads share the innermost parallel loops."""
    inside = domain.intersect(branch.domain)
    rows = inner_loops(branch.child, inside)
    for name in statement_names(inside):
        own = statement_of(inside, name)
        threads = min(block_threads, extent_of(rows[name].member.function, own)) if name in rows else 1
        if volume(own) > LAUNCH_ITERATIONS * threads:
            return False
    return True


def _gathered(branches: tuple[Filter, ...], domain: isl.UnionSet, *, small: bool) -> Iterator[Filter]:
    if not small or len(branches) == 1:
        yield from branches
        return
    every = branches[0].domain
    for branch in branches[1:]:
        every = every.union(branch.domain)
    zero = isl.UnionPwAff.val_on_domain(domain.intersect(every).universe(), isl.Val.zero(domain.get_ctx()))
    block = Member(zero, coincident=True, kind=LoopKind.SEQUENTIAL)
    yield Filter(every, Band((block,), permutable=True, child=Sequence(branches)))
