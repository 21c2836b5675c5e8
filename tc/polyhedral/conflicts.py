"""Pairs of instances that touch one place, and what must hold of their times in every execution.

They are derived here from the accesses themselves; no dependence code is shared with the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from itertools import product

import islpy as isl

from tc.polyhedral.scop import Promotion, Scop, ScopStatement
from tc.polyhedral.verify_rotation import slot_pairs


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


def conflicts_of(scop: Scop) -> tuple[Conflict, ...]:
    """Pairs of different statements, earlier statement first; of one reducing statement; and of one buffer's copies."""
    empty = isl.UnionMap.empty(isl.Space.params_alloc(scop.context, 0))
    between, within = {True: empty, False: empty}, {True: empty, False: empty}  # in tensors, or not
    copies, buffers = empty, empty
    for position, first in enumerate(scop.statements):
        if first.accumulates:
            for in_tensors, pairs in _pairs(first, first):
                within[in_tensors] = within[in_tensors].union(isl.UnionMap.from_map(pairs))
        for second in scop.statements[position + 1 :]:
            copied = ((True, pairs) for pairs in _copy_pairs(scop, first, second))
            for in_tensors, pairs in (*_pairs(first, second), *copied):
                between[in_tensors] = between[in_tensors].union(isl.UnionMap.from_map(pairs))
            for pairs in _buffer_pairs(scop, first, second):
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


def _pairs(first: ScopStatement, second: ScopStatement) -> Iterator[tuple[bool, isl.Map]]:
    """Pairs that touch one element, at least one of them writing; and whether both do so in the tensor."""
    for (a, first_writes, outside), (b, second_writes, also_outside) in product(_accesses(first), _accesses(second)):
        if (first_writes or second_writes) and _touch_one_tensor(a, b):
            yield outside and also_outside, a.apply_range(b.reverse())


def _accesses(statement: ScopStatement) -> list[tuple[isl.Map, bool, bool]]:
    """All of them in the sense of the program; whether each writes, and whether it does so past all buffers.

    What is read where the same is written, and in the same memory, conflicts with nothing else.
    """
    found: list[tuple[isl.Map, bool, bool]] = []
    for relations, writes in ((statement.writes, True), (statement.reads, False)):
        promoted = [access.element for access in statement.promoted if (access.writes if writes else access.reads)]
        for relation in relations:
            past = not any(relation.is_equal(element) for element in promoted)
            if not any(past == own and relation.is_equal(written) for written, _, own in found):
                found.append((relation, writes, past))
    return found


def _buffer_pairs(scop: Scop, first: ScopStatement, second: ScopStatement) -> list[isl.Map]:
    """Pairs of a copy and another statement that touch one place of a buffer, at least one of them writing.

    Two others at one place touch the element that it stands for, too, which is proven elsewhere
    (``tc.polyhedral.verify_statements`` and ``tc.polyhedral.verify_promotion``).
    """
    if _copied(scop, first) is None and _copied(scop, second) is None:
        return []
    return [
        a.location.apply_range(b.location.reverse())
        for a in first.promoted
        for b in second.promoted
        if a.buffer == b.buffer and (a.writes or b.writes)
    ]


def _copy_pairs(scop: Scop, first: ScopStatement, second: ScopStatement) -> list[isl.Map]:
    """Pairs of a copy and an access past its buffer that touch one element of the tensor, at least one writing."""
    buffers = [_copied(scop, statement) for statement in (first, second)]
    if buffers == [None, None] or buffers[0] == buffers[1]:
        return []
    past = [_past_buffers(scop, statement) for statement in (first, second)]
    return [
        a.apply_range(b.reverse())
        for a, first_writes in past[0]
        for b, second_writes in past[1]
        if (first_writes or second_writes) and _touch_one_tensor(a, b)
    ]


def _store_pairs(scop: Scop, promotion: Promotion) -> list[isl.Map]:
    """Pairs of a store and another store, or a load, of one element: which is first follows from what they copy."""
    copies = [s for s in scop.statements if s.name in (promotion.loads, promotion.stores)]
    found: list[isl.Map] = []
    for store, other in product(copies, copies):
        if store.name == promotion.stores:
            pairs = store.promoted[0].element.apply_range(other.promoted[0].element.reverse())
            found.append(pairs.subtract(pairs.domain().identity()) if other is store else pairs)
    return found


def _copied(scop: Scop, statement: ScopStatement) -> str | None:
    """The buffer that the statement fills or empties, if it is a copy."""
    return next((p.buffer.name for p in scop.promotions if statement.name in (p.loads, p.stores)), None)


def _past_buffers(scop: Scop, statement: ScopStatement) -> list[tuple[isl.Map, bool]]:
    """Accesses to tensors themselves, and whether each writes: a copy's, and what is not promoted."""
    if _copied(scop, statement) is not None:
        if len(statement.promoted) > 1:
            return []  # from one buffer to another
        return [(access.element, not access.writes) for access in statement.promoted]
    return [(relation, writes) for relation, writes, past in _accesses(statement) if past]


def _touch_one_tensor(first: isl.Map, second: isl.Map) -> bool:
    return bool(first.get_tuple_name(isl.dim_type.out) == second.get_tuple_name(isl.dim_type.out))


def own_pairs(statement: ScopStatement) -> isl.Map:
    """Pairs of instances of the statement that touch one element, at least one of them writing."""
    pairs = isl.Map.empty(statement.domain.get_space().map_from_set())
    for _, relation in _pairs(statement, statement):
        pairs = pairs.union(relation)
    return pairs.coalesce()


def different(pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of two instances; no instance is in conflict with itself."""
    return pairs.subtract(pairs.domain().identity())
