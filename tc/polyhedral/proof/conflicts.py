"""Pairs of instances that touch one place, and what must hold of their times in every execution.

They are derived here from the accesses themselves; no dependence code is shared with the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Sequence as Items
from dataclasses import dataclass
from enum import Enum
from itertools import combinations_with_replacement, product

import islpy as isl

from tc.polyhedral.ir.loops import Sharing
from tc.polyhedral.ir.scop import Promotion, Scop, ScopStatement
from tc.polyhedral.proof.steps import steps_of
from tc.polyhedral.proof.verify_rotation import slot_pairs


class Rule(Enum):
    """What must tell the two ends of a conflicting pair apart."""

    IN_ORDER = "the first end runs earlier"
    APART = "either end runs earlier"
    APART_OR_LANES = "either end runs earlier, or lanes hold both"
    IN_ORDER_IN_BLOCK = "the first end runs earlier, if one block runs both"


@dataclass(frozen=True)
class Conflict:
    """Pairs of instances, and what must hold of their times.

    ``in_tensors``: both ends touch the element in its tensor, and not in a buffer that stands for it.  Then threads
    must not race there; at places of buffers ``verify_threads`` looks itself, whatever they stand for.
    """

    pairs: isl.UnionMap
    rule: Rule
    in_tensors: bool = False


@dataclass(frozen=True)
class Meeting:
    """Pairs of instances that touch one place of memory that threads share, at least one writing.

    ``in_lanes``: it is one that lanes share.
    """

    pairs: isl.UnionMap
    in_lanes: bool = False


def meetings_of(scop: Scop) -> tuple[Meeting, ...]:
    """All in buffers that threads share, whatever these stand for at the time.

    But lanes are in step with each other from one array to the next.
    """
    found: list[Meeting] = []
    for promotion in scop.promotions:
        sharing = promotion.buffer.sharing
        if sharing is Sharing.THREAD:
            continue
        places = [
            (access.place if sharing is Sharing.BLOCK else access.location, access.writes)
            for statement in scop.statements
            for access in statement.promoted
            if access.buffer == promotion.buffer.name
        ]
        for (place, writes), (other, other_writes) in combinations_with_replacement(places, 2):
            if writes or other_writes:
                # Numbers of copies are less than what their remainders are of, which isl sees if it is asked.
                pairs = place.apply_range(other.reverse()).detect_equalities()
                found.append(Meeting(isl.UnionMap.from_map(pairs), in_lanes=sharing is Sharing.LANES))
    return tuple(sorted(found, key=lambda meeting: meeting.in_lanes))


def conflicts_of(scop: Scop) -> tuple[Conflict, ...]:
    """Pairs of different statements, earlier statement first; of one statement; and of one buffer's copies.

    In a block, whatever runs in an earlier step of it is earlier; in one step, the earlier statement is.  Within a
    statement, steps are in order; but what only combines terms into its target may do so in any order, and
    at the same time where each does so in one step.
    """
    empty = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    between, within = {True: empty, False: empty}, {True: empty, False: empty}  # in tensors, or not
    copies, buffers = empty, empty
    touching = [_touching(scop, statement) for statement in scop.statements]
    for position, first in enumerate(touching):
        for in_tensors, pairs in _pairs(first.accesses, first.accesses):
            if first.statement.accumulates and not _updates_at_once(first):
                within[in_tensors] = within[in_tensors].union(isl.UnionMap.from_map(pairs))
            if first.statement.blocks and not _only_combines(first):
                steps = pairs.intersect(isl.Map.lex_lt_first(pairs.get_space(), len(first.statement.blocks)))
                between[in_tensors] = between[in_tensors].union(isl.UnionMap.from_map(steps))
        for second in touching[position + 1 :]:
            for in_tensors, pairs in (*_pairs(first.accesses, second.accesses), *_copy_pairs(first, second)):
                for ordered in _in_program_order(pairs, first, second):
                    between[in_tensors] = between[in_tensors].union(isl.UnionMap.from_map(ordered))
            for pairs in _buffer_pairs(first, second):
                buffers = buffers.union(isl.UnionMap.from_map(pairs))
    for promotion in scop.promotions:
        for pairs in _store_pairs(scop, promotion):
            copies = copies.union(isl.UnionMap.from_map(pairs))
        for pairs in slot_pairs(scop, promotion):
            buffers = buffers.union(isl.UnionMap.from_map(pairs))
    return (
        *(Conflict(pairs, Rule.IN_ORDER, in_tensors) for in_tensors, pairs in between.items()),
        Conflict(buffers, Rule.IN_ORDER),
        *(Conflict(pairs.coalesce(), Rule.APART_OR_LANES, in_tensors) for in_tensors, pairs in within.items()),
        Conflict(copies, Rule.APART, in_tensors=True),
    )


@dataclass(frozen=True)
class _Access:
    """One of a statement, in the sense of the program; ``past``: past all buffers, to the tensor itself."""

    relation: isl.Map
    tensor: str
    writes: bool
    past: bool


@dataclass(frozen=True)
class _Touching:
    """What a statement touches; ``copied``: the buffer that it fills or empties, if it is a copy.

    ``accesses``: all in the sense of the program.  ``in_tensors``: those to tensors themselves: a copy's, and what is
    not promoted.  ``blocks``: that it stands in, as the program has them; ``steps``: ``{ instance -> [steps] }`` of
    these (``tc.polyhedral.proof.steps``).
    """

    statement: ScopStatement
    copied: str | None
    accesses: Items[_Access]
    in_tensors: Items[_Access]
    blocks: tuple[int, ...]
    steps: isl.Map


def _touching(scop: Scop, statement: ScopStatement) -> _Touching:
    copied = next((p.buffer.name for p in scop.promotions if statement.name in (p.loads, p.stores)), None)
    accesses = _accesses(statement)
    blocks, steps = steps_of(scop, statement)
    if copied is None:
        in_tensors = [access for access in accesses if access.past]
    elif len(statement.promoted) > 1:
        in_tensors = []  # from one buffer to another
    else:
        in_tensors = [_access(own.element, writes=not own.writes, past=True) for own in statement.promoted]
    return _Touching(statement, copied, accesses, in_tensors, blocks, steps)


def _access(relation: isl.Map, *, writes: bool, past: bool) -> _Access:
    return _Access(relation, str(relation.get_tuple_name(isl.dim_type.out)), writes, past)


def _accesses(statement: ScopStatement) -> list[_Access]:
    """All of them; what is read where the same is written, and in the same memory, conflicts with nothing else."""
    found: list[_Access] = []
    for relations, writes in ((statement.writes, True), (statement.reads, False)):
        promoted = [access.element for access in statement.promoted if (access.writes if writes else access.reads)]
        for relation in relations:
            past = not any(relation.is_equal(element) for element in promoted)
            if not any(past == own.past and relation.is_equal(own.relation) for own in found):
                found.append(_access(relation, writes=writes, past=past))
    return found


def _pairs(first: Items[_Access], second: Items[_Access]) -> Iterator[tuple[bool, isl.Map]]:
    """Pairs that touch one element, at least one of them writing; and whether both do so in the tensor."""
    for a, b in product(first, second):
        if (a.writes or b.writes) and a.tensor == b.tensor:
            yield a.past and b.past, a.relation.apply_range(b.relation.reverse())


def _in_program_order(pairs: isl.Map, first: _Touching, second: _Touching) -> Iterator[isl.Map]:
    """The pairs of instances of two statements, the second behind the first in the program, with the earlier end first.

    In blocks that both stand in, the first step that differs decides.
    """
    shared = 0
    while shared < min(len(first.blocks), len(second.blocks)) and first.blocks[shared] == second.blocks[shared]:
        shared += 1
    if shared == 0:
        yield pairs
        return
    steps, others = (
        own.steps.project_out(isl.dim_type.out, shared, own.steps.dim(isl.dim_type.out) - shared)
        for own in (first, second)
    )
    later = isl.Map.lex_gt(steps.get_space().range())
    behind = steps.apply_range(later).apply_range(others.reverse())
    yield pairs.subtract(behind)
    yield pairs.intersect(behind).reverse()


def _only_combines(touching: _Touching) -> bool:
    """Whether the statement reads its target only to combine a term into the element that it writes."""
    statement = touching.statement
    targets = [relation.get_tuple_name(isl.dim_type.out) for relation in statement.writes]
    own = [relation for relation in statement.reads if relation.get_tuple_name(isl.dim_type.out) in targets]
    return statement.accumulates and len(own) == len(targets)


def _updates_at_once(touching: _Touching) -> bool:
    """Whether instances may combine terms into one element at the same time, in the tensor itself."""
    return (
        touching.statement.body.atomic
        and touching.statement.body.reduction is not None
        and _only_combines(touching)
        and not any(access.writes for access in touching.statement.promoted)
    )


def _buffer_pairs(first: _Touching, second: _Touching) -> list[isl.Map]:
    """Pairs of a copy and another statement that touch one place of a buffer, at least one of them writing.

    Two others at one place touch the element that it stands for, too, which is proven elsewhere
    (``tc.polyhedral.proof.verify_statements`` and ``tc.polyhedral.proof.verify_promotion``).
    """
    if first.copied is None and second.copied is None:
        return []
    return [
        a.location.apply_range(b.location.reverse())
        for a in first.statement.promoted
        for b in second.statement.promoted
        if a.buffer == b.buffer and (a.writes or b.writes)
    ]


def _copy_pairs(first: _Touching, second: _Touching) -> Iterator[tuple[bool, isl.Map]]:
    """Pairs of a copy and an access past its buffer that touch one element of the tensor, at least one writing."""
    if first.copied == second.copied:
        return iter(())
    return _pairs(first.in_tensors, second.in_tensors)


def _store_pairs(scop: Scop, promotion: Promotion) -> list[isl.Map]:
    """Pairs of a store and another store, or a load, of one element: which is first follows from what they copy."""
    copies = [s for s in scop.statements if s.name in (promotion.loads, promotion.stores)]
    found: list[isl.Map] = []
    for store, other in product(copies, copies):
        if store.name == promotion.stores:
            pairs = store.promoted[0].element.apply_range(other.promoted[0].element.reverse())
            found.append(_without_identity(pairs) if other is store else pairs)
    return found


def own_pairs(statement: ScopStatement) -> isl.Map:
    """Pairs of instances of the statement, in one step of its blocks, that touch one element, at least one writing."""
    space = statement.domain.get_space().map_from_set()
    pairs, accesses, depth = isl.Map.empty(space), _accesses(statement), len(statement.blocks)
    for _, relation in _pairs(accesses, accesses):
        pairs = pairs.union(relation)
    if depth:
        pairs = pairs.intersect(isl.Map.lex_le_first(space, depth)).intersect(isl.Map.lex_ge_first(space, depth))
    return pairs.coalesce()


def _without_identity(pairs: isl.Map) -> isl.Map:
    same = pairs.domain().identity()
    return isl.Map.empty(pairs.get_space()) if pairs.is_subset(same) else pairs.subtract(same)


def different(pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of two instances; no instance is in conflict with itself."""
    same = pairs.domain().identity()
    return isl.UnionMap.empty(pairs.get_space()) if pairs.is_subset(same) else pairs.subtract(same)
