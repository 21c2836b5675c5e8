"""Unrolls the loops of each thread over a row that is read again, so that its elements stay in registers.

Threads have the same elements of a row in every statement that reads it.  Where these are few, compilers read them
once, as long as no loop hides which ones they are.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.gpu.promotion.read_again import held, read_again, row_of
from tc.polyhedral.ir.loops import MOST_UNROLLED, LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


def unroll_rows(tree: ScheduleTree, scop: Scop, registers: int) -> ScheduleTree:
    """The tree in which loops over what threads read again are unrolled, if there is room for it in registers, of which
    a multiprocessor has so many.
    """
    return replace(tree, root=_visit(tree.root, tree.domain, (), scop, registers))


def _visit(node: Node, domain: isl.UnionSet, above: tuple[Member, ...], scop: Scop, registers: int) -> Node:
    match node:
        case Leaf():
            return node
        case Band(members, _, child):
            return replace(node, child=_visit(child, domain, (*above, *members), scop, registers))
        case Sequence(filters):
            kept = frozenset(_kept(node, domain, above, scop, registers))
            around = math.prod(extent_of(member.function, domain) for member in above) if kept else 0
            branches = []
            for branch in filters:
                own = domain.intersect(branch.domain)
                below = _visit(branch.child, own, above, scop, registers)
                branches.append(replace(branch, child=_unrolled(below, own, kept, around, scop) if kept else below))
            return Sequence(tuple(branches))
        case Extension():
            raise AssertionError("buffers are placed later")
        case _:
            assert_never(node)


def _kept(sequence: Sequence, domain: isl.UnionSet, above: tuple[Member, ...], scop: Scop, registers: int) -> list[str]:
    """The tensors of which threads have a few elements of a row that several branches read."""
    threads = [extent_of(member.function, domain) for member in above if member.kind is LoopKind.THREAD]
    if not threads:
        return []
    prefix = tuple(member for member in above if member.kind is not LoopKind.THREAD)
    found = ((tensor, row_of(scop, tensor, domain, prefix)) for tensor in read_again(scop, sequence, domain))
    most = held(math.prod(threads), registers)
    return [tensor for tensor, row in found if row is not None and math.prod(row.box.extents) <= most]


def _unrolled(node: Node, domain: isl.UnionSet, kept: frozenset[str], around: int, scop: Scop) -> Node:
    """A nest that is unrolled if it has some of the tensors, and a thread a few iterations of it.

    ``around``: values of the members above.
    """
    match node:
        case Band(members, _, Leaf()) if kept & _read(domain, scop):
            parallel = all(m.kind is LoopKind.SEQUENTIAL and m.coincident for m in members)
            if parallel and volume(domain) <= MOST_UNROLLED * around:
                return replace(node, members=tuple(replace(m, kind=LoopKind.UNROLLED) for m in members))
        case _:
            pass
    return node


def _read(domain: isl.UnionSet, scop: Scop) -> set[str]:
    """What the statements read."""
    return {read.tensor for name in statement_names(domain) for read in value_reads(scop.statement(name).body)}
