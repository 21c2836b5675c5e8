"""Makes one comprehension of a group of calls."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.grammar.parser import parse
from tc.graph.ir.builder import program_of
from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Node
from tc.graph.ir.sizes import shape_text
from tc.graph.ir.values import Value
from tc.graph.operators.texts import definition
from tc.graph.partition.inline import inlined
from tc.graph.partition.merge import merged
from tc.graph.partition.partition import Partition
from tc.language.lower.compose_calls import Operand, ProgramCall, compose_calls
from tc.language.lower.lower import lower_caller
from tc.language.program.program import Program
from tc.language.text.print_program import program_text

# The nodes that use each value, by name.
Users: TypeAlias = Mapping[str, list[Node]]


def composed(graph: Graph, partition: Partition) -> Graph:
    """The graph with a call for each group."""
    users, joined = graph.users(), {at: group for group in partition.groups for at in group}
    nodes: dict[tuple[int, ...], Node] = {}
    for at, node in enumerate(graph.nodes):
        group = joined.get(at, (at,))
        if group in nodes or at != group[0]:
            continue
        nodes[group] = call_of(graph, group, users) if len(group) > 1 else node
    return replace(graph, nodes=tuple(nodes.values())).in_order()


def boundary(graph: Graph, group: Sequence[int], users: Users) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What a group of calls reads that others make, and what it makes that others use, or the graph returns."""
    calls = [node for at in group if isinstance(node := graph.nodes[at], Call)]
    if len(calls) == 1:
        return calls[0].operands, calls[0].results
    made = dict.fromkeys(result for call in calls for result in call.results)
    operands = tuple(dict.fromkeys(name for call in calls for name in call.operands if name not in made))
    inside = set(map(id, calls))
    results = tuple(
        name for name in made if name in graph.outputs or any(id(user) not in inside for user in users[name])
    )
    return operands, results


def call_of(graph: Graph, group: Sequence[int], users: Users) -> Call:
    """The call of a comprehension that makes all that is used of a group."""
    calls = [node for at in group if isinstance(node := graph.nodes[at], Call)]
    if len(calls) == 1:
        return calls[0]
    operands, results = boundary(graph, group, users)
    own = {name: f"x{number}" for number, name in enumerate(operands)}
    own |= {name: f"y{number}" for number, name in enumerate(results)}
    inner = (name for call in calls for name in call.results if name not in own)
    own |= {name: f"t{number}" for number, name in enumerate(inner)}
    title = "_".join(dict.fromkeys(call.program.name for call in calls))[:60]
    while any(call.program.name == title for call in calls):
        title += "_"
    whole = _Whole(
        title,
        tuple(replace(graph.values[name], name=own[name], strides=None) for name in operands),
        tuple(
            ProgramCall(call.program, tuple(own[name] for name in call.operands), tuple(own[n] for n in call.results))
            for call in calls
        ),
        tuple(own[name] for name in results),
    )
    origin = ", ".join(dict.fromkeys(call.origin for call in calls if call.origin))
    return Call(_program(whole), operands, results, origin)


@frozen
class _Whole:
    """Calls that become one comprehension; names are those of arguments, results and temporaries."""

    title: str
    operands: tuple[Value, ...]
    calls: tuple[ProgramCall, ...]
    results: tuple[str, ...]

    def text(self) -> tuple[str, dict[str, Program]]:
        """A definition that makes the calls, and what it calls by the names under which it does."""
        callees: dict[str, Program] = {}
        called = [_named(call.program, callees) for call in self.calls]
        parameters = [f"{one.type}({shape_text(one.shape)}) {one.name}" for one in self.operands]
        statements = [
            f"({', '.join(call.results)}) = {name}({', '.join(call.operands)})"
            for call, name in zip(self.calls, called, strict=True)
        ]
        title = self.title
        while title in callees:
            title += "_"
        return definition(title, parameters, self.results, statements), callees


def _named(program: Program, names: dict[str, Program]) -> str:
    """The name under which a program is in ``names``: its own, with a number if another one has that."""
    for number in range(1, len(names) + 2):
        name = program.name if number == 1 else f"{program.name}_{number}"
        renamed = program if number == 1 else replace(program, name=name)
        if names.setdefault(name, renamed) == renamed:
            return name
    raise AssertionError(f"no name is left for {program.name}")


@functools.lru_cache(maxsize=4096)
def _program(whole: _Whole) -> Program:
    """The program of the whole: of the calls themselves where it can be, else by a text that makes them."""
    return merged(inlined(_directly(whole) or program_by_text(whole)))


def _directly(whole: _Whole) -> Program | None:
    operands = []
    for one in whole.operands:
        shape = tuple(extent for extent in one.shape if isinstance(extent, int))
        if len(shape) != len(one.shape):
            return None
        operands.append(Operand(one.name, one.type, shape))
    return compose_calls(whole.title, operands, whole.calls, whole.results)


def program_by_text(whole: _Whole) -> Program:
    """The program of the text; what is called is lowered already, and only some must be again, with the whole text."""
    text, callees = whole.text()
    found = lower_caller(parse(text), callees, text)
    return found or program_of("\n".join([*map(program_text, callees.values()), text]))
