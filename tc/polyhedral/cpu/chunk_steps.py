"""Loops around the steps of a block that are independent of each other, cut into one chunk for each core.

The schedule has them outside of the steps, where each iteration would read an operand that does not depend on it anew
in every step, as rows of a batch do the weights of a recurrent network.  A chunk of them below reads it once.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile
from typing import assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.program.program import iterators_in
from tc.polyhedral.analysis.extents import extent_of, volume
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence, statement_names


def chunk_steps(tree: ScheduleTree, scop: Scop, cores: int) -> ScheduleTree:
    """The tree in which loops that share operands of reductions stand below the steps, but for a chunk of each core."""
    return replace(tree, root=_Chunker(scop, cores).visit(tree.root, tree.domain))


@frozen
class _Chunker:
    scop: Scop
    cores: int

    def visit(self, node: Node, domain: isl.UnionSet) -> Node:
        match node:
            case Leaf() | Extension():
                return node
            case Sequence(filters):
                branches = (replace(f, child=self.visit(f.child, domain.intersect(f.domain))) for f in filters)
                return Sequence(tuple(branches))
            case Band():
                below = isl.UnionSet.empty(domain.get_space())
                for part in in_steps(node.child, domain):
                    below = below.union(part)
                if runs_steps(node) or below.is_empty():
                    return replace(node, child=self.visit(node.child, domain))
                return self.chunked(node, domain, below)
            case _:
                assert_never(node)

    def chunked(self, band: Band, domain: isl.UnionSet, steps: isl.UnionSet) -> Node:
        """The loops around steps, with the one that shares the most below these; ``steps``: what runs in them."""
        member = max(band.members, key=lambda member: self.shared(member, steps))
        if self.shared(member, steps) == 0:
            return band
        count = extent_of(member.function, domain)
        others = [m for m in band.members if m is not member]
        # Cores that other loops keep busy need no chunks of this one.
        chunks = 1 if math.prod(extent_of(m.function, domain) for m in others) >= self.cores else self.cores
        below = _inside(band.child, member.function)
        if chunks > 1:
            size = isl.Val.int_from_si(domain.get_ctx(), -(-count // chunks))
            others.insert(0, replace(member, function=member.function.scale_down_val(size).floor(), chunks=True))
        return replace(band, members=tuple(others), child=below) if others else below

    def shared(self, member: Member, domain: isl.UnionSet) -> int:
        """How many instances of reductions read an operand that is the same for all iterations of a loop."""
        if not member.coincident or extent_of(member.function, domain) < 2:
            return 0
        statements = (self.scop.statement(name) for name in statement_names(domain))
        return sum(volume(isl.UnionSet.from_set(s.domain)) for s in statements if _shares(member, s))


def _shares(member: Member, statement: ScopStatement) -> bool:
    """Whether a reduction reads something at subscripts that do not depend on the loop."""
    body = statement.body
    iterator = iterator_of(member.function, body)
    if body.reduction is None or iterator is None:
        return False
    return any(iterator not in iterators_in(read.subscripts) for read in value_reads(body))


def runs_steps(band: Band) -> bool:
    """Whether its loop runs the steps of a block, which cannot change places with others."""
    return not band.permutable


def in_steps(node: Node, domain: isl.UnionSet) -> Iterator[isl.UnionSet]:
    """What runs in the steps of blocks below."""
    match node:
        case Leaf() | Extension():
            return
        case Sequence(filters):
            for branch in filters:
                yield from in_steps(branch.child, domain.intersect(branch.domain))
        case Band() if runs_steps(node):
            yield domain
        case Band(child=child):
            yield from in_steps(child, domain)
        case _:
            assert_never(node)


def _has_independent(node: Node) -> bool:
    """Whether there is a loop below whose iterations are independent."""
    match node:
        case Leaf() | Extension():
            return False
        case Band(members, _, child):
            return any(member.coincident for member in members) or _has_independent(child)
        case Sequence(filters):
            return any(_has_independent(branch.child) for branch in filters)
        case _:
            assert_never(node)


def _inside(node: Node, function: isl.UnionPwAff) -> Node:
    """The subtree with one more loop, which is independent of all others, in each nest below the steps.

    It comes behind all other independent ones, so that its iterations find in the cache what they share.
    """
    member = Member(function, coincident=True)
    match node:
        case Leaf() | Extension():
            return Band((member,), permutable=True, child=node)
        case Band(members, permutable, child):
            if not permutable or _has_independent(child):
                return replace(node, child=_inside(child, function))
            outer = tuple(takewhile(lambda own: own.coincident, members))
            return replace(node, members=(*outer, member, *members[len(outer) :]))
        case Sequence(filters):
            if not _has_independent(node):
                return Band((member,), permutable=True, child=node)
            branches = (Filter(f.domain, _inside(f.child, function.intersect_domain(f.domain))) for f in filters)
            return Sequence(tuple(branches))
        case _:
            assert_never(node)
