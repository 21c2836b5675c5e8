"""Reads graphs as ``graph_text`` writes them."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from tc.base.errors import Diagnostic, GraphError, Span, render
from tc.base.types import scalar_type
from tc.graph.ir.builder import Builder, programs_of
from tc.graph.ir.graph import Graph
from tc.graph.ir.sizes import Dimension, least, open_size
from tc.graph.ir.values import Value

if TYPE_CHECKING:
    from tc.base.types import ScalarType
    from tc.graph.ir.nodes import HostFunction
    from tc.language.program.program import Program

# Where the definitions begin.
_DEFINITIONS = re.compile(r"^def\s", re.MULTILINE)


def parse(
    text: str,
    constants: Mapping[str, np.ndarray] | None = None,
    host: Mapping[str, HostFunction] | None = None,
) -> Graph:
    """The graph of a text.  ``constants``: their contents by name.  ``host``: functions of operators of the host.

    GraphError, with the place, for what is not in the grammar and for nodes that do not fit; errors of ``tc.define``
    for definitions.
    """
    begin = _DEFINITIONS.search(text)
    head = text if begin is None else text[: begin.start()]
    definitions = programs_of(text[begin.start() :]) if begin is not None else {}
    try:
        tree = _parser().parse(head)
    except UnexpectedInput as error:
        place = error.pos_in_stream if error.pos_in_stream is not None else len(head)
        found = Diagnostic("this is not in the grammar of graphs", Span(place, place + 1))
        raise GraphError(render(found, text)) from None
    return _Reading(text, dict(definitions), constants or {}, host or {}).graph(tree)


@functools.cache
def _parser() -> Lark:
    grammar = (Path(__file__).parent / "graph.lark").read_text("utf-8")
    return Lark(grammar, parser="lalr", propagate_positions=True, maybe_placeholders=False)


class _Reading:
    """The values that names of the text stand for."""

    def __init__(
        self,
        text: str,
        definitions: Mapping[str, Program],
        constants: Mapping[str, np.ndarray],
        host: Mapping[str, HostFunction],
    ) -> None:
        self.text = text
        self.definitions = definitions
        self.constants = constants
        self.host = host
        self.values: dict[str, Value] = {}
        self.builder = Builder("graph")

    def graph(self, tree: Tree[Token]) -> Graph:
        title, *rest = tree.children
        self.builder.name = _name(title)
        outputs = [part for part in rest if _kind(part) == "name"]
        for part in rest:
            match _kind(part):
                case "declared":
                    self.input(part)
                case "constant":
                    self.constant(part)
                case "call" | "host" | "view" | "join":
                    self.node(part)
        return self.builder.finish([self.value(part) for part in outputs])

    def error(self, part: Tree[Token] | Token, message: str) -> GraphError:
        meta = part.meta if isinstance(part, Tree) else part
        start, end = getattr(meta, "start_pos", 0) or 0, getattr(meta, "end_pos", 1) or 1
        return GraphError(render(Diagnostic(message, Span(start, end)), self.text))

    def value(self, part: Tree[Token] | Token) -> Value:
        found = self.values.get(_name(part))
        if found is None:
            raise self.error(part, f"no value is called `{_name(part)}` here")
        return found

    def declared(self, part: Tree[Token] | Token) -> tuple[str, ScalarType, tuple[Dimension, ...]]:
        assert isinstance(part, Tree)
        word, *sizes, name = part.children
        type = scalar_type(str(word))
        if type is None:
            raise self.error(part, f"no type is called `{word}`")
        if _name(name) in self.values:
            raise self.error(name, f"two values are called `{_name(name)}`")
        return _name(name), type, tuple(map(_size, sizes))

    def input(self, part: Tree[Token] | Token) -> None:
        name, type, shape = self.declared(part)
        self.values[name] = self.builder.input(name, type, shape)

    def constant(self, part: Tree[Token] | Token) -> None:
        assert isinstance(part, Tree)
        name, type, shape = self.declared(part.children[0])
        array = self.constants.get(name)
        if array is None:
            raise self.error(part, f"the contents of `{name}` are not given; pass them in constants=")
        if array.shape != shape or array.dtype.name != type.value:
            raise self.error(part, f"`{name}` is declared {type}{shape}, got {array.dtype.name}{array.shape}")
        self.values[name] = self.builder.constant(array, name)

    def node(self, part: Tree[Token] | Token) -> None:
        assert isinstance(part, Tree)
        self.builder.origin, before = f"line {part.meta.line}", self.builder.made
        target, *rest = part.children
        try:
            results = self.made(part, rest)
        except GraphError as error:
            message = str(error).removeprefix(f"{self.builder.origin}: ")
            raise (error if message.startswith(f"{part.meta.line}:") else self.error(part, message)) from None
        names = [target] if _kind(target) == "name" else _children(target)
        if len(names) != len(results):
            raise self.error(target, f"{len(results)} results, and {len(names)} names")
        for name, value in zip(names, results, strict=True):
            if _name(name) in self.values:
                raise self.error(name, f"two values are called `{_name(name)}`")
            self.values[_name(name)] = self.builder.rename(value, _name(name), before)

    def made(self, part: Tree[Token], rest: list[Tree[Token] | Token]) -> tuple[Value, ...]:
        if part.data == "view":
            return (self.viewed(self.value(rest[0]), rest[1]),)
        if part.data == "join":
            raise self.error(part, "joins come of planning, and are not read from text")
        operands = [self.value(name) for name in rest[1:]]
        if part.data == "host":
            raise self.error(part, "nodes of the host are not read from text")
        name = _name(rest[0])
        if name not in self.definitions:
            raise self.error(rest[0], f"no definition is called `{name}`")
        return self.builder.call(self.definitions[name], *operands)

    def viewed(self, operand: Value, how: Tree[Token] | Token) -> Value:
        assert isinstance(how, Tree)
        builder, parts = self.builder, how.children
        match how.data:
            case "reshape":
                return builder.reshape(operand, tuple(map(_size, parts)))
            case "permute":
                return builder.permute(operand, [int(str(part)) for part in parts])
            case "expand":
                return builder.expand(operand, tuple(map(_size, parts)))
            case "slice":
                ranges = [_range(part) for part in parts]
                return builder.slice(operand, *(list(column) for column in zip(*ranges, strict=True)))
            case _:
                type = scalar_type(str(parts[0]))
                if type is None:
                    raise self.error(how, f"no type is called `{parts[0]}`")
                return builder.reinterpret(operand, type)


def _kind(part: Tree[Token] | Token) -> str:
    return str(part.data) if isinstance(part, Tree) else "token"


def _children(part: Tree[Token] | Token) -> list[Tree[Token] | Token]:
    return list(part.children) if isinstance(part, Tree) else []


def _name(part: Tree[Token] | Token) -> str:
    token = str(part.children[0]) if isinstance(part, Tree) else str(part)
    return str(json.loads(token)) if token.startswith('"') else token


def _range(part: Tree[Token] | Token) -> tuple[Dimension, int, Dimension]:
    assert isinstance(part, Tree)
    start, step, count = part.children
    text = part.children[1]
    assert isinstance(text, Token)
    return _size(start), int(str(step)), _size(count)


def _size(part: Tree[Token] | Token) -> Dimension:
    assert isinstance(part, Tree)
    operands = part.children
    match part.data:
        case "number":
            return int(str(operands[0]))
        case "open_size":
            return open_size(_name(operands[0]))
        case "negate":
            return -_size(operands[0])
        case "add":
            return _size(operands[0]) + _size(operands[1])
        case "subtract":
            return _size(operands[0]) - _size(operands[1])
        case "multiply":
            return _size(operands[0]) * _size(operands[1])
        case "divide":
            return _size(operands[0]) // _size(operands[1])
        case _:
            return least(*map(_size, operands))
