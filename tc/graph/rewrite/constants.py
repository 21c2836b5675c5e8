"""Computes once what depends on constants alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from tc.base.once import Once
from tc.graph.ir.constants import Constants, Contents, later
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.sizes import Dimension, elements
from tc.graph.ir.values import Value
from tc.graph.partition.kinds import Kind, kind_of
from tc.graph.run.arrays import view_of

Run: TypeAlias = Callable[[Graph], Sequence[np.ndarray]]

# Views of constants that take more are not copied: they would fill memory.
MOST_COPIED: Final = 1 << 28
# What is larger than this, and than the constants that it is made of, is made in each call: it would fill memory.
MOST_BYTES: Final = 1 << 24


def folded(graph: Graph, run: Run) -> Graph:
    """The graph in which results of calls with constant operands are constants.

    ``run`` computes a graph's outputs, when one of them is looked at.
    """
    known, makers = set(graph.constants), graph.producers()
    wanted: dict[str, None] = {}
    made: set[str] = set()
    for node in graph.nodes:
        if isinstance(node, Host | Join) or not known.issuperset(node.operands):
            constant = False
        else:
            constant = all(_is_worth_it(graph, node, name, makers) for name in node.results)
        if constant:
            known.update(node.results)
            made.update(node.results if isinstance(node, Call) else ())
        else:
            wanted |= dict.fromkeys(name for name in node.operands if name in known)
    wanted |= dict.fromkeys(name for name in graph.outputs if name in known)
    bases = tuple(dict.fromkeys(base for name in wanted if (base := _base(makers, name)) in made))
    if not bases:
        return graph
    made_of = graph.needed(bases)
    arrays: Once[None, Sequence[np.ndarray]] = Once()

    def computed(place: int) -> np.ndarray:
        return arrays.get(None, lambda: run(made_of))[place]

    found = {name: later(partial(computed, place)) for place, name in enumerate(bases)}
    constants = Constants.of(graph.constants).with_more(found)
    kept = tuple(node for node in graph.nodes if not set(node.results) & set(bases))
    return replace(graph, nodes=kept, constants=constants).needed()


def laid_out(graph: Graph) -> Graph:
    """The graph in which reductions read constants that lie in order: views of such are copied once."""
    makers = graph.producers()
    wanted = dict.fromkeys(
        name
        for node in graph.nodes
        if isinstance(node, Call) and kind_of(node.program) is Kind.REDUCTION
        for name in node.operands
        if not graph.values[name].is_contiguous and _base(makers, name) in graph.constants
    )
    copied: dict[str, Value] = {}
    found: dict[str, Contents] = {}
    for name in wanted:
        if not _bytes(graph, name) <= MOST_COPIED:
            continue
        found[name] = later(partial(_viewed, graph, name, makers))
        copied[name] = replace(graph.values[name], strides=None)
    kept = tuple(node for node in graph.nodes if not copied.keys() & set(node.results))
    values, constants = {**graph.values, **copied}, Constants.of(graph.constants).with_more(found)
    return replace(graph, nodes=kept, constants=constants, values=values).needed() if copied else graph


def _viewed(graph: Graph, name: str, makers: Mapping[str, Node]) -> np.ndarray:
    """A constant, or a view of one."""
    node = makers.get(name)
    if not isinstance(node, View):
        return graph.constants[name]
    return view_of(_viewed(graph, node.operand, makers), node, graph.values[node.operand], graph.values[name])


def _base(makers: Mapping[str, Node], name: str) -> str:
    """The value that a view looks at in the end."""
    while isinstance(node := makers.get(name), View):
        name = node.operand
    return name


def _is_worth_it(graph: Graph, node: Call | View, name: str, makers: Mapping[str, Node]) -> bool:
    if isinstance(node, View):
        return True
    made = _bytes(graph, name)
    held = [_bytes(graph, _base(makers, operand)) for operand in node.operands]
    return made <= max(MOST_BYTES, *held, 0)


def _bytes(graph: Graph, name: str) -> Dimension:
    value = graph.values[name]
    return elements(value.shape) * value.type.itemsize
