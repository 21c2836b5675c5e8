"""The proof that a mapped program means what the definition says.

Shown with isl, for a schedule tree and again for the loop tree made of it:

1. every instance of every statement runs exactly once, and nothing else runs;
2. every conflicting pair of instances runs in program order, and never at the same time; instances of one reducing
   statement may run in any order, but not at the same time (unless lanes keep their partial results apart);
3. every access stays inside its buffer;
4. a promoted access finds in its buffer the element that it stands for (``tc.polyhedral.verify_promotion``), what is
   copied asynchronously has arrived (``tc.polyhedral.verify_rotation``), and what is in a register of another thread is
   in its warp, which takes part (``tc.polyhedral.verify_lanes``).

That the statements themselves are still those of the program is ``tc.polyhedral.verify_statements``.

Conflicts are derived here from the accesses themselves; no dependence code is shared with the scheduler.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from enum import Enum
from itertools import product
from typing import TypeAlias

import islpy as isl

from tc.errors import VerificationError
from tc.language.affine import Frame, isl_name, parameter_name
from tc.language.specialization import Extent, Layout, Sizes
from tc.polyhedral.counterexample import Counterexample, Violation, pair_text, point_text
from tc.polyhedral.distances import distances_of, equal, first_earlier, first_later, is_plainly_zero, times_at
from tc.polyhedral.execution import Concurrency, Execution
from tc.polyhedral.scop import PromotedAccess, Promotion, Scop, ScopStatement
from tc.polyhedral.verify_lanes import check_lanes
from tc.polyhedral.verify_promotion import check_promotions
from tc.polyhedral.verify_rotation import awaited_pairs, slot_pairs
from tc.polyhedral.verify_threads import check_threads
from tc.proof import Proof


def prove(scop: Scop, execution: Execution, stage: str, conflicts: Conflicts | None = None) -> Proof:
    """The proof; VerificationError with a witness where it fails.

    ``conflicts``: ``conflicts_of(scop)``, for one of several proofs.
    """
    pairs = conflicts_of(scop) if conflicts is None else conflicts
    found = _find_counterexample(scop, execution, pairs)
    if found is not None:
        raise VerificationError(f"the {stage} is not proven correct: {found}")
    accesses = sum(len(s.reads) + len(s.writes) + len(s.promoted) for s in scop.statements)
    return Proof(len(scop.statements), sum(some.pairs.n_map() for some in pairs), accesses, execution.leaves)


def find_counterexample(scop: Scop, execution: Execution) -> Counterexample | None:
    """The first failure of the proof, or None: the execution is correct."""
    return _find_counterexample(scop, execution, conflicts_of(scop))


def _find_counterexample(scop: Scop, execution: Execution, conflicts: Conflicts) -> Counterexample | None:
    return (
        _check_instances(scop, execution)
        or _check_bounds(scop)
        or _check_order(scop, execution, conflicts)
        or _check_awaits(scop, execution)
        or check_threads(scop, execution, [conflict.pairs for conflict in conflicts if conflict.in_tensors])
        or check_promotions(scop, execution)
        or check_lanes(scop, execution)
    )


# --- 1. exactly once -----------------------------------------------------------------------------------------


def _check_instances(scop: Scop, execution: Execution) -> Counterexample | None:
    for where in execution.misuse:
        return Counterexample(Violation.MISUSED_DIVISION, str(where.sample()).strip("{ }"))
    running = execution.running
    missing = scop.domain.subtract(running)
    if not missing.is_empty():
        return Counterexample(Violation.MISSING, point_text(missing))
    foreign = running.subtract(scop.domain)
    if not foreign.is_empty():
        return Counterexample(Violation.FOREIGN, point_text(foreign))
    if not (execution.once or execution.times.is_single_valued()):
        twice = execution.times.reverse().apply_range(execution.times)  # { time -> other time of the same instance }
        different = twice.subtract(twice.domain().identity())
        repeated = execution.times.intersect_range(different.domain()).domain()
        return Counterexample(Violation.REPEATED, point_text(repeated))
    return None


# --- 2. order ------------------------------------------------------------------------------------------------


class _Rule(Enum):
    """What must tell the two ends of a conflicting pair apart."""

    IN_ORDER = "the first end runs earlier"
    APART = "either end runs earlier"
    APART_OR_LANES = "either end runs earlier, or lanes hold both"
    IN_ORDER_IN_BLOCK = "the first end runs earlier, if one block runs both"


def _check_order(scop: Scop, execution: Execution, conflicts: Conflicts) -> Counterexample | None:
    for some in conflicts:
        found = _check_pairs(some.pairs, execution, some.rule)
        if found is not None:
            return found
    for statement in scop.statements:
        if not statement.accumulates:
            twice = _different(isl.UnionMap.from_map(_own_pairs(statement)))
            if not twice.is_empty():
                return Counterexample(Violation.WRITTEN_TWICE, pair_text(twice))
    return None


@dataclass(frozen=True)
class Conflict:
    """Pairs of instances, and what must hold of their times.

    ``in_tensors``: both ends touch the element in its tensor, and not in a buffer that stands for it.  Then threads
    must not race there; at places of buffers ``verify_threads`` looks itself, whatever they stand for.
    """

    pairs: isl.UnionMap
    rule: _Rule
    in_tensors: bool = False


Conflicts: TypeAlias = tuple[Conflict, ...]


def conflicts_of(scop: Scop) -> Conflicts:
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
        *(Conflict(pairs, _Rule.IN_ORDER, in_tensors) for in_tensors, pairs in between.items()),
        Conflict(buffers, _Rule.IN_ORDER),
        *(Conflict(pairs.coalesce(), _Rule.APART_OR_LANES, in_tensors) for in_tensors, pairs in within.items()),
        Conflict(copies, _Rule.APART, in_tensors=True),
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


def _own_pairs(statement: ScopStatement) -> isl.Map:
    """Pairs of instances of the statement that touch one element, at least one of them writing."""
    pairs = isl.Map.empty(statement.domain.get_space().map_from_set())
    for _, relation in _pairs(statement, statement):
        pairs = pairs.union(relation)
    return pairs.coalesce()


def _different(pairs: isl.UnionMap) -> isl.UnionMap:
    """The pairs of two instances; no instance is in conflict with itself."""
    return pairs.subtract(pairs.domain().identity())


def _check_pairs(pairs: isl.UnionMap, execution: Execution, rule: _Rule) -> Counterexample | None:
    """Whether the times of all pairs are as the rule has it.

    Every instance has one time, so pairs of times stand for pairs of instances; they stay few where unrolled loops have
    many leaves.
    """
    for instances in _maps(pairs):
        first, second = (
            execution.times_of(instances.get_tuple_name(side)) for side in (isl.dim_type.in_, isl.dim_type.out)
        )
        if first is None or second is None:
            continue  # one of them never runs, which is said elsewhere
        count = _settled(first, second, execution.dimensions)
        begun, ended = (_first_dimensions(times, count) for times in (first, second))
        times = instances.apply_domain(begun).apply_range(ended)
        wrong = _wrong_distances(distances_of(times), execution.dimensions[:count], rule)
        if wrong is not None:
            violation, found = wrong
            # Instances are taken out here, where few pairs are left: to leave them out of all is to take all apart.
            apart = times.intersect(times_at(found))
            ends = apart.apply_domain(begun.reverse()).apply_range(ended.reverse()).intersect(instances)
            witness = _different(isl.UnionMap.from_map(ends))
            if not witness.is_empty():
                return Counterexample(violation, pair_text(witness))
    return None


def _settled(first: isl.Map, second: isl.Map, dimensions: Items[Concurrency]) -> int:
    """How many dimensions there are up to one that tells all instances of two statements apart, whatever they are."""
    for position, concurrency in enumerate(dimensions):
        if concurrency is Concurrency.ORDERED:
            ends = [_fixed(times, position) for times in (first, second)]
            if None not in ends and ends[0] != ends[1]:
                return position + 1
    return len(dimensions)


def _first_dimensions(times: isl.Map, count: int) -> isl.Map:
    return times.project_out(isl.dim_type.out, count, times.dim(isl.dim_type.out) - count)


def _maps(union: isl.UnionMap) -> list[isl.Map]:
    maps: list[isl.Map] = []
    union.foreach_map(maps.append)
    return maps


def _wrong_distances(
    distances: isl.Set, dimensions: Items[Concurrency], rule: _Rule
) -> tuple[Violation, isl.Set] | None:
    """Walk the time dimensions outside in; a pair is settled at the first one that tells its ends apart.

    What must be in order must be so on all threads.  That it does not happen at the same time on two of them, and what
    need not be in order, is for ``verify_threads``.
    """
    same_block, lanes = rule is _Rule.IN_ORDER_IN_BLOCK, rule is _Rule.APART_OR_LANES
    strict = same_block or rule is _Rule.IN_ORDER
    threads: list[int] = []
    for position, concurrency in enumerate(dimensions):
        if is_plainly_zero(distances, position):
            continue  # most levels of most pairs: positions in a sequence, and the padding of short paths
        if concurrency is Concurrency.THREADS and strict:
            threads.append(position)
            continue
        if concurrency is Concurrency.THREADS or (concurrency is Concurrency.BLOCKS and same_block):
            distances = equal(distances, position)
            if distances.is_empty():
                return None
            continue
        separates = concurrency is Concurrency.ORDERED or (concurrency is Concurrency.LANES and lanes)
        if strict or not separates:
            later = first_later(distances, position)
            if not later.is_empty():
                return Violation.REORDERED if separates else Violation.CONCURRENT, later
        if not separates:
            earlier = first_earlier(distances, position)
            if not earlier.is_empty():
                return Violation.CONCURRENT, earlier
        distances = equal(distances, position)
        if distances.is_empty():
            return None
    for position in threads:
        distances = equal(distances, position)
    return None if distances.is_empty() else (Violation.CONCURRENT, distances)


def _fixed(times: isl.Map, position: int) -> int | None:
    """The value of a dimension of time where it plainly has one only."""
    value = times.plain_get_val_if_fixed(isl.dim_type.out, position)
    return int(value.to_python()) if value.is_int() else None


def _check_awaits(scop: Scop, execution: Execution) -> Counterexample | None:
    """Whether copies that end by themselves have ended before anybody needs what they copy, or where it lies."""
    rotating = {p.loads: p for p in scop.promotions if p.rotation is not None and p.loads is not None}
    for name in sorted(scop.awaits.keys() - rotating.keys()):
        return Counterexample(Violation.NOT_AWAITED, name)
    for promotion in rotating.values():
        unknown, pairs = awaited_pairs(scop, promotion)
        if unknown is not None:
            return Counterexample(Violation.NOT_AWAITED, unknown)
        for number, needed in enumerate(pairs):
            rule = _Rule.IN_ORDER if number < 2 else _Rule.IN_ORDER_IN_BLOCK
            found = _check_pairs(isl.UnionMap.from_map(needed), execution, rule)
            if found is not None:
                return Counterexample(Violation.NOT_AWAITED, found.witness)
    return None


# --- 3. bounds -----------------------------------------------------------------------------------------------


def _check_bounds(scop: Scop) -> Counterexample | None:
    promoted = (promotion.buffer for promotion in scop.promotions)
    layouts = {isl_name(buffer.name): buffer.layout for buffer in (*scop.buffers, *scop.temporaries, *promoted)}
    boxes, promotions = _Boxes(layouts, scop.sizes), {p.buffer.name: p for p in scop.promotions}
    for statement in scop.statements:
        for relation in (*statement.reads, *statement.writes):
            outside = relation.subtract_range(boxes.box(relation))
            if not outside.is_empty():
                return Counterexample(Violation.OUT_OF_BOUNDS, pair_text(isl.UnionMap.from_map(outside)))
        for access in statement.promoted:
            promotion = promotions.get(access.buffer)
            if promotion is None:
                return Counterexample(Violation.WRONG_SCOPE, f"{statement.name}: nothing allocates {access.buffer}")
            found = _check_promoted_bounds(access, promotion, boxes)
            if found is not None:
                return found
    return next(filter(None, (_check_gathered(scop, p) for p in scop.promotions if p.gathered is not None)), None)


def _check_gathered(scop: Scop, promotion: Promotion) -> Counterexample | None:
    """Whether tables and indices stay as they are, and only such elements are copied as statements read.

    Where they do, the subscripts are known to be inside.
    """
    assert promotion.gathered is not None
    written = {relation.get_tuple_name(isl.dim_type.out) for s in scop.statements for relation in s.writes}
    for tensor in promotion.gathered.tensors:
        if isl_name(tensor) in written or all(buffer.name != tensor for buffer in scop.buffers):
            return Counterexample(Violation.BYPASSED, f"{promotion.buffer.name}: {tensor} is not constant")
    uses = [(s, a) for s in scop.statements for a in s.promoted if a.buffer == promotion.buffer.name]
    read = isl.Set.empty(promotion.elements.range().get_space())
    for statement, access in uses:
        if statement.name != promotion.loads:
            read = read.union(access.element.range())
    for _, access in uses:
        outside = access.element.subtract_range(read)
        if not outside.is_empty():
            return Counterexample(Violation.OUT_OF_BOUNDS, pair_text(isl.UnionMap.from_map(outside)))
    return None


def _check_promoted_bounds(access: PromotedAccess, promotion: Promotion, boxes: _Boxes) -> Counterexample | None:
    place = access.place.set_tuple_name(isl.dim_type.out, access.buffer)
    # What is gathered is no tensor; ``_check_gathered`` looks at its elements.
    for relation in (place, access.element) if promotion.gathered is None else (place,):
        outside = relation.subtract_range(boxes.box(relation))
        if not outside.is_empty():
            return Counterexample(Violation.OUT_OF_BOUNDS, pair_text(isl.UnionMap.from_map(outside)))
    return None


@dataclass(frozen=True)
class _Boxes:
    """All elements that buffers have, for every value of the symbolic sizes."""

    layouts: Mapping[str, Layout]
    sizes: Sizes

    def box(self, relation: isl.Map) -> isl.Set:
        """Of the buffer that the relation leads to."""
        layout = self.layouts[relation.get_tuple_name(isl.dim_type.out)]
        box = isl.Set.universe(relation.get_space().range())
        for position, extent in enumerate(layout.shape):
            box = box.lower_bound_val(isl.dim_type.set, position, isl.Val.zero(relation.get_ctx()))
            box = box.upper_bound_val(isl.dim_type.set, position, isl.Val.int_from_si(relation.get_ctx(), extent - 1))
        return box if layout.first is None else box.intersect(self._below(layout.first, box))

    def _below(self, extent: Extent, box: isl.Set) -> isl.Set:
        """Where the first subscript is below an extent that depends on sizes."""
        names = tuple(f"d{n}" for n in range(box.dim(isl.dim_type.set)))
        frame = Frame(box.get_ctx(), box.get_tuple_name(), names, sizes=self.sizes)
        end = frame.constant(extent.constant)
        for (name, _), factor in zip(self.sizes, extent.factors, strict=True):
            end = end.add(frame.require(parameter_name(name)).mul(frame.constant(factor)))
        return frame.require(names[0]).lt_set(end)
