"""Tensors as the bytes of a model have them.

They are read without the package ``onnx``, whose import takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from tc.base.digest import sha256_hex
from tc.base.frozen import frozen
from tc.graph.onnx.tensors import array_of
from tc.graph.protobuf.schema import Field, Kind, Message, Schema
from tc.graph.protobuf.wire import Encoded, fields

if TYPE_CHECKING:
    from tc.graph.onnx.tensors import Folder

_ENTRY: Final = Schema("StringStringEntryProto", Field(1, "key", Kind.TEXT), Field(2, "value", Kind.TEXT))
_TENSOR: Final = Schema(
    "TensorProto",
    Field(1, "dims", Kind.INTEGER, repeated=True),
    Field(2, "data_type", Kind.INTEGER),
    Field(4, "float_data", Kind.FLOAT, repeated=True),
    Field(5, "int32_data", Kind.INTEGER, repeated=True),
    Field(7, "int64_data", Kind.INTEGER, repeated=True),
    Field(8, "name", Kind.TEXT),
    Field(9, "raw_data", Kind.MEMORY),
    Field(10, "double_data", Kind.DOUBLE, repeated=True),
    Field(11, "uint64_data", Kind.UNSIGNED, repeated=True),
    Field(13, "external_data", _ENTRY, repeated=True),
    Field(14, "data_location", Kind.INTEGER),
)
# Numbers of fields: of a model, of a function, of a graph, of a node, of an attribute.
_GRAPH, _FUNCTION = 7, 25
_FUNCTION_NODE: Final = 7
_NODE, _INITIALIZER = 1, 5
_ATTRIBUTE: Final = 5
_INNER_GRAPHS: Final = (6, 11)
# Where the data of a tensor is that lies beside the model, and a key without which no tensor says so.
_EXTERNAL: Final = 1
_LOCATION: Final = b"location"


@frozen
class StoredEntry:
    """An entry of what is said of data beside the model."""

    key: str
    value: str


class StoredTensor:
    """A tensor with the fields of ``TensorProto`` that ``tensors.array_of`` reads."""

    def __init__(self, message: Message) -> None:
        self.name: Final[str] = message.last("name", "")
        self.dims: Final = message.all("dims")
        self.data_type: Final[int] = message.last("data_type", 0)
        self.data_location: Final[int] = message.last("data_location", 0)
        self.raw_data: Final[memoryview | None] = message.last("raw_data", None)
        entries = message.messages("external_data")
        self.external_data: Final = [StoredEntry(entry.last("key", ""), entry.last("value", "")) for entry in entries]
        self.float_data: Final = message.all("float_data")
        self.int32_data: Final = message.all("int32_data")
        self.int64_data: Final = message.all("int64_data")
        self.double_data: Final = message.all("double_data")
        self.uint64_data: Final = message.all("uint64_data")

    def HasField(self, name: str) -> bool:  # noqa: N802  # as protobuf calls it
        """Whether there is a field that need not be there."""
        return getattr(self, name) is not None


def initializers(data: memoryview) -> Iterator[StoredTensor]:
    """Those of the graph of a model; GraphError for bytes that are none."""
    for graph in _parts(data, _GRAPH):
        yield from map(_tensor, _parts(graph, _INITIALIZER))


def all_initializers(data: memoryview) -> Iterator[StoredTensor]:
    """Those of all graphs, inside nodes and functions, too."""
    for graph in _parts(data, _GRAPH):
        yield from _of_graph(graph)
    for function in _parts(data, _FUNCTION):
        yield from _of_nodes(_parts(function, _FUNCTION_NODE))


def _of_graph(graph: memoryview) -> Iterator[StoredTensor]:
    yield from map(_tensor, _parts(graph, _INITIALIZER))
    yield from _of_nodes(_parts(graph, _NODE))


def _of_nodes(nodes: Iterator[memoryview]) -> Iterator[StoredTensor]:
    for node in nodes:
        for attribute in _parts(node, _ATTRIBUTE):
            for graph in _parts(attribute, *_INNER_GRAPHS):
                yield from _of_graph(graph)


def _tensor(data: memoryview) -> StoredTensor:
    return StoredTensor(Encoded(data).read(_TENSOR))


def _parts(message: memoryview, *numbers: int) -> Iterator[memoryview]:
    """The messages in fields with these numbers."""
    return (raw for number, _, raw in fields(message) if number in numbers and isinstance(raw, memoryview))


def stored_arrays(data: bytes, folder: Folder | None) -> dict[str, np.ndarray]:
    """The initializers of a model by name, in its own memory where they lie there as they are: only to be read."""
    return {tensor.name: _array(tensor, folder) for tensor in initializers(memoryview(data))}


def digest_of(data: bytes, folder: Folder | None) -> str:
    """The hash of all bytes of a model, of data beside it too; GraphError where that cannot be read."""
    own = sha256_hex(data)
    if _LOCATION not in data:
        return own
    beside = [one for one in all_initializers(memoryview(data)) if one.data_location == _EXTERNAL]
    parts = (sha256_hex(_array(tensor, folder).tobytes()) for tensor in beside)
    return sha256_hex("\n".join((own, *parts)).encode())


def _array(tensor: StoredTensor, folder: Folder | None) -> np.ndarray:
    what = f"the initializer `{tensor.name}`"
    return array_of(tensor, folder, what)
