"""``NodeDef``: a node with its inputs and attributes; and ``Nodes``, which reads those that are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, TypeAlias

from tc.base.errors import GraphError, nearest
from tc.base.frozen import frozen
from tc.graph.graphdef.schema import GRAPH
from tc.graph.graphdef.tensors import read_tensor
from tc.graph.protobuf.schema import Message, Unread

# The extents of a tensor, None where one is open; None in its place where not even their number is known.
StaticShape: TypeAlias = "tuple[int | None, ...] | None"


@frozen
class Attribute:
    """``kind``: the field of the message that holds it, as in ``i``; ``list(i)`` for several of them."""

    kind: str
    value: object


@frozen
class Input:
    """The result ``index`` of a node."""

    node: str
    index: int = 0

    @staticmethod
    def parse(text: str) -> Input:
        """``name`` or ``name:k``."""
        name, separator, index = text.rpartition(":")
        return Input(name, int(index)) if separator and index.isascii() and index.isdigit() else Input(text)


@frozen
class NodeDef:
    """``controls``: nodes that run before it, and of which it uses nothing."""

    name: str
    operator: str
    inputs: tuple[Input, ...]
    controls: tuple[str, ...]
    attributes: Mapping[str, Attribute]

    @property
    def place(self) -> str:
        """What messages call it."""
        return f"node `{self.name}` ({self.operator})"


class Nodes:
    """The nodes of a graph by name.  Attributes are read when a node is asked for, and once."""

    def __init__(self, graph: Unread) -> None:
        found = graph.read(GRAPH)
        self.producer: Final = int(found.message("versions").last("producer", 0))
        self._heads: Final[dict[str, Message]] = {}
        for head in found.messages("node"):
            name = head.last("name", "")
            if not name or not head.last("op", ""):
                raise GraphError(f"node `{name}` has no operator" if name else "a node has no name")
            if name in self._heads:
                raise GraphError(f"two nodes are called `{name}`")
            self._heads[name] = head
        if not self._heads:
            raise GraphError("the graph has no nodes")
        self._known: Final[dict[str, NodeDef]] = {}

    def __iter__(self) -> Iterator[str]:
        return iter(self._heads)

    def __contains__(self, name: str) -> bool:
        return name in self._heads

    def __getitem__(self, name: str) -> NodeDef:
        if name not in self._known:
            self._known[name] = _node(self._heads[name])
        return self._known[name]

    def operator(self, name: str) -> str:
        """The operator of a node, which is not read for it."""
        return str(self._heads[name].last("op", ""))

    def inputs(self, name: str) -> tuple[Input, ...]:
        """What a node uses, which is not read for it."""
        return tuple(Input.parse(text) for text in self._heads[name].all("input") if not text.startswith("^"))

    def controls(self, name: str) -> tuple[str, ...]:
        """What runs before a node, which is not read for it."""
        return tuple(text[1:] for text in self._heads[name].all("input") if text.startswith("^"))

    def require(self, name: str, user: str) -> None:
        """GraphError where no node is called so."""
        if name not in self._heads:
            guess = nearest(name, self._heads)
            hint = f"; did you mean `{guess}`?" if guess else ""
            raise GraphError(f"{user}no node is called `{name}`{hint}")

    @property
    def read(self) -> frozenset[str]:
        """The nodes that were read so far."""
        return frozenset(self._known)


def _node(head: Message) -> NodeDef:
    name, operator = head.last("name", ""), head.last("op", "")
    texts = head.all("input")
    try:
        attributes = {entry.last("key", ""): _attribute(entry.message("value")) for entry in head.messages("attr")}
    except GraphError as error:
        raise GraphError(f"node `{name}` ({operator}): {error}") from None
    return NodeDef(
        name,
        operator,
        tuple(Input.parse(text) for text in texts if not text.startswith("^")),
        tuple(text[1:] for text in texts if text.startswith("^")),
        attributes,
    )


def _attribute(message: Message) -> Attribute:
    kind = message.given()
    if kind == "list":
        held = message.message("list")
        inner = held.given()
        return Attribute(f"list({inner})", tuple(_values(held, inner)) if inner else ())
    return Attribute(kind, _values(message, kind)[-1] if kind else None)


def _values(message: Message, kind: str) -> list[object]:
    match kind:
        case "shape":
            return [static_shape(shape) for shape in message.messages("shape")]
        case "tensor":
            return [read_tensor(tensor) for tensor in message.messages("tensor")]
        case "func":
            return [function.last("name", "") for function in message.messages("func")]
        case _:
            return message.all(kind)


def static_shape(message: Message) -> StaticShape:
    """What a ``TensorShapeProto`` says."""
    if message.last("unknown_rank", False):
        return None
    sizes = [int(dimension.last("size", 0)) for dimension in message.messages("dim")]
    return tuple(size if size >= 0 else None for size in sizes)
