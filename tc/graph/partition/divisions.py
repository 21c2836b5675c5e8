"""``Divisions``: how a graph may be divided otherwise: fewer joins, or others."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final

from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.partition.edges import Edge
from tc.graph.partition.groups import Group, Groups


@frozen
class Part:
    """Calls that edges connect, directly or by way of others; what joins elsewhere does not concern them."""

    edges: tuple[Edge, ...]
    nodes: tuple[int, ...]


@frozen
class Change:
    """Other cuts of a part, the groups that it has no more, and those that it has instead."""

    cuts: frozenset[Edge]
    old: frozenset[Group]
    new: frozenset[Group]


class Divisions:
    """The division of a graph by cuts, and those beside it; all that is not cut is joined, as far as may be."""

    def __init__(self, graph: Graph, edges: Sequence[Edge], cuts: frozenset[Edge] = frozenset()) -> None:
        self.parts: Final = _parts(edges)
        self._groups = Groups(graph)
        for edge in edges:
            if edge not in cuts:
                self._groups.join(edge)
        self._cuts = {part: cuts.intersection(part.edges) for part in self.parts}

    @property
    def cuts(self) -> frozenset[Edge]:
        """All edges that are cut."""
        return frozenset().union(*self._cuts.values())

    def all(self) -> tuple[Group, ...]:
        """The groups of all calls, in order."""
        return self._groups.all()

    def groups(self, part: Part) -> frozenset[Group]:
        """The groups of a part."""
        return self._groups.among(part.nodes)

    def refused(self, part: Part) -> list[Edge]:
        """Edges that join nothing, though they are not cut."""
        return [edge for edge in part.edges if edge not in self._cuts[part] and not self._joins(edge)]

    def accept(self, part: Part, change: Change) -> None:
        """Divides a part otherwise."""
        self._groups, self._cuts[part] = self._with(part, change.cuts), change.cuts

    def changes(self, part: Part, wanted: Callable[[Edge], bool] = lambda _: True) -> Iterator[Change]:
        """What comes of cutting one of the edges that join calls, or what it takes to keep its ends apart, and of
        joining what is cut.  ``wanted``: which edges are cut.
        """
        current, seen = self.groups(part), {self._cuts[part]}
        for cuts in self._moves(part, wanted):
            if cuts not in seen:
                seen.add(cuts)
                groups = self._with(part, cuts).among(part.nodes)
                if groups != current:
                    yield Change(cuts, current - groups, groups - current)

    def _moves(self, part: Part, wanted: Callable[[Edge], bool]) -> Iterator[frozenset[Edge]]:
        cuts = self._cuts[part]
        for edge in filter(wanted, part.edges):
            if edge in cuts:
                ends = {self._groups.of(edge.producer), self._groups.of(edge.consumer)}
                yield cuts - {e for e in cuts if {self._groups.of(e.producer), self._groups.of(e.consumer)} == ends}
            elif self._joins(edge):
                inside = [e for e in part.edges if self._groups.of(e.producer) == self._groups.of(e.consumer)]
                yield cuts | {edge}
                later = _reached(edge.consumer, inside, forward=True)
                yield cuts | {e for e in inside if e.consumer in later and e.producer not in later}
                earlier = _reached(edge.producer, inside, forward=False)
                yield cuts | {e for e in inside if e.producer in earlier and e.consumer not in earlier}

    def _joins(self, edge: Edge) -> bool:
        return self._groups.of(edge.producer) == self._groups.of(edge.consumer)

    def _with(self, part: Part, cuts: Collection[Edge]) -> Groups:
        groups = self._groups.divided(part.nodes)
        for edge in part.edges:
            if edge not in cuts:
                groups.join(edge)
        return groups


def _reached(start: int, edges: Sequence[Edge], *, forward: bool) -> set[int]:
    """The nodes that edges lead to from one, it among them."""
    found, waiting = {start}, [start]
    while waiting:
        node = waiting.pop()
        for edge in edges:
            one, other = (edge.producer, edge.consumer) if forward else (edge.consumer, edge.producer)
            if one == node and other not in found:
                found.add(other)
                waiting.append(other)
    return found


def _parts(edges: Sequence[Edge]) -> tuple[Part, ...]:
    part_of: dict[int, set[int]] = {}
    for edge in edges:
        one = part_of.setdefault(edge.producer, {edge.producer})
        other = part_of.setdefault(edge.consumer, {edge.consumer})
        if one is not other:
            one |= other
            for node in other:
                part_of[node] = one
    members: dict[int, list[Edge]] = {}
    for edge in edges:
        members.setdefault(id(part_of[edge.producer]), []).append(edge)
    return tuple(
        Part(tuple(own), tuple(sorted({end for edge in own for end in (edge.producer, edge.consumer)})))
        for own in members.values()
    )
