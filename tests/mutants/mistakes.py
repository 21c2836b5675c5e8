"""Mistakes that a pass could make, as patches of the passes that would make them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias, assert_never
from unittest.mock import patch

import islpy as isl

from tc.grammar.syntax import BinaryOperator
from tc.language.program.program import INDEX_TYPE, Binary, Literal, Read, Statement
from tc.language.program.specialization import Specialization
from tc.polyhedral.generate.leaves import Leaves, leaves_of
from tc.polyhedral.gpu.barriers.place_barriers import place_barriers
from tc.polyhedral.gpu.promotion.promote_operands import promote_operands
from tc.polyhedral.gpu.promotion.promote_private import promote_private
from tc.polyhedral.gpu.promotion.promote_shared import promote_shared
from tc.polyhedral.ir.loops import LANES, Barrier, Copy, Sharing
from tc.polyhedral.ir.scop import Promotion, Rotation, Scop, ScopStatement
from tc.polyhedral.ir.splits import Split
from tc.polyhedral.ir.tree import Band, Extension, Filter, Leaf, Node, ScheduleTree, Sequence, statement_names
from tc.polyhedral.schedule.split import Dealing, split_reductions

State: TypeAlias = tuple[ScheduleTree, Scop]


@dataclass(frozen=True, slots=True)
class Mistake:
    """``made`` patches the compiler for as long as it is entered."""

    name: str
    made: Callable[[], AbstractContextManager[object]]


@dataclass(frozen=True, slots=True)
class Step:
    """Reductions of a program that got so many partial results."""

    parts: int
    dealing: Dealing

    @property
    def whose(self) -> str:
        """Who has one each."""
        match self.dealing:
            case Dealing.RUNS:
                return f"{self.parts} blocks"
            case Dealing.TURNS:
                return f"{self.parts} threads"
            case Dealing.LANES:
                return "lanes"
            case Dealing.PAIRS:
                return f"{self.parts} lanes with pairs"
            case _:
                assert_never(self.dealing)


def mistakes_in(scop: Scop, steps: Iterable[Step]) -> Iterator[Mistake]:
    """All that can be made in a kernel with these promotions and barriers, whose reductions were split so."""
    for barrier in sorted(scop.barrier_names):
        yield Mistake(f"without {barrier}", partial(_patched, "place_barriers", dropping(barrier)))
    for barrier in sorted({awaited.barrier for awaited in scop.awaits.values()}):
        yield Mistake(f"copies awaited after {barrier}", partial(_patched, "place_barriers", _awaited_later(barrier)))
        yield Mistake(f"a group more pending at {barrier}", partial(_patched, "leaves_of", _with_a_group_more(barrier)))
    for promotion in scop.promotions:
        promoter = _promoter(promotion)
        if promotion.rotation is not None and _is_copied_over(scop, promotion):
            buffer = promotion.buffer.name
            yield Mistake(f"a slot less for {buffer}", partial(_patched, promoter, _with_a_slot_less(buffer)))
        if promotion.buffer.shared and _is_synchronous(scop, promotion):
            copy = promotion.loads or ""
            yield Mistake(f"{copy} begun and never awaited", partial(_patched, "leaves_of", _asynchronous(copy)))
        for copy in filter(None, (promotion.loads, promotion.stores)):
            if not promotion.buffer.layout.shape:
                continue  # a single element, of which there is no next one and nothing to leave out
            yield Mistake(f"{copy} shifted", partial(_patched, promoter, _shifting(promoter, copy)))
            if scop.statement(copy).domain.dim_max_val(_last(scop, copy)).is_pos():
                yield Mistake(f"{copy} one short", partial(_patched, promoter, _shortening(promoter, copy)))
    for step in dict.fromkeys(steps):
        combining = f"only the first partial result of {step.whose} counts"
        yield Mistake(combining, partial(_patched, "split_reductions", _without_combination(step)))
    if any(promotion.buffer.sharing is Sharing.LANES for promotion in scop.promotions):
        yield Mistake("a lane too few", partial(_patched, "split_reductions", _with_a_lane_less))


def _patched(name: str, by: object) -> AbstractContextManager[object]:
    module = {"split_reductions": "schedules", "leaves_of": "pipeline"}.get(name, "grid_passes")
    return patch(f"tc.polyhedral.{module}.{name}", by)


# --- barriers


def dropping(barrier: str) -> Callable[..., State]:
    def place(tree: ScheduleTree, scop: Scop, **how: bool) -> State:
        tree, scop = place_barriers(tree, scop, **how)
        assert barrier in scop.barrier_names
        kept = tuple(b for b in scop.barriers if b.get_tuple_name() != barrier)
        root = _without(tree.root, barrier)
        return ScheduleTree(_others(tree.domain, barrier), root), replace(scop, barriers=kept)

    return place


def _without(node: Node, barrier: str) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            kept = [f for f in filters if statement_names(f.domain) != (barrier,)]
            return Sequence(tuple(Filter(_others(f.domain, barrier), _without(f.child, barrier)) for f in kept))
        case Band(members, permutable, child):
            changed = (
                replace(m, function=m.function.intersect_domain(_others(m.function.domain(), barrier))) for m in members
            )
            return Band(tuple(changed), permutable, _without(child, barrier))
        case Extension():
            return replace(node, child=_without(node.child, barrier))


def _others(domain: isl.UnionSet, name: str) -> isl.UnionSet:
    found = isl.UnionSet.empty(domain.get_space())
    for piece in _pieces(domain):
        if piece.get_tuple_name() != name:
            found = found.union(isl.UnionSet.from_set(piece))
    return found


def _pieces(domain: isl.UnionSet) -> list[isl.Set]:
    pieces: list[isl.Set] = []
    domain.foreach_set(pieces.append)
    return pieces


# --- copies that end by themselves


def _awaited_later(barrier: str) -> Callable[..., State]:
    """The barrier leaves one group of copies more unfinished."""

    def place(tree: ScheduleTree, scop: Scop, **how: bool) -> State:
        tree, scop = place_barriers(tree, scop, **how)
        awaits = {
            name: replace(awaited, pending=awaited.pending + (awaited.barrier == barrier))
            for name, awaited in scop.awaits.items()
        }
        return tree, replace(scop, awaits=awaits)

    return place


def _with_a_group_more(barrier: str) -> Callable[..., Leaves]:
    """The node of the barrier leaves one group of copies more pending; the schedule knows nothing of it."""

    def leaves(scop: Scop, streamed: frozenset[str]) -> Leaves:
        found = leaves_of(scop, streamed)
        node = found.patterns[barrier]
        assert isinstance(node, Barrier)
        assert node.pending is not None
        return Leaves({**found.patterns, barrier: replace(node, pending=node.pending + 1)})

    return leaves


def _is_synchronous(scop: Scop, promotion: Promotion) -> bool:
    """Whether elements are copied, of sizes that asynchronous copies have, and each at once."""
    copied = promotion.loads is not None and promotion.loads not in scop.awaits
    return copied and promotion.gathered is None and not scop.awaits


def _asynchronous(copy: str) -> Callable[..., Leaves]:
    """The node of a copy is asynchronous, and no barrier waits for it."""

    def leaves(scop: Scop, streamed: frozenset[str]) -> Leaves:
        found = leaves_of(scop, streamed)
        return Leaves({**found.patterns, copy: Copy(copy, (), group="barrier0")})

    return leaves


def _is_copied_over(scop: Scop, promotion: Promotion) -> bool:
    """Whether a tile would have a slot of another one with other elements if there were a slot less."""
    elements, rotation = promotion.elements, promotion.rotation
    assert rotation is not None
    tile = elements.dim(isl.dim_type.in_) - elements.dim(isl.dim_type.out) - 1
    if elements.project_out(isl.dim_type.in_, tile, 1).is_single_valued():
        return False
    (copy,) = scop.statement(promotion.loads or "").promoted
    tiles = copy.location.range()
    first, last = tiles.dim_min_val(tile).to_python(), tiles.dim_max_val(tile).to_python()
    return bool((last - first) // rotation.step >= rotation.slots - 1)


def _with_a_slot_less(buffer: str) -> Callable[..., State]:
    """Iterations take their turns before the last one that had the slot is done."""

    def changed(rotation: Rotation | None) -> Rotation | None:
        return None if rotation is None else replace(rotation, slots=rotation.slots - 1)

    def promote(tree: ScheduleTree, scop: Scop, *room: object) -> State:
        tree, scop = promote_shared(tree, scop, *room)  # type: ignore[arg-type]
        statements = (
            replace(
                statement,
                promoted=tuple(
                    replace(access, rotation=changed(access.rotation)) if access.buffer == buffer else access
                    for access in statement.promoted
                ),
            )
            for statement in scop.statements
        )
        promotions = (
            replace(promotion, rotation=changed(promotion.rotation)) if promotion.buffer.name == buffer else promotion
            for promotion in scop.promotions
        )
        return tree, replace(scop, statements=tuple(statements), promotions=tuple(promotions))

    return promote


# --- copies

_PROMOTERS: dict[str, Callable[..., State]] = {
    "promote_shared": promote_shared,
    "promote_private": promote_private,
    "promote_operands": promote_operands,
}


def _promoter(promotion: Promotion) -> str:
    """The pass that made it."""
    if promotion.buffer.shared:
        return "promote_shared"
    return "promote_operands" if promotion.buffer.name.startswith("fragment") else "promote_private"


def _shifting(promoter: str, copy: str) -> Callable[..., State]:
    """The copy takes or brings the next element."""

    def promote(tree: ScheduleTree, scop: Scop, *room: object) -> State:
        tree, scop = _PROMOTERS[promoter](tree, scop, *room)
        return tree, _changed(scop, copy, lambda statement: _shifted(statement, loads=_loads(scop, copy)))

    return promote


def _loads(scop: Scop, copy: str) -> bool:
    return any(promotion.loads == copy for promotion in scop.promotions)


def _shifted(statement: ScopStatement, *, loads: bool) -> ScopStatement:
    body = statement.body
    assert isinstance(body.value, Read)
    if loads:
        value = replace(body.value, subscripts=(*body.value.subscripts[:-1], _next(body.value.subscripts[-1])))
        return replace(statement, body=replace(body, value=value))
    return replace(statement, body=replace(body, subscripts=(*body.subscripts[:-1], _next(body.subscripts[-1]))))


def _next(subscript: object) -> Binary:
    return Binary(BinaryOperator.ADD, subscript, Literal(1, INDEX_TYPE), INDEX_TYPE)  # type: ignore[arg-type]


def _shortening(promoter: str, copy: str) -> Callable[..., State]:
    """The copy leaves the last place of its rows out."""

    def promote(tree: ScheduleTree, scop: Scop, *room: object) -> State:
        tree, scop = _PROMOTERS[promoter](tree, scop, *room)
        domain, last = scop.statement(copy).domain, _last(scop, copy)
        kept = domain.upper_bound_val(isl.dim_type.set, last, domain.dim_max_val(last).sub(isl.Val.one(scop.context)))
        scop = _changed(scop, copy, lambda statement: replace(statement, domain=kept))
        return ScheduleTree(_with(tree.domain, kept), _extended_to(tree.root, kept)), scop

    return promote


def _last(scop: Scop, copy: str) -> int:
    return int(scop.statement(copy).domain.dim(isl.dim_type.set)) - 1


def _extended_to(node: Node, kept: isl.Set) -> Node:
    match node:
        case Leaf():
            return node
        case Sequence(filters):
            return Sequence(tuple(replace(f, child=_extended_to(f.child, kept)) for f in filters))
        case Band():
            return replace(node, child=_extended_to(node.child, kept))
        case Extension():
            instances = node.instances.intersect_range(_with(node.instances.range(), kept))
            return replace(node, instances=instances, child=_extended_to(node.child, kept))


def _with(instances: isl.UnionSet, kept: isl.Set) -> isl.UnionSet:
    """The instances, those of one statement only where it is kept."""
    found = isl.UnionSet.empty(instances.get_space())
    for piece in _pieces(instances):
        own = piece.get_tuple_name() == kept.get_tuple_name()
        found = found.union(isl.UnionSet.from_set(piece.intersect(kept) if own else piece))
    return found


def _changed(scop: Scop, name: str, change: Callable[[ScopStatement], ScopStatement]) -> Scop:
    return replace(scop, statements=tuple(change(s) if s.name == name else s for s in scop.statements))


# --- partial results


_Splits: TypeAlias = tuple[Specialization, tuple[Split, ...]]


def _without_combination(step: Step) -> Callable[..., _Splits]:
    def split(specialization: Specialization, parts: int, among: frozenset[str], dealing: Dealing) -> _Splits:
        changed, splits = split_reductions(specialization, parts, among, dealing)
        if Step(parts, dealing) != step:
            return changed, splits
        # What lanes combine is one result if there is one warp.
        lanes = dealing is Dealing.LANES
        return _with_last_loops(changed, {s.statement if lanes else s.total for s in splits}, 1), splits

    return split


def _with_a_lane_less(specialization: Specialization, parts: int, among: frozenset[str], dealing: Dealing) -> _Splits:
    changed, splits = split_reductions(specialization, parts, among, dealing)
    return (
        _with_last_loops(changed, {s.statement for s in splits}, LANES - 1) if dealing is Dealing.LANES else changed
    ), splits


def _with_last_loops(specialization: Specialization, names: set[str], iterations: int) -> Specialization:
    """The program in which the last loops of these statements have so many iterations."""

    def changed(statement: Statement) -> Statement:
        *others, last = statement.iterators
        return replace(statement, iterators=(*others, replace(last, end=Literal(iterations, INDEX_TYPE))))

    statements = tuple(changed(s) if s.name in names else s for s in specialization.program.statements)
    return replace(specialization, program=replace(specialization.program, statements=statements))
