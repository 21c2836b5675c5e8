"""Choosing the innermost loop of every nest: the one along which memory is contiguous."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.base.types import ScalarType, computation_type
from tc.language.program.program import Read, Reduction, walk
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.lanes import VECTORS, cut_lanes
from tc.polyhedral.analysis.linearize import linearize_last
from tc.polyhedral.analysis.reads import data_ranges, ranged_iterators, ranging_iterators, touches, value_reads
from tc.polyhedral.analysis.scattered import is_scatter, owners_of, placing
from tc.polyhedral.analysis.strides import iterator_of, scattered_accesses, stride
from tc.polyhedral.ir.loops import LoopKind, StatementBody
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Extension, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.transform.phases import Phased, in_phases
from tc.polyhedral.transform.stream import cut_rows
from tc.polyhedral.transform.tile import is_register

# A loop shorter than this does not fill the lanes of a vector register.
SHORT = 8
_IN_FEW_LANES = frozenset({Reduction.ADD, Reduction.MINIMUM, Reduction.MAXIMUM})
# Elements of which a vector loop leaves so many out between two makes GCC 12 compile for minutes.
_FAR: Final = 128


@frozen
class Preference:
    """Compared in order: fewer scattered accesses, then independent iterations, then more of them."""

    scattered: int
    dependent: bool
    negative_extent: int

    def key(self) -> tuple[int, bool, int]:
        """What members are sorted by, the best first."""
        return self.scattered, self.dependent, self.negative_extent


def preference(
    member: Member,
    statements: tuple[ScopStatement, ...],
    layouts: Mapping[str, Layout],
    domain: isl.UnionSet,
) -> Preference | None:
    """How well the member serves as the innermost loop of the statements; None where it cannot."""
    scattered = 0
    for statement in statements:
        body = statement.body
        iterator = iterator_of(member.function, body)
        if iterator is None or iterator in ranged_iterators(body) | placing(body):
            return None
        if not member.coincident and not _accumulates(statement, layouts, iterator):
            return None
        if statement.blocks and _is_far(body, layouts, iterator):
            return None
        scattered += scattered_accesses(body, layouts, iterator)
    extent = extent_of(member.function, domain)
    if extent < 2:
        return None
    return Preference(scattered + (extent < SHORT), not member.coincident, -extent)


def _is_far(body: StatementBody, layouts: Mapping[str, Layout], iterator: str) -> bool:
    """Whether some element is far from the next one along an iterator.

    Outside of blocks, such a loop is hardly ever the innermost one.
    """
    reads = (part for part in walk(body.value) if isinstance(part, Read))
    accesses = ((body.target, body.subscripts), *((read.tensor, read.subscripts) for read in reads))
    steps = (stride(subscripts, layouts[tensor], iterator) for tensor, subscripts in accesses)
    return any(step is not None and abs(step) >= _FAR for step in steps)


def _nesting(member: Member, body: StatementBody) -> tuple[int, bool]:
    """What ranges depend on goes outside, and what carries a reduction.

    Of a scatter, owners do, and then what says where it writes.
    """
    iterator, ranging = iterator_of(member.function, body), ranging_iterators(body)
    if not is_scatter(body) or iterator in ranging:
        return int(iterator not in ranging), member.coincident
    rank = 0 if iterator in owners_of(body) else 1 if iterator in placing(body) else 2
    return rank, member.coincident


def _accumulates(statement: ScopStatement, layouts: Mapping[str, Layout], iterator: str) -> bool:
    """Whether all iterations along the iterator combine into one element, in any order.

    Steps of blocks are in order where the statement also reads other elements of its target.
    """
    body = statement.body
    is_step = iterator in body.iterators[: len(statement.blocks)]
    if is_step and any(read.tensor == body.target for read in value_reads(body)):
        return False
    return body.reduction is not None and stride(body.subscripts, layouts[body.target], iterator) == 0


def vectorize_tree(
    tree: ScheduleTree, scop: Scop, vector_bytes: int, *, mark: bool, streamed: frozenset[str] = frozenset()
) -> ScheduleTree:
    """Move the preferred member of every innermost band inwards; ``mark`` it for the compiler's vectorizer.

    Loops that write ``streamed`` results are cut so that those inside write a piece that fits a buffer.
    """
    vectorizer = _Vectorizer(scop, layouts_of(scop), mark, vector_bytes, streamed)
    return replace(tree, root=vectorizer.visit(tree.root, tree.domain))


def _has_lanes(node: Node) -> bool:
    """Whether a register tile has lanes below."""
    match node:
        case Band(members, _, child):
            return any(member.kind is LoopKind.VECTOR for member in members) or _has_lanes(child)
        case Sequence(filters):
            return any(_has_lanes(branch.child) for branch in filters)
        case Extension(child=child):
            return _has_lanes(child)
        case Leaf():
            return False
        case _:
            assert_never(node)


def ends_nest(node: Node) -> bool:
    """Whether only statements, no loops, are left below."""
    match node:
        case Leaf():
            return True
        case Sequence(filters):
            return all(isinstance(branch.child, Leaf) for branch in filters)
        case Band() | Extension():
            return False
        case _:
            assert_never(node)


def _permutes(band: Band, domain: isl.UnionSet) -> bool:
    """Whether the loops of a band and of the one below it may have any order.

    Nothing within one statement is ordered but by steps of blocks, and coincident loops order nothing.  Those outside
    of steps may stand below them; those inside are independent within one step only.
    """
    child = band.child
    if not isinstance(child, Band) or not band.permutable or not (child.permutable or ends_nest(child.child)):
        return False
    return domain.n_set() == 1 or all(member.coincident for member in (*band.members, *child.members))


@frozen
class _Vectorizer:
    scop: Scop
    layouts: Mapping[str, Layout]
    mark: bool
    vector_bytes: int
    streamed: frozenset[str]

    def visit(self, node: Node, domain: isl.UnionSet, *, inside: bool = False, beside: bool = False) -> Node:
        """The subtree; ``inside``: there are loops around it; ``beside``: lanes of a register tile are in this nest."""
        match node:
            case Leaf():
                return node
            case Sequence(filters):
                beside = beside or (inside and any(_has_lanes(branch.child) for branch in filters))
                return Sequence(
                    tuple(
                        replace(
                            f,
                            child=self.visit(f.child, domain.intersect(f.domain), inside=inside, beside=beside),
                        )
                        for f in filters
                    )
                )
            case Extension(instances=instances, child=child):
                every = domain.union(instances.range())
                return replace(node, child=self.visit(child, every, inside=inside, beside=beside))
            case Band(members, _, child):
                if ends_nest(child):
                    band = replace(node, members=self.without_rows(members, domain)) if beside else node
                    return self.innermost_band(band, domain, kept=0 if inside else 1)
                if _permutes(node, domain) and isinstance(child, Band):
                    joined = Band((*members, *child.members), permutable=True, child=child.child)
                    return self.visit(joined, domain, inside=inside, beside=beside)
                return replace(node, child=self.visit(child, domain, inside=True, beside=beside))
            case _:
                assert_never(node)

    def innermost_band(self, band: Band, domain: isl.UnionSet, kept: int) -> Node:
        """The band in its best order; loops after the first ``kept`` that lie end to end in memory become one."""
        phased = self.phased(band.members, domain)
        if phased is not None:
            others, parts = phased
            return replace(band, members=(*self.reorder((*others, parts.lanes), domain), parts.phase))
        members = self.reorder(band.members, domain)
        if (
            members
            and members[-1].kind in (LoopKind.VECTOR, LoopKind.REDUCTION)
            and not any(m.kind is LoopKind.REGISTER for m in members)
        ):
            statements = tuple(self.scop.statement(name) for name in statement_names(domain))
            targets = {statement.body.target for statement in statements}
            if len(targets) == 1 and targets <= self.streamed and self.is_all(statements):
                members, outside = cut_rows(members, statements[0], self.layouts[statements[0].body.target])
                kept = max(kept, outside)
            members = linearize_last(members, statements, self.layouts, kept)
        ranged = any(data_ranges(self.scop.statement(name).body) for name in statement_names(domain))
        few = all(self.in_few_lanes(self.scop.statement(name).body) for name in statement_names(domain))
        return cut_lanes(replace(band, members=members), domain, self.lanes(domain), ranged=ranged, few=few)

    def is_all(self, statements: tuple[ScopStatement, ...]) -> bool:
        """Whether no other statement touches what these write."""
        names = {statement.name for statement in statements}
        return all(s.name in names for s in self.scop.statements if touches(s, statements[0].body.target))

    def in_few_lanes(self, body: StatementBody) -> bool:
        """Whether a statement adds up float32, or finds an extreme of it: compilers do that lane by lane in the end."""
        return body.reduction in _IN_FEW_LANES and self.layouts[body.target].type is ScalarType.FLOAT32

    def without_rows(self, members: tuple[Member, ...], domain: isl.UnionSet) -> tuple[Member, ...]:
        """The members without rows of a register tile that is another statement's: this one has lanes of its own."""
        blocks = any(self.scop.statement(name).blocks for name in statement_names(domain))
        if not self.mark or blocks or any(member.kind is LoopKind.VECTOR for member in members):
            return members
        return tuple(replace(m, kind=LoopKind.SEQUENTIAL) if m.kind is LoopKind.REGISTER else m for m in members)

    def phased(self, members: tuple[Member, ...], domain: isl.UnionSet) -> tuple[tuple[Member, ...], Phased] | None:
        """The member in phases whose lanes serve better than any other member, and the others."""
        if not self.mark or any(map(is_register, members)):
            return None
        statements = tuple(self.scop.statement(name) for name in statement_names(domain))
        found = [preference(member, statements, self.layouts, domain) for member in members]
        best = min((own.key() for own in found if own is not None), default=None)
        if best is not None and best[0] == 0:
            return None
        for place, member in enumerate(members):
            parts = in_phases(member, domain)
            own = None if parts is None else preference(parts.lanes, statements, self.layouts, domain)
            if parts is not None and own is not None and (best is None or own.key() < best):
                return (*members[:place], *members[place + 1 :]), parts
        return None

    def lanes(self, domain: isl.UnionSet) -> int:
        """Partial results of a reduction: vectors of the narrowest type that is reduced into."""
        types = (self.layouts[self.scop.statement(name).body.target].type for name in statement_names(domain))
        return VECTORS * max(1, self.vector_bytes // min(computation_type(type).itemsize for type in types))

    def reorder(self, members: tuple[Member, ...], domain: isl.UnionSet) -> tuple[Member, ...]:
        """Tile loops, then the loops that carry a reduction, then the independent ones, then the preferred one."""
        statements = tuple(self.scop.statement(name) for name in statement_names(domain))
        if any(map(is_register, members)):
            return self.around_tile(members, statements[0].body)
        innermost = self.innermost(members, statements[0].body)
        ranked = [
            (found.key(), position)
            for position in reversed(innermost)
            if (found := preference(members[position], statements, self.layouts, domain)) is not None
        ]
        chosen = min(ranked)[1] if ranked else None
        tiles = [m for position, m in enumerate(members) if position not in innermost]
        points = [members[position] for position in innermost if position != chosen]
        if domain.n_set() == 1:
            points.sort(key=lambda member: _nesting(member, statements[0].body))
        if chosen is None:
            return (*tiles, *points)
        last = members[chosen]
        if self.mark:
            last = replace(last, kind=LoopKind.VECTOR if last.coincident else LoopKind.REDUCTION)
        return (*tiles, *points, last)

    def around_tile(self, members: tuple[Member, ...], body: StatementBody) -> tuple[Member, ...]:
        """Tile loops, then the independent ones, then those that carry the reduction, then the register tile."""
        others = tuple(member for member in members if not is_register(member))
        innermost = self.innermost(others, body)
        tiles = [member for position, member in enumerate(others) if position not in innermost]
        points = sorted((others[position] for position in innermost), key=lambda member: not member.coincident)
        tile = sorted(filter(is_register, members), key=lambda member: member.kind is LoopKind.VECTOR)
        return (*tiles, *points, *tile)

    @staticmethod
    def innermost(members: tuple[Member, ...], body: StatementBody) -> list[int]:
        """Of the tile loops and the point loop over one iterator, only the innermost one walks along memory."""
        found: list[int] = []
        seen: set[str | None] = set()
        for position in reversed(range(len(members))):
            iterator = iterator_of(members[position].function, body)
            if iterator is None or iterator not in seen:
                found.append(position)
            seen.add(iterator)
        return sorted(found)
