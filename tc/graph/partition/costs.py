"""``Costs``: what kernels of a graph cost: measured, where that is recorded, or predicted by a model."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from tc.base.counted import duration
from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call
from tc.graph.partition.compose import boundary, call_of
from tc.graph.partition.groups import Group
from tc.graph.partition.rates import Rates
from tc.graph.partition.work import bytes_read, operations

if TYPE_CHECKING:
    from tc.graph.ir.sizes import Shape

# A machine, by name, and how many threads a kernel has there: seconds are compared with those of the same place only.
Place: TypeAlias = tuple[str, int]


class Record(Protocol):
    """What was measured of kernels."""

    @property
    def here(self) -> Place:
        """Where the graph is to run."""

    def may_know(self, shapes: Sequence[Shape]) -> bool:
        """Whether a kernel for operands of these shapes may have been measured; takes no time."""

    def seconds(self, graph: Graph, calls: Sequence[Call]) -> list[Mapping[Place, float]]:
        """By place, what the best known kernel takes for each of several calls in the graph."""


class NoRecord:
    """Nothing was measured."""

    here: Final[Place] = ("", 0)

    def may_know(self, _shapes: Sequence[Shape]) -> bool:
        """No."""
        return False

    def seconds(self, _graph: Graph, calls: Sequence[Call]) -> list[Mapping[Place, float]]:
        """None."""
        return [{} for _ in calls]


NO_RECORD: Final = NoRecord()


@frozen
class Cost:
    """``seconds`` of a call, or of several; ``measured``, or predicted."""

    seconds: float
    measured: bool

    def __str__(self) -> str:
        return f"{duration(self.seconds)} {'measured' if self.measured else 'predicted'}"


class Costs:
    """The costs of groups of calls of a graph, all of whose sizes are numbers; each is looked up once."""

    def __init__(self, graph: Graph, rates: Rates, record: Record = NO_RECORD) -> None:
        self.graph: Final = graph
        self.rates: Final = rates
        self._record: Final = record
        self._users: Final = graph.users()
        self._operations: Final[dict[int, int]] = {}
        self._measured: Final[dict[Group, Mapping[Place, float]]] = {}

    def of(self, group: Group) -> Cost:
        """What a kernel costs: as measured here, or elsewhere, or as predicted."""
        return self.at(self.place((group,)), (group,))

    def at(self, place: Place | None, groups: Iterable[Group]) -> Cost:
        """What several kernels cost at a place where all of them were measured; predicted for None."""
        if place is None:
            return Cost(sum(map(self.predicted, groups)), measured=False)
        return Cost(sum(self.measured(group)[place] for group in groups), measured=True)

    def place(self, groups: Sequence[Group]) -> Place | None:
        """Where all of these were measured: here, if possible, or on such a machine; None where there is no place."""
        found: set[Place] | None = None
        for group in groups:
            places = self.measured(group).keys()
            found = set(places) if found is None else found & places
            if not found:
                return None
        here = self._record.here
        return min(found, key=lambda place: (place[0] != here[0], place[1] != here[1], place)) if found else None

    def predicted(self, group: Group) -> float:
        """Seconds by the model: arithmetic beside traffic, and a call."""
        operands, results = boundary(self.graph, group, self._users)
        moved = sum(bytes_read(self.graph.values[name]) for name in (*dict.fromkeys(operands), *results))
        return self.rates.seconds(sum(map(self._operations_of, group)), moved)

    def measured(self, group: Group) -> Mapping[Place, float]:
        """Seconds by place, of what is recorded."""
        self.look_up([group])
        return self._measured[group]

    def look_up(self, groups: Iterable[Group]) -> None:
        """Looks up what is recorded of groups, all of them at once."""
        known: list[Group] = []
        for group in groups:
            if group not in self._measured:
                self._measured[group] = {}
                known += [group] if self._may_be_known(group) else []
        if known:
            found = self._record.seconds(self.graph, [self.call(group) for group in known])
            self._measured.update(zip(known, found, strict=True))

    def passing(self, value: str) -> float:
        """Seconds, by the model, that it takes to pass a value from one kernel to another; it is written in any case
        where others use it.
        """
        times = 2 if len(self._users[value]) == 1 and value not in self.graph.outputs else 1
        return times * bytes_read(self.graph.values[value]) / self.rates.bytes + self.rates.call

    def call(self, group: Group) -> Call:
        """The call that a group is composed to."""
        return call_of(self.graph, group, self._users)

    def _may_be_known(self, group: Group) -> bool:
        operands, _ = boundary(self.graph, group, self._users)
        return self._record.may_know([self.graph.values[name].shape for name in operands])

    def _operations_of(self, node: int) -> int:
        if node not in self._operations:
            found = self.graph.nodes[node]
            assert isinstance(found, Call)
            shapes = [self.graph.values[name].shape for name in found.operands]
            self._operations[node] = operations(found.program, shapes)
        return self._operations[node]
