"""Graphs as text: inputs, constants, nodes in order, and the definitions that are called.  ``parse_graph`` reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Final, assert_never

from tc.graph.ir.graph import Graph
from tc.graph.ir.nodes import Call, Host, Join, Node, View
from tc.graph.ir.sizes import Dimension, Quotient, Shape, Size
from tc.graph.ir.values import Value
from tc.graph.ir.views import Expand, Permute, Reinterpret, Reshape, Slice, Viewing
from tc.language.program.program import Program
from tc.language.text.print_program import program_text

_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WORDS: Final = frozenset(("constant", "host", "view", "graph", "def", "min"))


def graph_text(graph: Graph) -> str:
    """The graph as text; definitions follow, each once."""
    titles = _titles(node.program for node in graph.nodes if isinstance(node, Call))
    inputs = ", ".join(_declared(graph.values[name]) for name in graph.inputs)
    lines = [f"graph {quoted(graph.name)}({inputs}) -> ({_names(graph.outputs)}) {{"]
    lines += [f"    constant {_declared(graph.values[name])}" for name in graph.constants]
    lines += [f"    {_node(node, titles)}" for node in graph.nodes]
    lines += ["}"]
    definitions = [program_text(replace(program, name=title)).rstrip() for program, title in titles.items()]
    return "\n".join([*lines, *(f"\n{text}" for text in definitions)]) + "\n"


def quoted(name: str) -> str:
    """A name, in quotes unless it is a plain word."""
    return name if _PLAIN.fullmatch(name) and name not in _WORDS else json.dumps(name)


def size_text(size: Dimension) -> str:
    """A size as the parser reads it."""
    if isinstance(size, int):
        return str(size)
    parts = []
    for monomial, factor in size.terms:
        atoms = [_atom(atom) for atom in monomial]
        parts.append(" * ".join([*([str(factor)] if factor != 1 or not atoms else []), *atoms]))
    return " + ".join(parts).replace("+ -", "- ") or "0"


def _atom(atom: object) -> str:
    if isinstance(atom, str):
        return quoted(atom)
    if isinstance(atom, Quotient):
        return f"(({size_text(atom.dividend)}) / ({size_text(atom.divisor)}))"
    operands: tuple[Size, ...] = atom.operands  # type: ignore[attr-defined]  # the third kind
    return f"min({', '.join(map(size_text, operands))})"


def _titles(programs: Iterable[Program]) -> dict[Program, str]:
    """A name for each definition: its own, and a number where several have it."""
    found: dict[Program, str] = {}
    for program in programs:
        if program not in found:
            name, number = program.name, 1
            while name in found.values():
                number += 1
                name = f"{program.name}_{number}"
            found[program] = name
    return found


def _declared(value: Value) -> str:
    return f"{value.type}({_shape(value.shape)}) {quoted(value.name)}"


def _shape(shape: Shape) -> str:
    return ", ".join(map(size_text, shape))


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(quoted, names))


def _node(node: Node, titles: dict[Program, str]) -> str:
    results = _names(node.results)
    match node:
        case Call():
            left = results if len(node.results) == 1 else f"({results})"
            return f"{left} = {quoted(titles[node.program])}({_names(node.operands)})"
        case View():
            return f"{results} = view {quoted(node.operand)} {_how(node.how)}"
        case Host():
            return f"({results}) = host {json.dumps(node.operator)}({_names(node.operands)})"
        case Join():
            return f"{results} = view ({_names(node.operands)}) join({node.axis})"
        case _:
            assert_never(node)


def _how(how: Viewing) -> str:
    match how:
        case Reshape(shape):
            return f"reshape({_shape(shape)})"
        case Permute(axes):
            return f"permute({', '.join(map(str, axes))})"
        case Slice(starts, steps, shape):
            ranges = zip(starts, steps, shape, strict=True)
            return f"slice({', '.join(f'{size_text(a)} : {step} : {size_text(n)}' for a, step, n in ranges)})"
        case Expand(shape):
            return f"expand({_shape(shape)})"
        case Reinterpret(type):
            return f"reinterpret({type})"
        case _:
            assert_never(how)
