"""Decides which edges are cut: by measured times where all kernels in question have them, else by the model.

The search starts from the rule, which joins all that it may, and changes the cuts one by one while that pays (hill
climbing).  Seconds that were measured are never compared with seconds that are predicted.
"""

from __future__ import annotations

from typing import Final

from tc.base.counted import duration
from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.partition.costs import Cost, Costs
from tc.graph.partition.cuts import cut_name
from tc.graph.partition.divisions import Change, Divisions, Part
from tc.graph.partition.edges import Edge, edges_of
from tc.graph.partition.groups import Group
from tc.graph.partition.partition import Partition, partition_of

# A change must gain so much of what it concerns: measurements of different kernels vary by as much ...
MEASURED_GAIN: Final = 0.05
# ... and the model is no better than that: it knows nothing of what schedules make of a kernel.
PREDICTED_GAIN: Final = 0.1


@frozen
class Choice:
    """Why the cuts are others than the rule's: what the groups cost ``before`` that there were, and ``after`` those
    that they became.

    ``cut``: edges that were joined.
    """

    cut: tuple[Edge, ...]
    old: tuple[Group, ...]
    new: tuple[Group, ...]
    before: Cost
    after: Cost

    def __str__(self) -> str:
        return f"{self.after}, without it {duration(self.before.seconds)}"


@frozen
class Decision:
    """A partition, and the choices that led to it; cuts that no choice has made were given."""

    partition: Partition
    choices: tuple[Choice, ...] = ()

    def reasons(self, graph: Graph) -> dict[str, str]:
        """Why each edge of the graph is cut, by its name."""
        found = {cut_name(graph, edge): "by hand" for edge in _sorted(self.partition.cuts)}
        for choice in self.choices:
            found |= {name: str(choice) for edge in choice.cut if (name := cut_name(graph, edge)) in found}
        return found


def decided(costs: Costs) -> Decision:
    """The partition of a graph that costs least, as far as the search finds it."""
    graph, edges = costs.graph, edges_of(costs.graph)
    divisions = Divisions(graph, edges)
    costs.look_up(divisions.all())
    measured = [part for part in divisions.parts if any(map(costs.measured, divisions.groups(part)))]
    costs.look_up(group for part in measured for change in divisions.changes(part) for group in change.new)
    choices = [choice for part in divisions.parts for choice in _improved(divisions, part, costs)]
    partition = partition_of(graph, divisions.cuts, edges) if choices else Partition(divisions.all())
    return Decision(partition, tuple(choices))


def _improved(divisions: Divisions, part: Part, costs: Costs) -> list[Choice]:
    """Changes the cuts of a part while that pays; what was chosen, in order."""
    choices: list[Choice] = []
    seen = {frozenset[Edge]()}
    before = frozenset[Edge]()
    while (found := _best(divisions, part, costs)) is not None:
        change, old, new = found
        if change.cuts in seen:  # the model and measurements contradict each other
            break
        seen.add(change.cuts)
        divisions.accept(part, change)
        groups = tuple(sorted(change.old)), tuple(sorted(change.new))
        choices.append(Choice(_sorted(change.cuts - before), *groups, old, new))
        before = change.cuts
    return choices


def _best(divisions: Divisions, part: Part, costs: Costs) -> tuple[Change, Cost, Cost] | None:
    """The change of a part that gains most, if one is worth it."""
    groups = divisions.groups(part)
    measured = any(costs.measured(group) for group in groups)
    if measured:
        changes = divisions.changes(part)
    else:
        # By the model, cutting an edge pays where another one, which was refused, takes its place.
        gains = {end: costs.passing(e.value) for e in divisions.refused(part) for end in (e.producer, e.consumer)}
        if not gains:
            return None
        hoped = {node: max((gains.get(n, 0.0) for n in group), default=0.0) for group in groups for node in group}
        changes = divisions.changes(part, lambda edge: hoped[edge.producer] > costs.passing(edge.value))
    found = [(change, *_weighed(change, costs)) for change in changes]
    paying = [one for one in found if _pays(one[1], one[2])]
    return max(paying, key=lambda one: one[1].seconds - one[2].seconds, default=None)


def _weighed(change: Change, costs: Costs) -> tuple[Cost, Cost]:
    """What the groups cost that change, and what they become: both measured at one place, or both predicted."""
    place = costs.place((*change.old, *change.new))
    return costs.at(place, change.old), costs.at(place, change.new)


def _pays(before: Cost, after: Cost) -> bool:
    gain = MEASURED_GAIN if after.measured else PREDICTED_GAIN
    return after.seconds < (1 - gain) * before.seconds


def _sorted(edges: frozenset[Edge]) -> tuple[Edge, ...]:
    return tuple(sorted(edges, key=lambda edge: (edge.producer, edge.consumer, edge.value)))
