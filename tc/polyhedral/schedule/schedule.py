"""Scheduling: which statements share loops, and which of the loops are parallel.

isl finds the band that a group of statements can share; which groups to form is decided here, because isl's own
clustering fuses reductions into full-rank bands whose guards a compiler cannot vectorize.  A shared band holds the
leading coincident members only; below it the statements are grouped again (paper, Section 5.2, and Verdoolaege's
recursive clustering).  Statements of a block that wait for each other from step to step stay together
(``tc.polyhedral.schedule.components``): below the loops that are parallel for all of them, they share those of the
block, and what does not wait for them leaves it.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from functools import reduce
from typing import Final

import islpy as isl

from tc.language.isl.affine import isl_name
from tc.language.isl.pieces import maps_of, sets_of
from tc.language.program.program import reads_in
from tc.language.program.specialization import Layout
from tc.polyhedral.analysis.extents import volume
from tc.polyhedral.analysis.strides import is_sampled, is_skewed, iterator_of, stride
from tc.polyhedral.ir.scop import Scop, ScopStatement, layouts_of
from tc.polyhedral.ir.tree import Band, Filter, Leaf, Member, Node, ScheduleTree, Sequence
from tc.polyhedral.schedule.alike import have_same_loops, rank, reads_only, share_reads
from tc.polyhedral.schedule.coincidence import Apart, Shared, coincides, shared_iterators
from tc.polyhedral.schedule.components import components
from tc.polyhedral.schedule.dependences import Flow, analyze_dependences, common_blocks
from tc.polyhedral.schedule.prefix import Instances, Prefix
from tc.targets.options import Fusion

Group = tuple[ScopStatement, ...]

# Others have so many times as many instances.
_FEW: Final = 64


def schedule_scop(scop: Scop, fusion: Fusion) -> ScheduleTree:
    """A legal tree for the statements that have instances."""
    _configure(scop.context)
    statements = tuple(s for s in scop.statements if not s.domain.is_empty())
    if not statements:
        return ScheduleTree(_domain_of(statements, scop), Leaf())
    dependences, instances = analyze_dependences(scop), {s.name: Instances(s) for s in statements}
    parts = frozenset(scop.row_threads)
    scheduler = _Scheduler(Flow(scop), instances, fusion, scop.between_kernels, layouts_of(scop), parts)
    return ScheduleTree(_domain_of(statements, scop), scheduler.order(statements, Prefix(dependences, instances)))


def untransformed_tree(scop: Scop) -> ScheduleTree:
    """Blocks and statements in program order, each as plain loops over its iterators, none of them parallel.

    What is left when isl's scheduler exhausts its budget: legal by the meaning of a program, and cheap to find.
    """
    statements = tuple(s for s in scop.statements if not s.domain.is_empty())
    return ScheduleTree(_domain_of(statements, scop), _in_program_order(statements, 0) if statements else Leaf())


def _in_program_order(statements: Group, depth: int) -> Node:
    """The subtree for statements that are in so many common blocks, below the loops of these."""
    parts: list[tuple[Group, Node]] = []
    for (blocks, _), run in itertools.groupby(
        enumerate(statements), lambda item: (item[1].blocks[: depth + 1], len(item[1].blocks) <= depth and item[0])
    ):
        group = tuple(statement for _, statement in run)
        if len(blocks) <= depth:
            parts.append((group, _plain_loops(group[0], depth)))
        else:
            steps = Member(_same_iterator(group, depth), coincident=False)
            parts.append((group, Band((steps,), permutable=False, child=_in_program_order(group, depth + 1))))
    return Sequence(tuple(Filter(_universe(group), node) for group, node in parts))


def _plain_loops(statement: ScopStatement, depth: int) -> Node:
    dimensions = range(depth, statement.domain.dim(isl.dim_type.set))
    members = tuple(Member(_iterator(statement, position), coincident=False) for position in dimensions)
    return Band(members, permutable=True, child=Leaf()) if members else Leaf()


def _domain_of(statements: Group, scop: Scop) -> isl.UnionSet:
    empty = isl.UnionSet.empty(isl.Space.params_alloc(scop.context, 0))
    return _union(statements) if statements else empty


def _configure(context: isl.Context) -> None:
    context.set_schedule_outer_coincidence(0)
    context.set_schedule_whole_component(1)
    context.set_schedule_treat_coalescing(0)


def _union(statements: Group) -> isl.UnionSet:
    union = isl.UnionSet.from_set(statements[0].domain)
    for statement in statements[1:]:
        union = union.union(isl.UnionSet.from_set(statement.domain))
    return union


@dataclass(frozen=True)
class _Scheduler:
    flow: Flow
    instances: Mapping[str, Instances]
    fusion: Fusion
    between_kernels: frozenset[str]
    layouts: Mapping[str, Layout]
    in_parts: frozenset[str]

    def order(self, statements: Group, prefix: Prefix) -> Node:
        """The subtree for the statements, below bands with the members ``prefix``."""
        groups = self.group(statements, prefix)
        if self.fusion is not Fusion.MINIMAL:
            groups = self.gather_reductions(groups, prefix)
        if len(groups) == 1:
            return self.nest(groups[0], prefix)
        return Sequence(tuple(Filter(_universe(group), self.nest(group, prefix)) for group in groups))

    def gather_reductions(self, groups: list[Group], prefix: Prefix) -> list[Group]:
        """Reductions over the same loops that read the same elements, brought together to read them once."""
        done: list[Group] = []
        for group in groups:
            partner = next((n for n, other in enumerate(done) if self.reduces_with(other, group, prefix)), None)
            if partner is None:
                done.append(group)
                continue
            # What stands between them moves to the front if nothing in it waits for the first of them.
            between = done[partner + 1 :]
            if any(self.waits(done[partner], other, prefix) for other in between):
                done.append(group)
                continue
            done[partner:] = [*between, done[partner] + group]
        return done

    def reduces_with(self, first: Group, second: Group, prefix: Prefix) -> bool:
        """Whether one loop nest can run two groups of reductions, and saves reads by doing so."""
        pairs = [(a, b) for a in first if a.accumulates for b in second if b.accumulates]
        if not pairs or not all(have_same_loops(a, b) and share_reads(a, b) for a, b in pairs):
            return False
        if self.waits(first, second, prefix):
            return False
        group = first + second
        if all(s.accumulates for s in group) and not any(
            m.coincident for s in group for m in self.own_members(s, prefix)
        ):
            return all(self.own_members(s, prefix) for s in group)
        # Where they have parallel loops, too, these must remain, and nothing else be read than before.
        if not all(reads_only(b, a) for a, b in pairs):
            return False
        parallel = (len(self.shared(first, prefix)), len(self.shared(second, prefix)))
        return len(self.shared(group, prefix)) >= max(parallel) > 0

    def waits(self, first: Group, second: Group, prefix: Prefix) -> bool:
        """Whether an instance of the second must come after one of the first, where the prefix leaves them together."""
        return prefix.waits(_names(first), _names(second))

    def group(self, statements: Group, prefix: Prefix) -> list[Group]:
        """Neighbours that share a band; statements without loops left stand alone.

        They are in program order, but for those that others of their block need not wait for from step to step.
        """
        groups: list[Group] = list(self.components(statements, prefix))
        sweeps = 0 if self.fusion is Fusion.MINIMAL else len(groups)
        for _ in range(sweeps):
            merged: list[Group] = []
            for group in groups:
                if merged and self.fuses(merged[-1], group, prefix):
                    merged[-1] = merged[-1] + group
                else:
                    merged.append(group)
            if len(merged) == len(groups):
                break
            groups = merged
        return groups

    def fuses(self, first: Group, second: Group, prefix: Prefix) -> bool:
        """Whether two neighbours share a band; the strategy that preserves parallel loops also wants a flow to save.

        What few instances hand to many does not fix the loops of these, where they would then run across the rows of
        what they write; and what runs in parallel by itself is not made to run across the dimensions of what it writes,
        nor in every second iteration.
        """
        if self.fusion is Fusion.PRESERVE_PARALLEL and not self.flows(first, second):
            return self.total_alike(first, second, prefix)
        if self.passes_between_kernels(first, second):
            return False
        together = self.shared(first + second, prefix)
        if not together or self.fusion is Fusion.MAXIMAL:
            return len(together) > 0
        parallel = self.parallel(first + second, prefix)
        if parallel < min(self.parallel(first, prefix), self.parallel(second, prefix)):
            return False
        if any(self.is_skewed_by(together, statement, prefix) for statement in first + second):
            return False
        if any(self.is_sampled_by(together, statement) for statement in first + second):
            return False
        if parallel == self.parallel(second, prefix) or _FEW * _instances(first) > _instances(second):
            return True
        return not any(self.goes_along_memory(member, second) for member in together)

    def total_alike(self, first: Group, second: Group, prefix: Prefix) -> bool:
        """Whether two groups compute partial results of rows, or their totals, over the same parallel loops."""
        pairs = [(a, b) for a in first if a.accumulates for b in second if b.accumulates]
        if not pairs or not all({a.name, b.name} <= self.in_parts and have_same_loops(a, b) for a, b in pairs):
            return False
        every = [self.parallel(group, prefix) for group in (first, second, first + second)]
        return len(set(every)) == 1 and not self.passes_between_kernels(first, second)

    def is_skewed_by(self, members: Items[Member], statement: ScopStatement, prefix: Prefix) -> bool:
        """Whether a loop runs across the dimensions that a statement writes, which alone has parallel loops."""
        alone = self.parallel((statement,), prefix) > 0
        return alone and any(is_skewed(member.function, statement.body) for member in members)

    def is_sampled_by(self, members: Items[Member], statement: ScopStatement) -> bool:
        """Whether a loop has iterations without an instance between those of a statement: of a reduction, or of one
        that reads neighbours in neighbouring instances.
        """
        sampled = [member.function for member in members if is_sampled(member.function, statement.body)]
        if not sampled or statement.accumulates:
            return bool(sampled)
        names = [iterator_of(function, statement.body) for function in sampled]
        reads = list(reads_in(statement.body.value))
        return any(stride(r.subscripts, self.layouts[r.tensor], name) == 1 for name in names if name for r in reads)

    def goes_along_memory(self, member: Member, group: Group) -> bool:
        """Whether neighbouring iterations write neighbours, in the statement that has the most of them."""
        body = max(group, key=lambda s: volume(isl.UnionSet.from_set(s.domain))).body
        iterator = iterator_of(member.function, body)
        return iterator is not None and stride(body.subscripts, self.layouts[body.target], iterator) == 1

    def parallel(self, group: Group, prefix: Prefix) -> int:
        """How many loops all statements of the group can run in parallel together."""
        members = self.shared(group, prefix)
        return sum(not any(prefix.determines(m.function, s.name) for s in group) for m in members)

    def passes_between_kernels(self, first: Group, second: Group) -> bool:
        """Whether the second group reads what only another kernel may have written, and the first one writes it."""
        written = {s.body.target for s in first} & self.between_kernels
        return any(
            relation.get_tuple_name(isl.dim_type.out) == isl_name(tensor)
            for tensor in written
            for s in second
            for relation in s.reads
            if s.body.target != tensor
        )

    def flows(self, first: Group, second: Group) -> bool:
        """Whether the second group reads values of the first."""
        return any(self.flow.passes(a, b) for a in first for b in second)

    def components(self, statements: Group, prefix: Prefix) -> Items[Group]:
        """The statements, together where they wait for each other, behind those that they wait for."""
        if not any(statement.blocks for statement in statements):
            return [(statement,) for statement in statements]

        def runs_with(statement: ScopStatement, others: Group) -> bool:
            """Whether a block that is not run step by step yet has all of them, which wait for each other in it."""
            if len(others) == 1 and not prefix.goes_in_steps(others[0].name):
                return False
            common = min(common_blocks(statement, other) for other in others)
            return any(not prefix.determines(_iterator(statement, n), statement.name) for n in range(common))

        return components(statements, prefix.waiting(_names(statements)), runs_with)

    def goes_in_steps(self, group: Group, prefix: Prefix) -> bool:
        """Whether the statements wait for each other, or one for itself, from step to step of a block."""
        if not any(statement.blocks for statement in group):
            return False
        if len(group) > 1:
            return len(self.components(group, prefix)) == 1
        return prefix.goes_in_steps(group[0].name)

    def in_steps(self, group: Group, prefix: Prefix) -> Node:
        """The loops that all run in parallel, then the outermost loop that is left of the blocks around all of them."""
        members = self.shared(group, prefix)
        if not members:
            depth = next(
                depth
                for depth in range(min(len(statement.blocks) for statement in group))
                if not all(prefix.determines(_iterator(statement, depth), statement.name) for statement in group)
            )
            members = (Member(_same_iterator(group, depth), coincident=False),)
        below = prefix.below(members, _names(group))
        return Band(members, permutable=members[0].coincident, child=self.order(group, below))

    def nest(self, group: Group, prefix: Prefix) -> Node:
        if self.goes_in_steps(group, prefix):
            return self.in_steps(group, prefix)
        if len(group) == 1:
            members = self.own_members(group[0], prefix)
            return Band(members, permutable=True, child=Leaf()) if members else Leaf()
        if all(s.accumulates for s in group) and len({rank(s) for s in group}) == 1 and not self.shared(group, prefix):
            return self.reduce_together(group, prefix)
        members = self.shared(group, prefix)
        below = prefix.below(members, _names(group))
        return Band(members, permutable=True, child=self.order(group, below))

    def reduce_together(self, group: Group, prefix: Prefix) -> Node:
        """One nest over the loops that the reductions have in common, the statements side by side in it."""
        own = [self.own_members(statement, prefix) for statement in group]
        members: list[Member] = []
        for position in range(len(own[0])):
            function = own[0][position].function
            for others in own[1:]:
                function = function.union_add(others[position].function)
            members.append(Member(function, coincident=False))
        leaves = Sequence(tuple(Filter(_universe((statement,)), Leaf()) for statement in group))
        return Band(tuple(members), permutable=True, child=leaves)

    def shared(self, group: Group, prefix: Prefix) -> tuple[Member, ...]:
        """The coincident members that the whole group can share."""
        names = tuple(statement.name for statement in group)
        if names not in prefix.shared:
            prefix.shared[names] = self._shared(group, prefix)
        return prefix.shared[names]

    def _shared(self, group: Group, prefix: Prefix) -> tuple[Member, ...]:
        if len(group) == 1:
            return tuple(m for m in self.own_members(group[0], prefix) if m.coincident)
        found = self.coincident_members(group, prefix)
        return tuple(m for m in found if not all(prefix.determines(m.function, s.name) for s in group))

    def coincident_members(self, group: Group, prefix: Prefix) -> tuple[Member, ...]:
        """The leading members along which the conflicts of the group are at distance 0."""
        domain = _union(group)
        names = [str(piece.get_tuple_name()) for piece in sets_of(domain)]
        if all(self.instances[name].is_plain for name in names):
            moving, hulls = {name: self.instances[name].moving for name in names}, prefix.hulls(names)
            shared = shared_iterators(moving, hulls)
            if isinstance(shared, Apart):
                # isl orders parts that have nothing to do with each other one by one, unless something ties them.
                tied = map(prefix.hull_of, maps_of(_tied(group, self.in_parts)))
                shared = shared_iterators(moving, [*hulls, *(hull for hull in tied if hull is not None)])
            if isinstance(shared, Apart):
                return ()
            if shared is not None:
                return tuple(Member(_function_of(group, own), coincident=True) for own in shared)
        conflicts = prefix.conflicts(names)
        found = members_of_isl(conflicts, domain)
        return members_of_isl(conflicts.union(_tied(group, self.in_parts)), domain) or () if found is None else found

    def own_members(self, statement: ScopStatement, prefix: Prefix) -> tuple[Member, ...]:
        """All remaining iterators of one statement, coincident ones first.

        Within a statement, and a step of its blocks, nothing is ordered (a right-hand side is read before its left-hand
        side is written, in-place reads are element-wise, reductions are unordered), so every order of its iterators is
        legal; where steps wait for each other, only that of coincident ones is.
        """
        if statement.name not in prefix.own:
            prefix.own[statement.name] = self._own_members(statement, prefix)
        return prefix.own[statement.name]

    def _own_members(self, statement: ScopStatement, prefix: Prefix) -> tuple[Member, ...]:
        found: list[Member] = []
        conflicts = prefix.own_hull(statement.name)
        for position in range(statement.domain.dim(isl.dim_type.set)):
            function = _iterator(statement, position)
            if not prefix.determines(function, statement.name):
                found.append(Member(function, coincident=conflicts is None or coincides(position, conflicts)))
        return (*(m for m in found if m.coincident), *(m for m in found if not m.coincident))


def members_of_isl(conflicts: isl.UnionMap, domain: isl.UnionSet) -> tuple[Member, ...] | None:
    """The leading members along which conflicts are at distance 0; None where isl finds no band for all of the domain.

    Members that are not coincident are thrown away, so isl need not make them valid.  Of coincident ones, neither
    validity nor proximity says more: conflicts, and with them all that is in order, are at distance 0.
    """
    schedule = isl.ScheduleConstraints.on_domain(domain).set_coincidence(conflicts).compute_schedule()
    node = schedule.get_root().child(0)
    if isl.schedule_node_type(node.get_type()) is not isl.schedule_node_type.band:
        return None
    functions = node.band_get_partial_schedule()
    coincident = itertools.takewhile(node.band_member_get_coincident, range(node.band_n_member()))
    return tuple(Member(functions.get_union_pw_aff(position), coincident=True) for position in coincident)


def _tied(group: Group, in_parts: frozenset[str]) -> isl.UnionMap:
    """The instances of reductions at the same values of their iterators, where these read the same, or are in parts."""
    found = isl.UnionMap.empty(group[0].domain.get_space().params())
    reductions = [statement for statement in group if statement.accumulates]
    for first, second in itertools.combinations(reductions, 2):
        alike = {first.name, second.name} <= in_parts or share_reads(first, second)
        if alike and have_same_loops(first, second):
            same = isl.Map.identity(first.domain.get_space().map_from_set()).intersect_domain(first.domain)
            same = same.set_tuple_name(isl.dim_type.out, second.name)
            found = found.union(isl.UnionMap.from_map(same))
    return found


def _iterator(statement: ScopStatement, position: int) -> isl.UnionPwAff:
    local = isl.LocalSpace.from_space(statement.domain.get_space())
    function = isl.PwAff.from_aff(isl.Aff.var_on_domain(local, isl.dim_type.set, position))
    return isl.UnionPwAff.from_pw_aff(function)


def _function_of(group: Group, shared: Shared) -> isl.UnionPwAff:
    """The function of all statements that has these iterators."""
    functions = (_shifted(statement, shared) for statement in group)
    return reduce(isl.UnionPwAff.union_add, functions)


def _shifted(statement: ScopStatement, shared: Shared) -> isl.UnionPwAff:
    local = isl.LocalSpace.from_space(statement.domain.get_space())
    position = shared.iterators.get(statement.name)
    value = isl.Aff.zero_on_domain(local)
    if position is not None:
        value = isl.Aff.var_on_domain(local, isl.dim_type.set, position)
    constant = isl.Val.int_from_si(local.get_ctx(), shared.constants[statement.name])
    return isl.UnionPwAff.from_pw_aff(isl.PwAff.from_aff(value.add_constant_val(constant)))


def _same_iterator(group: Group, position: int) -> isl.UnionPwAff:
    """The iterator of each of the statements at a position."""
    function, *others = (_iterator(statement, position) for statement in group)
    for other in others:
        function = function.union_add(other)
    return function


def _instances(group: Group) -> int:
    return volume(_union(group))


def _universe(group: Group) -> isl.UnionSet:
    """All points of the group's spaces: what a filter has to say."""
    return _union(group).universe()


def _names(group: Group) -> list[str]:
    return [statement.name for statement in group]
