"""Conflicts between the threads of a block: what barriers must separate.

Two instances conflict if they run on different threads of a block, access one place, and one of them writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Sequence as Items
from dataclasses import dataclass
from typing import Final, TypeAlias

import islpy as isl

from tc.polyhedral.analysis.distances import distances_of, equal, first_earlier, first_later
from tc.polyhedral.ir.loops import LoopKind
from tc.polyhedral.ir.scop import Scop, ScopStatement

# For every statement below a node, ``{ instance -> [values of the members above] }``.
Where: TypeAlias = Mapping[str, isl.Map]

# Members that say where instances run, and not when.
PLACES: Final = (LoopKind.BLOCK, LoopKind.THREAD)


class ThreadConflicts:
    """The conflicts of a program, found when they are first asked for."""

    def __init__(self, scop: Scop) -> None:
        self._accesses = {s.name: _accesses(scop, s) for s in scop.statements}
        # What threads may update at the same time.
        self._updated = {
            s.name: str(s.writes[0].get_tuple_name(isl.dim_type.out)) for s in scop.statements if s.body.atomic
        }
        self._conflicts: dict[tuple[str, str], list[isl.Map]] = {}
        # Of every statement, the values of all members around it, wherever it stands.
        self._whole: dict[str, isl.Map] = {}
        self._together: dict[tuple[str, str, tuple[LoopKind, ...]], bool] = {}

    def add_leaf(self, where: Where) -> None:
        """Notes the statements of a leaf; those that are asked for must have been noted."""
        for name, values in where.items():
            self._whole[name] = values.union(self._whole[name]) if name in self._whole else values

    def need_barrier(self, first: Where, second: Where, above: tuple[LoopKind, ...], *, later: bool) -> bool:
        """Whether an instance of ``first`` conflicts with one of ``second``, at equal values of the members above that
        are no threads.

        ``above``: the kinds of these members.  ``later``: the second one in a later iteration of the last of them.
        """
        if LoopKind.THREAD not in above:
            return False
        return any(
            self._pair_needs_barrier(self._pairs(one, other), first[one], second[other], above, later=later)
            for one in first
            for other in second
            if not self._are_together(one, other, above)
        )

    def _are_together(self, first: str, second: str, above: tuple[LoopKind, ...]) -> bool:
        """Whether all conflicting instances of a block are on one thread, so that no level needs a barrier."""
        places = tuple(kind if kind in PLACES else LoopKind.SEQUENTIAL for kind in above)
        while places[-1] is LoopKind.SEQUENTIAL:
            places = places[:-1]
        key = first, second, places
        if key not in self._together:
            begun, ended = (_of_places(self._whole[name], places) for name in (first, second))
            kinds = tuple(kind for kind in places if kind in PLACES)
            self._together[key] = not self._pair_needs_barrier(
                self._pairs(first, second), begun, ended, kinds, later=False
            )
        return self._together[key]

    def _pair_needs_barrier(
        self, conflicts: Items[isl.Map], first: isl.Map, second: isl.Map, above: tuple[LoopKind, ...], *, later: bool
    ) -> bool:
        """``need_barrier`` for two statements, given their conflicts."""
        begun, ended = (of_outermost(values, len(above)) for values in (first, second))
        for pairs in conflicts:
            apart = distances_of(pairs.apply_domain(begun).apply_range(ended))
            for position, kind in enumerate(above[:-1] if later else above):
                if kind is not LoopKind.THREAD:
                    apart = equal(apart, position)
            if later:
                apart = first_earlier(apart, len(above) - 1)
            for position, kind in enumerate(above):
                if kind is LoopKind.THREAD:
                    if not (first_earlier(apart, position).is_empty() and first_later(apart, position).is_empty()):
                        return True
                    apart = equal(apart, position)
        return False

    def _pairs(self, first: str, second: str) -> list[isl.Map]:
        """Pairs of instances that access one place, one of them writing."""
        found = self._conflicts.get((first, second))
        if found is None:
            found = self._conflicts[first, second] = []
            at_once = self._updated.get(first) if first == second else None
            for a in self._accesses.get(first, ()):
                for b in self._accesses.get(second, ()):
                    if (a.writes or b.writes) and a.memory == b.memory != at_once:
                        pairs = a.place.apply_range(b.place.reverse())
                        if not any(pairs.plain_is_equal(other) for other in found):  # a reduction reads what it writes
                            found.append(pairs)
        return found


@dataclass(frozen=True)
class _MemoryAccess:
    """``place``: ``{ instance -> place }`` in a memory that several threads access."""

    memory: str
    place: isl.Map
    writes: bool


def _accesses(scop: Scop, statement: ScopStatement) -> tuple[_MemoryAccess, ...]:
    """The accesses of a statement to tensors, except for promoted ones, and to shared buffers."""
    found = [
        _MemoryAccess(relation.get_tuple_name(isl.dim_type.out), relation, writes)
        for relations, writes in ((statement.reads, False), (statement.writes, True))
        for relation in relations
        if not any((a.writes if writes else a.reads) and relation.is_equal(a.element) for a in statement.promoted)
    ]
    copies = {name for promotion in scop.promotions for name in (promotion.loads, promotion.stores)}
    shared = {promotion.buffer.name for promotion in scop.promotions if promotion.buffer.shared}
    for access in statement.promoted:
        if statement.name in copies and len(statement.promoted) == 1:  # others copy from one buffer to another
            tensor = access.element.get_tuple_name(isl.dim_type.out)
            found.append(_MemoryAccess(tensor, access.element, writes=access.reads))
        if access.buffer in shared:
            found.append(_MemoryAccess(f"{access.buffer} itself", access.place, access.writes))
    return tuple(found)


def of_outermost(values: isl.Map, depth: int) -> isl.Map:
    """The values of the ``depth`` outermost members only."""
    return values.project_out(isl.dim_type.out, depth, values.dim(isl.dim_type.out) - depth)


def _of_places(values: isl.Map, kinds: tuple[LoopKind, ...]) -> isl.Map:
    """The values of the block and thread members among the outermost ones."""
    values = of_outermost(values, len(kinds))
    for position in reversed(range(len(kinds))):
        if kinds[position] not in PLACES:
            values = values.project_out(isl.dim_type.out, position, 1)
    return values
