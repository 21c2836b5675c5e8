"""Computes what leaves a block for a chunk of its steps at a time, before these steps: its values stay in a cache.

The input product of a recurrent network does not wait for the steps, so the schedule runs it for all of them before the
first one (``tc.polyhedral.schedule.schedule``), and all of its results go to memory and back.  Here both are below one
loop over chunks of steps, and a temporary between them holds the steps of one chunk
(``tc.polyhedral.schedule.contract``).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import replace
from functools import reduce
from typing import Final, assert_never

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import maps_of
from tc.language.program.program import IteratorReference
from tc.polyhedral.analysis.extents import extent_of
from tc.polyhedral.analysis.reads import accesses, touches
from tc.polyhedral.analysis.strides import iterator_of
from tc.polyhedral.ir.contractions import Contraction
from tc.polyhedral.ir.loops import Buffer
from tc.polyhedral.ir.scop import Scop, ScopStatement
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Member, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.schedule.dependences import Dependences, analyze_dependences

# Bytes that the second-level caches of two cores hold: more than that goes to memory and back.
_ROOM: Final = 1 << 21
# Shorter chunks read anew, again and again, what all of their steps read.
_LEAST_STEPS: Final = 4


def chunk_contractions(tree: ScheduleTree, scop: Scop) -> tuple[Contraction, ...]:
    """The temporaries that may hold the steps of one chunk, as far as subscripts say, in a schedule without chunks."""
    found: list[Contraction] = []
    for group in _groups(tree.root, (), scop):
        passed = [(own, d) for own in scop.temporaries if (d := _steps_of(own, group, scop)) is not None]
        size = _chunk_size([own for own, _ in passed], extent_of(group.members[-1].function, tree.domain))
        if size:
            found += [Contraction(own.name, dimension, size, own.layout.shape[dimension]) for own, dimension in passed]
    return tuple(found)


def steps_in_chunks(tree: ScheduleTree, scop: Scop, made: Items[Contraction]) -> ScheduleTree | None:
    """The schedule with chunks of steps, for statements in which these temporaries are contracted; None if a statement
    would run before another one that it depends on.

    Only elements that share memory can be the reason.  Of all others, what leaves the block comes before what steps do
    with it, and these are in order: so no step does anything that an earlier one waits for.
    """
    users = (s for s in scop.statements if any(touches(s, own.tensor) for own in made))
    dependences = analyze_dependences(replace(scop, statements=tuple(users)))
    chunked: list[_Chunked] = []
    for group in _groups(tree.root, (), scop):
        targets = {scop.statement(name).body.target for name in group.steps}
        size = next((own.size for own in made if own.tensor in targets), None)
        if size is not None:
            steps = isl.Val.int_from_si(scop.context, size)
            chunks = [member.function.scale_down_val(steps).floor() for member in group.members]
            chunked.append(_Chunked(group, reduce(isl.UnionPwAff.union_add, chunks)))
    if not all(_in_order(own, dependences) for own in chunked):
        return None
    return replace(tree, root=_below_chunks(tree.root, chunked))


@frozen
class _Group:
    """Neighbours in a sequence: ``branches``, the last of which runs the steps of a block, after the others.

    ``around``: what the loops above count.  ``members``: of each branch, the loop over the steps.  ``steps``: by
    statement, the iterator that counts these.
    """

    sequence: Sequence
    around: tuple[isl.UnionPwAff, ...]
    branches: tuple[Filter, ...]
    members: tuple[Member, ...]
    steps: Mapping[str, str]


def _groups(node: Node, around: tuple[isl.UnionPwAff, ...], scop: Scop) -> Iterator[_Group]:
    match node:
        case Leaf() | Extension():
            return
        case Band(members, _, child):
            yield from _groups(child, (*around, *(member.function for member in members)), scop)
        case Sequence(filters):
            for position, branch in enumerate(filters):
                group = _group(node, position, around, scop)
                if group is None:
                    yield from _groups(branch.child, around, scop)
                else:
                    yield group
        case _:
            assert_never(node)


def _group(sequence: Sequence, last: int, around: tuple[isl.UnionPwAff, ...], scop: Scop) -> _Group | None:
    """The branch that runs steps, with all before it that have a loop over the same ones."""
    branch = sequence.filters[last]
    band = branch.child
    if not isinstance(band, Band) or band.permutable or len(band.members) != 1:
        return None
    names = statement_names(branch.domain)
    one = scop.statement(names[0])
    counted = iterator_of(band.members[0].function, one.body)
    if counted is None or counted not in one.body.iterators[: len(one.blocks)]:
        return None
    block = one.blocks[: one.body.iterators.index(counted) + 1]
    own = _steps_by(band.members[0], names, block, scop)
    if own is None:
        return None
    branches, members, steps = [branch], [band.members[0]], dict(own)
    for earlier in reversed(sequence.filters[:last]):
        found = _independent(earlier, block, scop)
        if found is None:
            break
        branches.insert(0, earlier)
        members.insert(0, found[0])
        steps |= found[1]
    return _Group(sequence, around, tuple(branches), tuple(members), steps) if len(branches) > 1 else None


def _independent(branch: Filter, block: tuple[int, ...], scop: Scop) -> tuple[Member, Mapping[str, str]] | None:
    """The loop of the branch over the steps of a block, which it may run in any order."""
    band = branch.child
    if not isinstance(band, Band) or not band.permutable:
        return None
    for member in band.members:
        own = _steps_by(member, statement_names(branch.domain), block, scop) if member.coincident else None
        if own is not None:
            return member, own
    return None


def _steps_by(member: Member, names: Items[str], block: tuple[int, ...], scop: Scop) -> Mapping[str, str] | None:
    """By statement, its iterator that counts the steps of the block; None where the loop does not run them in order."""
    steps: dict[str, str] = {}
    for name in names:
        statement = scop.statement(name)
        if statement.blocks[: len(block)] != block:
            return None
        step = statement.body.iterators[len(block) - 1]
        if iterator_of(member.function, statement.body) != step:
            return None
        steps[name] = step
    return steps


def _steps_of(temporary: Buffer, group: _Group, scop: Scop) -> int | None:
    """The dimension of a temporary that counts steps, where all statements that touch it do in their own step.

    None, too, where it lies within the steps anyway, and where its extents are open.
    """
    before = {name for branch in group.branches[:-1] for name in statement_names(branch.domain)}
    users = [statement for statement in scop.statements if touches(statement, temporary.name)]
    writers = {statement.name for statement in users if statement.body.target == temporary.name}
    if temporary.layout.extents or not writers or not writers <= before:
        return None
    if not all(statement.name in group.steps for statement in users):
        return None
    return next((n for n in range(len(temporary.layout.shape)) if _counts_steps(n, users, temporary, group)), None)


def _counts_steps(dimension: int, users: Items[ScopStatement], temporary: Buffer, group: _Group) -> bool:
    return all(
        subscripts[dimension] == IteratorReference(group.steps[statement.name])
        for statement in users
        for tensor, subscripts in accesses(statement.body)
        if tensor == temporary.name
    )


def _chunk_size(temporaries: Items[Buffer], steps: int) -> int:
    """How many steps a chunk has: as many as there is room for, and few left over; 0 for no chunks."""
    each = sum(math.prod(own.layout.shape) * own.layout.type.itemsize for own in temporaries) // steps
    most = _ROOM // max(1, each)
    if most < _LEAST_STEPS or most >= steps:
        return 0
    return next((size for size in range(most, most // 2, -1) if steps % size == 0), most)


@frozen
class _Chunked:
    """A group and the loop that it is below: the chunk of every instance."""

    group: _Group
    chunk: isl.UnionPwAff


def _in_order(chunked: _Chunked, dependences: Dependences) -> bool:
    """Whether the loop over chunks keeps all pairs in order.

    What branches that trade places leave in one chunk has changed its order.
    """
    branches = chunked.group.branches
    branch_of = {name: n for n, branch in enumerate(branches) for name in statement_names(branch.domain)}
    chunks = isl.UnionMap.from_union_pw_aff(chunked.chunk)
    below = dependences.below(chunked.group.around, branch_of.keys())
    for (source, sink), pairs in (*below.order.items(), *below.steps.items()):
        between = isl.UnionMap.from_map(pairs).apply_domain(chunks).apply_range(chunks)
        later = branch_of[source] > branch_of[sink]
        for found in maps_of(between):
            space = found.get_space().domain()
            if not found.is_subset(isl.Map.lex_lt(space) if later else isl.Map.lex_le(space)):
                return False
    return True


def _below_chunks(node: Node, chunked: Items[_Chunked]) -> Node:
    """The tree with the branches of each group below its loop over chunks."""
    match node:
        case Leaf() | Extension():
            return node
        case Band(child=child):
            return replace(node, child=_below_chunks(child, chunked))
        case Sequence(filters):
            first = {id(own.group.branches[0]): own for own in chunked if own.group.sequence is node}
            inside = {id(branch) for own in first.values() for branch in own.group.branches}
            done: list[Filter] = []
            for branch in filters:
                if id(branch) in first:
                    done.append(_loop_over_chunks(first[id(branch)]))
                elif id(branch) not in inside:
                    done.append(replace(branch, child=_below_chunks(branch.child, chunked)))
            return Sequence(tuple(done)) if len(done) > 1 else done[0].child
        case _:
            assert_never(node)


def _loop_over_chunks(own: _Chunked) -> Filter:
    group = own.group
    together = reduce(isl.UnionSet.union, (branch.domain for branch in group.branches))
    independent = map(_steps_inside, group.branches[:-1], group.members)
    loop = Member(own.chunk, coincident=False, chunks=True)
    return Filter(together, Band((loop,), permutable=False, child=Sequence((*independent, group.branches[-1]))))


def _steps_inside(branch: Filter, steps: Member) -> Filter:
    """The branch with its loop over steps behind all other independent ones: these share operands of reductions."""
    band = branch.child
    assert isinstance(band, Band)
    others = [member for member in band.members if member is not steps]
    independent = sum(member.coincident for member in others)
    # Coincident members stand before the others.
    others.insert(independent, steps)
    return replace(branch, child=replace(band, members=tuple(others)))
