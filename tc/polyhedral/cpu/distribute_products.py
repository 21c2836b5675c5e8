"""Loop distribution around products, which run in loops of their own where sharing some costs more than it saves.

**Several products that share a loop over their terms** run it one after the other.
A register tile of one product fills the registers.  Of two, as those of a gated layer, neither stays in registers,
and what they share is read from the cache in either case.  They still share the loops around, so that what follows
finds both in the cache.

**A product that shares a loop over rows with what comes before it**, as that of a layer with the norm of its input,
reads a large operand again, and packs it again, for every few rows.  It leaves the loop, and gets tiles of its own.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import permutations
from typing import Final, assert_never

import islpy as isl

from tc.language.program.program import iterators_in
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.analysis.reuse import product_loops
from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Node, ScheduleTree, Sequence, statement_names

# Rows that are worth loops of their own, and bytes of an operand that does not stay in a second-level cache.
_MANY_ROWS: Final = 32
_LARGE: Final = 1 << 18


def distribute_products(tree: ScheduleTree, scop: Scop) -> ScheduleTree:
    """The tree with a loop for each of several products that share one over their terms."""
    return replace(tree, root=_visit(tree.root, tree.domain, scop))


def _visit(node: Node, domain: isl.UnionSet, scop: Scop) -> Node:
    match node:
        case Leaf() | Extension():
            return node
        case Sequence(filters):
            return Sequence(tuple(part for own in filters for part in _parts(own, domain, scop)))
        case Band():
            parts = _parts(Filter(domain, node), domain, scop)
            return Sequence(parts) if len(parts) > 1 else parts[0].child
        case _:
            assert_never(node)


def _parts(branch: Filter, domain: isl.UnionSet, scop: Scop) -> tuple[Filter, ...]:
    """What stands in the place of a branch; a sequence has none inside of it."""
    inside = domain.intersect(branch.domain)
    if not isinstance(branch.child, Band):
        return (replace(branch, child=_visit(branch.child, inside, scop)),)
    parts = _distributed(branch.child, inside, scop)
    if parts:
        return parts
    split = _with_own_rows(branch.child, inside, scop)
    if split is not None:
        return tuple(part for own in split for part in _parts(own, inside, scop))
    return (replace(branch, child=replace(branch.child, child=_visit(branch.child.child, inside, scop))),)


def _distributed(band: Band, domain: isl.UnionSet, scop: Scop) -> tuple[Filter, ...]:
    """A branch with the loops for each product; nothing where there are not several products."""
    if not isinstance(band.child, Sequence) or any(member.coincident for member in band.members):
        return ()
    branches = band.child.filters
    statements = [[scop.statement(name) for name in statement_names(domain.intersect(own.domain))] for own in branches]
    single = [own[0] for own in statements if len(own) == 1]
    leaves = all(isinstance(own.child, Leaf) for own in branches)
    if len(single) < len(branches) or not leaves or not all(map(_is_product, single)) or not _are_apart(single):
        return ()
    return tuple(
        replace(
            own,
            child=replace(
                band,
                members=tuple(replace(m, function=m.function.intersect_domain(own.domain)) for m in band.members),
                child=Leaf(),
            ),
        )
        for own in branches
    )


def _with_own_rows(band: Band, domain: isl.UnionSet, scop: Scop) -> tuple[Filter, Filter] | None:
    """What comes before the first product that leaves a loop over rows, and the rest, in loops of their own."""
    if not isinstance(band.child, Sequence) or not all(member.coincident for member in band.members):
        return None
    rows = min(extent_of(member.function, domain) for member in band.members)
    branches = band.child.filters
    for place, branch in enumerate(branches):
        statements = [scop.statement(name) for name in statement_names(domain.intersect(branch.domain))]
        leaving = {own.body.target for own in statements if rows >= _MANY_ROWS and _reads_again(own, band, scop)}
        before = [scop.statement(name).body for own in branches[:place] for name in statement_names(own.domain)]
        if before and leaving and all(body.target not in leaving for body in before):
            return _branch(band, branches[:place]), _branch(band, branches[place:])
    return None


def _reads_again(statement: ScopStatement, band: Band, scop: Scop) -> bool:
    """Whether each iteration of the loops reads all of an operand that is too large to stay in the cache."""
    if not _is_product(statement):
        return False
    layouts = layouts_of(scop)
    loops = {iterator_of(member.function, statement.body) for member in band.members}
    return any(
        not loops & iterators_in(read.subscripts)
        and layouts[read.tensor].size * layouts[read.tensor].type.itemsize >= _LARGE
        for read in value_reads(statement.body)
    )


def _branch(band: Band, branches: tuple[Filter, ...]) -> Filter:
    """The loops around some of their branches; of loops right inside of them they make one band."""
    inside = reduce(isl.UnionSet.union, (own.domain for own in branches))
    members = tuple(replace(m, function=m.function.intersect_domain(inside)) for m in band.members)
    child: Node = branches[0].child if len(branches) == 1 else Sequence(branches)
    if isinstance(child, Band) and child.permutable:
        return Filter(inside, Band((*members, *child.members), permutable=True, child=child.child))
    return Filter(inside, replace(band, members=members, child=child))


def _is_product(statement: ScopStatement) -> bool:
    """Whether a statement adds up terms whose operands are read again and again."""
    body = statement.body
    if not statement.accumulates or body.begun:
        return False
    names = body.iterators[: statement.domain.dim(isl.dim_type.set)]
    kept = [name for name in names if name in iterators_in(body.subscripts)]
    reads = [read.subscripts for read in value_reads(body)]
    return any(product_loops(reads, kept, set(names) - set(kept)))


def _are_apart(statements: list[ScopStatement]) -> bool:
    """Whether no statement touches what another one writes."""
    return all(
        first.body.target != second.body.target
        and all(read.tensor != first.body.target for read in value_reads(second.body))
        for first, second in permutations(statements, 2)
    )
