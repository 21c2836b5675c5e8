"""Promotes the results of a reduction to registers of their thread (paper, Section 5.3)."""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import assert_never

import islpy as isl

from tc.polyhedral.analysis.box import bounding_box, own_space
from tc.polyhedral.analysis.copies import copy_band
from tc.polyhedral.analysis.paths import paths_below
from tc.polyhedral.analysis.reads import program_names
from tc.polyhedral.gpu.promotion.promote_temporaries import has_owner
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.transform.promotion import Footprint, Placement, accesses_to, promote_accesses, relation_of


def promote_private(tree: ScheduleTree, scop: Scop, most: int) -> tuple[ScheduleTree, Scop]:
    """The tree whose threads hold the results of reductions in registers, at most so many elements."""
    promoter = _AccumulatorPromoter(scop, most)
    return replace(tree, root=promoter.visit(tree.root, tree.domain, ())), promoter.scop


class _AccumulatorPromoter:
    """Visits the tree; ``scop`` gains the copies and the promoted accesses on the way."""

    def __init__(self, scop: Scop, most: int) -> None:
        self.scop = scop
        self.most = most

    def visit(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node:
        if any(member.kind is LoopKind.THREAD for member in above):
            found = self.accumulate(node, domain, above)
            if found is not None:
                return found
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                return Sequence(
                    tuple(replace(f, child=self.visit(f.child, domain.intersect(f.domain), above)) for f in filters)
                )
            case Band(members, _, child):
                # What is kept during a reduction begins inside of the loops over results, be they of one band with it.
                count = next((n for n, member in enumerate(members) if not member.coincident), len(members))
                if count in (0, len(members)):
                    return replace(node, child=self.visit(child, domain, (*above, *members)))
                inner = self.visit(replace(node, members=members[count:]), domain, (*above, *members[:count]))
                if isinstance(inner, Band):
                    return replace(inner, members=(*members[:count], *inner.members))
                return replace(node, members=members[:count], child=inner)
            case Extension(instances=instances, child=child):
                return replace(node, child=self.visit(child, domain.union(instances.range()), above))
            case _:
                assert_never(node)

    def accumulate(self, node: Node, domain: isl.UnionSet, above: tuple[Member, ...]) -> Node | None:
        """The subtree with what a reduction below writes in a buffer; None where nothing fits, or nothing is gained."""
        for name in program_names(domain, self.scop):
            statement = self.scop.statement(name)
            if not statement.accumulates or not _begins_with(node, domain, name):
                continue
            tensor = statement.body.target
            accesses = accesses_to(self.scop, tensor, domain)
            if accesses is None:
                continue
            relations = [relation_of(self.scop.statement(access.statement), access) for access in accesses]
            if not has_owner(relations, above):
                continue
            box = bounding_box(relations, above, strided=True)
            if box is None or not box.fits_registers(self.most):
                continue
            order = tuple(range(len(box.extents)))
            buffer = f"private{len(self.scop.promotions)}_{tensor}"
            promoted = promote_accesses(
                self.scop, Footprint(accesses, above, box), Placement(buffer, order), stored=True
            )
            self.scop = promoted.scop
            filters = [Filter(domain.universe(), self.visit(node, domain, above))]
            if promoted.loads is not None:
                filters.insert(0, Filter(own_space(promoted.loads.domain), copy_band(promoted.loads, len(above))))
            if promoted.stores is not None:
                filters.append(Filter(own_space(promoted.stores.domain), copy_band(promoted.stores, len(above))))
            child = filters[0].child if len(filters) == 1 else Sequence(tuple(filters))
            return Extension(buffer, promoted.instances, child)
        return None


def _begins_with(node: Node, domain: isl.UnionSet, name: str) -> bool:
    """Whether the outermost loop below is one of the statement's reduction.

    Of the iterations of a loop over results around it, only the elements of one need be kept at a time.  Where threads
    wait for each other inside of that loop, it is not unrolled either, and no array that it moves in is in registers.
    """
    members: Items[Member] = next((members for own, members in paths_below(node, domain) if own == name), ())
    return bool(members) and not members[0].coincident
