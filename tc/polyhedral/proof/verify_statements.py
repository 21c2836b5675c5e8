"""Proof that passes preserve statements, and that copies copy what they claim to.

Later proofs start from the statements that passes return.  Passes may only add copies and redirect accesses to buffers:
undoing that must give the statements of the program.
"""

from __future__ import annotations

from collections.abc import Sequence as Items
from dataclasses import replace
from typing import TypeAlias

import islpy as isl

from tc.base.errors import VerificationError
from tc.language.isl.affine import Frame, access_function, access_relation, affine_function
from tc.language.program.extent import Extent
from tc.language.program.guards import guarded_reads
from tc.language.program.program import Expression, IteratorReference, Read, rebuild
from tc.polyhedral.analysis.reads import value_reads
from tc.polyhedral.ir.counterexample import Counterexample, Violation
from tc.polyhedral.ir.loops import StatementBody
from tc.polyhedral.ir.scop import PromotedAccess, Promotion, Scop, ScopStatement


def prove_statements(program: Scop, scop: Scop) -> None:
    """VerificationError where ``scop`` is not ``program`` with promotions."""
    found = find_changed_statement(program, scop)
    if found is not None:
        raise VerificationError(f"the statements are not proven correct: {found}")


def find_changed_statement(program: Scop, scop: Scop) -> Counterexample | None:
    """The first difference, or None."""
    copies = {name for promotion in scop.promotions for name in (promotion.loads, promotion.stores)}
    found = [statement.name for statement in scop.statements]
    kept = [statement for statement in scop.statements if statement.name not in copies]
    wanted = [statement.name for statement in program.statements]
    if len(set(found)) < len(found) or [statement.name for statement in kept] != wanted:
        return Counterexample(Violation.CHANGED, f"{', '.join(found)} instead of {', '.join(wanted)}")
    if (scop.buffers, scop.temporaries) != (program.buffers, program.temporaries):
        return Counterexample(Violation.CHANGED, "other tensors")
    for old, new in zip(program.statements, kept, strict=True):
        if not (_same_relations(old, new) and _restored(old, new, scop) == old.body):
            return Counterexample(Violation.CHANGED, new.name)
    for statement in scop.statements:
        if statement.name in copies and not _is_copy(statement, scop):
            return Counterexample(Violation.CHANGED, statement.name)
    return None


def _same_relations(old: ScopStatement, new: ScopStatement) -> bool:
    relations = ((old.reads, new.reads), (old.writes, new.writes))
    return (
        (old.accumulates, old.blocks) == (new.accumulates, new.blocks)
        and old.domain.is_equal(new.domain)
        and all(len(before) == len(after) for before, after in relations)
        and all(a.is_equal(b) for before, after in relations for a, b in zip(before, after, strict=True))
    )


def _restored(old: ScopStatement, new: ScopStatement, scop: Scop) -> StatementBody | None:
    """The body with its accesses to buffers taken back; None where one is not what the statement promoted."""
    count = old.domain.dim(isl.dim_type.set)
    original = value_reads(old.body)
    places, target = _places(new, count)
    frame = Frame(new.domain.get_ctx(), old.name, old.body.iterators, sizes=scop.sizes)
    conditions = [own.guards for own in guarded_reads(old.body.value)]
    positions = iter(range(len(original)))
    gathers = {p.buffer.name: p.gathered for p in scop.promotions if p.gathered is not None}
    uses = 0

    def restore(expression: Expression) -> Expression:
        nonlocal uses
        position = next(positions, None) if isinstance(expression, Read) else None
        if not isinstance(expression, Read) or position is None:
            return rebuild(expression, restore)
        accesses = places.get((expression.tensor, expression.subscripts))
        if accesses is None:
            return rebuild(expression, restore)
        read, gathered = original[position], gathers.get(expression.tensor)
        # In a buffer without dimensions, several have the same place: each of them stands for one read, in order.
        access = accesses.pop(0) if len(accesses) > 1 else accesses[0]
        if gathered is not None:
            for _ in range(gathered.inside):
                next(positions, None)
            same = (gathered.read, gathered.iterators) == (read, old.body.iterators) and expression.type is read.type
            # What is read on a condition is not known to be there otherwise.
            always = not conditions[position]
            uses += access.reads and same and always and access.element.is_equal(gathered.relation(old.domain))
            return read
        # Subscripts that are not affine are checked when they run, which a buffer's are not.
        affine = all(affine_function(subscript, frame) is not None for subscript in read.subscripts)
        same = expression.type is read.type and access.element.is_equal(new.reads[position])
        uses += access.reads and affine and same
        return read

    body = replace(new.body, iterators=new.body.iterators[:count], value=restore(new.body.value))
    written = target.get((body.target, body.subscripts), [])
    if len(written) == 1:
        (access,) = written
        if any(affine_function(subscript, frame) is None for subscript in old.body.subscripts):
            return None  # which element it writes, and whether it does, only data say
        body = replace(body, target=old.body.target, subscripts=old.body.subscripts)
        uses += access.element.is_equal(new.writes[0]) and access.reads == (body.reduction is not None)
    return body if uses == len(new.promoted) else None


_Places: TypeAlias = dict[tuple[str, tuple[Expression, ...]], list[PromotedAccess]]


def _places(statement: ScopStatement, count: int) -> tuple[_Places, _Places]:
    """Promoted reads, and the promoted target, by buffer and subscripts: the iterators behind the first ``count``."""
    local = iter(statement.body.iterators[count:])
    reads: _Places = {}
    writes: _Places = {}
    for access in statement.promoted:
        subscripts = _references([next(local, "") for _ in range(access.place.dim(isl.dim_type.out))])
        (writes if access.writes else reads).setdefault((access.buffer, subscripts), []).append(access)
    return reads, writes


def _references(names: Items[str]) -> tuple[Expression, ...]:
    return tuple(IteratorReference(name) for name in names)


def _is_copy(copy: ScopStatement, scop: Scop) -> bool:
    """Whether each instance copies its place of a buffer, and touches nothing else but the indices of a gather."""
    promotion = next(p for p in scop.promotions if copy.name in (p.loads, p.stores))
    body, loads = copy.body, copy.name == promotion.loads
    if copy.reads or copy.writes or copy.accumulates or body.reduction is not None:
        return False
    if len(copy.promoted) == 2:
        return loads and _is_copy_of_copy(copy, promotion, scop)
    if len(copy.promoted) != 1:
        return False
    (access,) = copy.promoted
    if not isinstance(body.value, Read) or (access.reads, access.writes) != (not loads, loads):
        return False
    ends = (body.value.tensor, body.value.subscripts), (body.target, body.subscripts)
    (tensor, outer), inside = ends if loads else ends[::-1]
    if promotion.gathered is not None:
        found = promotion.gathered.matched(body.value)
        if not loads or found is None:
            return False
        tensor, outer = promotion.gathered.name, found
    count, width = copy.domain.dim(isl.dim_type.set), access.element.dim(isl.dim_type.out)
    own, slot = body.iterators[:count], body.iterators[count:]
    shapes: dict[str, Items[int | Extent | None]] = {
        b.name: b.layout.bounds for b in (*scop.buffers, *scop.temporaries)
    }
    if promotion.gathered is not None:
        shapes[promotion.gathered.name] = [None] * width
    buffer, local = inside
    if tensor not in shapes or buffer != promotion.buffer.name or local[: len(slot)] != _references(slot):
        return False
    frame = Frame(scop.context, copy.name, own, sizes=scop.sizes, within=copy.domain)
    # In the array that the values of the prefix choose.
    within = local[len(slot) :]
    if access.panels is not None:
        names = own[access.depth :]
        cut = access.panels.dimension
        if len(slot) != 2 or within != _references([*names[:cut], *names[cut + 1 :]]):
            return False
        within = _references(names)
    subscripts = (*_references(own[: access.depth]), *within)
    return (
        len(subscripts) == access.depth + width
        and _is_access(access.element, tensor, outer, shapes[tensor], frame)
        and _is_access(access.location, buffer, subscripts, [None] * len(subscripts), frame)
    )


def _is_access(
    relation: isl.Map, tensor: str, subscripts: Items[Expression], extents: Items[int | Extent | None], frame: Frame
) -> bool:
    """Whether instances, all of the domain in the frame, touch what the subscripts say, and nothing else."""
    assert frame.within is not None
    touched = access_function(tensor, subscripts, frame)
    if touched is None:
        touched = access_relation(tensor, subscripts, extents, frame)
    # As a whole: the domain of the relation alone may take isl minutes, where copies choose what they touch.
    return bool(relation.is_equal(touched.intersect_domain(frame.within)))


def _is_copy_of_copy(copy: ScopStatement, promotion: Promotion, scop: Scop) -> bool:
    """Whether each instance copies what stands for an element from one buffer to its place of another.

    That both stand for it is shown with all other accesses to buffers.
    """
    source, own = copy.promoted
    body, count = copy.body, copy.domain.dim(isl.dim_type.set)
    first = next((p for p in scop.promotions if p.buffer.name == source.buffer), None)
    if first is None or first is promotion or first.gathered is not None or first.tensor != promotion.tensor:
        return False
    subscripts = _references(body.iterators[:count])
    place = access_relation(
        promotion.buffer.name, subscripts, [None] * count, Frame(scop.context, copy.name, body.iterators[:count])
    )
    return bool(
        (source.reads, source.writes, own.reads, own.writes) == (True, False, False, True)
        and promotion.rotation is None
        and promotion.panels is None
        and promotion.gathered is None
        and body.value == Read(source.buffer, _references(body.iterators[count:]), first.buffer.layout.type)
        and (body.target, body.subscripts) == (promotion.buffer.name, subscripts[own.depth :])
        and source.element.is_equal(own.element)
        and own.location.is_equal(place.intersect_domain(copy.domain))
    )
