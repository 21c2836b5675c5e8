"""``Work``: the calls of one kernel alone, as a graph of their own, with the node that a library may compute."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tc.base.digest import sha256_hex
from tc.base.frozen import frozen
from tc.graph.ir.graph import Graph
from tc.graph.ir.graph_text import graph_text
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.values import Value
from tc.graph.run.arrays import numbers, view_of
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

if TYPE_CHECKING:
    from tc.graph.ir.nodes import HostFunction

# Of what stands for inputs.
_SEED = 0


@frozen
class Work:
    """``graph``: its values are numbered, so that equal kernels of any model are the same work.  ``call``: the node.

    ``settings``: by which the graph is prepared.
    """

    graph: Graph
    call: Call
    settings: str

    @property
    def digest(self) -> str:
        """What equal works have in common; rules see what operators calls are of."""
        calls = [node for node in self.graph.nodes if isinstance(node, Call)]
        operators = [type(call.operator).__name__ for call in calls]
        head = f"{self.settings}\n{operators}\n{calls.index(self.call)}\n"
        return sha256_hex(f"{head}{graph_text(self.graph)}".encode())

    def by(self, function: HostFunction) -> Graph:
        """The graph in which a function computes the node."""
        made = Host("library", function, self.call.operands, self.call.results)
        return replace(self.graph, nodes=tuple(made if node is self.call else node for node in self.graph.nodes))

    def inputs(self) -> dict[str, np.ndarray]:
        """Arrays for the inputs."""
        return {name: drawn(self.graph.values[name]) for name in self.graph.inputs}

    def operands(self) -> tuple[np.ndarray, ...]:
        """Arrays for the operands of the node: constants, or drawn at random."""
        makers = self.graph.producers()
        return tuple(self._array(name, makers) for name in self.call.operands)

    def _array(self, name: str, makers: Mapping[str, Node]) -> np.ndarray:
        maker, values = makers.get(name), self.graph.values
        if isinstance(maker, View):
            return view_of(self._array(maker.operand, makers), maker, values[maker.operand], values[name])
        return self.graph.constants[name] if name in self.graph.constants else drawn(values[name])


def drawn(value: Value) -> np.ndarray:
    """Random numbers around 0, or ones where they are integers."""
    shape, dtype = numbers(value.shape, value.name), numpy_dtype(value.type)
    if value.type.is_integer:
        return np.ones(shape, dtype)
    return np.random.default_rng(_SEED).standard_normal(shape, np.float32).astype(dtype)


def work_of(graph: Graph, group: Sequence[int], at: int, settings: str) -> Work:
    """The calls at places of a graph, with the views that they read; ``at``: the node."""
    calls = [graph.nodes[place] for place in group]
    nodes = list(_with_views(graph, calls))
    made = {name for node in nodes for name in node.results}
    read = dict.fromkeys(name for node in nodes for name in node.operands if name not in made)
    inputs = tuple(name for name in read if name not in graph.constants)
    inside, users = set(map(id, nodes)), graph.users()
    outputs = [
        name
        for call in calls
        for name in call.results
        if name in graph.outputs or any(id(user) not in inside for user in users[name])
    ]
    names = {name: f"v{number}" for number, name in enumerate((*read, *(n for node in nodes for n in node.results)))}
    renamed = {id(node): _renamed(node, names) for node in nodes}
    alone = Graph(
        "work",
        tuple(names[name] for name in inputs),
        tuple(names[name] for name in outputs),
        {new: replace(graph.values[old], name=new) for old, new in names.items()},
        tuple(renamed.values()),
        {names[name]: graph.constants[name] for name in read if name in graph.constants},
    )
    call = renamed[id(graph.nodes[at])]
    assert isinstance(call, Call)
    return Work(alone, call, settings)


def _with_views(graph: Graph, calls: Sequence[Node]) -> Iterator[Node]:
    """The calls, and before each the views that it reads, each once."""
    makers, done = graph.producers(), set[int]()
    waiting = [*reversed(calls)]
    while waiting:
        node = waiting[-1]
        views = [own for name in node.operands if isinstance(own := makers.get(name), View) and id(own) not in done]
        if views:
            waiting += views
            continue
        waiting.pop()
        if id(node) not in done:
            done.add(id(node))
            yield node


def _renamed(node: Node, names: Mapping[str, str]) -> Node:
    if isinstance(node, View):
        return replace(node, operand=names[node.operand], result=names[node.result], origin="")
    operands, results = (tuple(names[name] for name in own) for own in (node.operands, node.results))
    if isinstance(node, Join):
        return replace(node, operands=operands, result=results[0], origin="")
    return replace(node, operands=operands, results=results, origin="")
