"""GraphDefs written by hand: nodes as data, encoded in protobuf's binary format and in its text format."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

import tc
import tc.graph

NUMBERS = {
    "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "string": 7, "complex64": 8, "int64": 9,
    "bool": 10, "bfloat16": 14, "uint16": 17, "float16": 19, "resource": 20, "uint32": 22, "uint64": 23,
    "float8_e5m2": 24, "float8_e4m3fn": 25,
}  # fmt: skip
NAMES = {
    "float32": "DT_FLOAT", "float64": "DT_DOUBLE", "float16": "DT_HALF", "string": "DT_STRING", "bool": "DT_BOOL",
    "float8_e5m2": "DT_FLOAT8_E5M2", "float8_e4m3fn": "DT_FLOAT8_E4M3FN", "resource": "DT_RESOURCE",
}  # fmt: skip


@dataclass(frozen=True)
class Type:
    """An attribute that is a type."""

    name: str


@dataclass(frozen=True)
class Shape:
    """An attribute that is a shape; -1 for an open extent, None where nothing is known."""

    sizes: tuple[int, ...] | None


@dataclass(frozen=True)
class Listed:
    """A tensor by a list of values; the last one is repeated."""

    dtype: str
    shape: tuple[int, ...]
    field: str
    values: Sequence[object]


Attribute: TypeAlias = "int | float | bool | str | Type | Shape | Listed | np.ndarray | Sequence[int] | Sequence[str]"
# A field of a message: its number, its name, and its value; lists are repeated fields.
Field: TypeAlias = "tuple[int, str, object]"


@dataclass(frozen=True)
class Word:
    """The name of an enumeration, with its number."""

    name: str
    number: int


@dataclass(frozen=True)
class Node:
    name: str
    op: str
    inputs: tuple[str, ...]
    attributes: dict[str, Attribute] = field(default_factory=dict)


def node(name: str, op: str, *inputs: str, **attributes: Attribute) -> Node:
    return Node(name, op, inputs, attributes)


def placeholder(name: str, dtype: str = "float32", shape: tuple[int, ...] | None = None) -> Node:
    return node(name, "Placeholder", dtype=Type(dtype), shape=Shape(shape))


def const(name: str, value: object, dtype: str | None = None) -> Node:
    array = np.asarray(value, dtype)
    return node(name, "Const", value=array, dtype=Type(array.dtype.name))


# --- messages --------------------------------------------------------------------------------------------


def _type(name: str) -> Word:
    return Word(NAMES.get(name, f"DT_{name.upper()}"), NUMBERS[name])


def _shape(sizes: tuple[int, ...] | None) -> list[Field]:
    return [(3, "unknown_rank", True)] if sizes is None else [(2, "dim", [(1, "size", size)]) for size in sizes]


def _tensor(value: np.ndarray | Listed) -> list[Field]:
    if isinstance(value, np.ndarray):
        head: list[Field] = [(1, "dtype", _type(value.dtype.name)), (2, "tensor_shape", _shape(value.shape))]
        return [*head, (4, "tensor_content", value.tobytes())]
    numbers = {"float_val": 5, "double_val": 6, "int_val": 7, "string_val": 8, "int64_val": 10, "bool_val": 11}
    numbers |= {"half_val": 13, "uint32_val": 16, "uint64_val": 17, "float8_val": 18}
    head = [(1, "dtype", _type(value.dtype)), (2, "tensor_shape", _shape(value.shape))]
    return [*head, *((numbers[value.field], value.field, one) for one in value.values)]


def _attribute(value: Attribute) -> Field:
    match value:
        case bool():
            return 5, "b", value
        case int():
            return 3, "i", value
        case float():
            return 4, "f", value
        case str():
            return 2, "s", value.encode()
        case Type(name):
            return 6, "type", _type(name)
        case Shape(sizes):
            return 7, "shape", _shape(sizes)
        case Listed() | np.ndarray():
            return 8, "tensor", _tensor(value)
        case _:
            return 1, "list", [(2, "s", one.encode()) if isinstance(one, str) else (3, "i", one) for one in value]


def message(nodes: Sequence[Node], producer: int = 26) -> list[Field]:
    """The fields of a GraphDef."""
    fields: list[Field] = []
    for one in nodes:
        attributes = [
            (5, "attr", [(1, "key", key), (2, "value", [_attribute(value)])])
            for key, value in sorted(one.attributes.items())
        ]
        inputs = [(3, "input", name) for name in one.inputs]
        fields.append((1, "node", [(1, "name", one.name), (2, "op", one.op), *inputs, *attributes]))
    return [*fields, (4, "versions", [(1, "producer", producer)])]


# --- formats ---------------------------------------------------------------------------------------------


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    parts = bytearray()
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes((*parts, value))


def encoded(fields: Sequence[Field]) -> bytes:
    """The message in binary form; numbers of lists are packed."""
    return b"".join(_encoded(number, name, value) for number, name, value in fields)


def _encoded(number: int, name: str, value: object) -> bytes:
    match value:
        case Word(_, code):
            return varint(number << 3) + varint(code)
        case bool() | int():
            if name == "float_val":
                return varint(number << 3 | 5) + struct.pack("<f", value)
            return varint(number << 3) + varint(int(value))
        case float() if name == "double_val":
            return varint(number << 3 | 1) + struct.pack("<d", value)
        case float():
            return varint(number << 3 | 5) + struct.pack("<f", value)
        case str():
            value = value.encode()
        case list():
            value = encoded(value)
    assert isinstance(value, bytes)
    return varint(number << 3 | 2) + varint(len(value)) + value


def binary(nodes: Sequence[Node], producer: int = 26) -> bytes:
    return encoded(message(nodes, producer))


def text(nodes: Sequence[Node], producer: int = 26) -> str:
    return "\n".join(_lines(message(nodes, producer), "")) + "\n"


def _lines(fields: Sequence[Field], indent: str) -> Iterator[str]:
    for _, name, value in fields:
        match value:
            case list():
                yield f"{indent}{name} {{"
                yield from _lines(value, f"{indent}  ")
                yield f"{indent}}}"
            case Word(word, _):
                yield f"{indent}{name}: {word}"
            case bool():
                yield f"{indent}{name}: {str(value).lower()}"
            case str() | bytes():
                yield f'{indent}{name}: "{_escaped(value if isinstance(value, bytes) else value.encode())}"'
            case _:
                yield f"{indent}{name}: {value!r}"


def _escaped(data: bytes) -> str:
    plain = {ord("\n"): "\\n", ord('"'): '\\"', ord("\\"): "\\\\", ord("'"): "\\'", ord("\t"): "\\t", ord("\r"): "\\r"}
    return "".join(plain.get(byte) or (chr(byte) if 32 <= byte < 127 else f"\\{byte:03o}") for byte in data)


def model_of(*nodes: Node, producer: int = 26) -> tc.graph.Model:
    return tc.graph.load(binary(nodes, producer))


def nodes_read(model: tc.graph.Model) -> frozenset[str]:
    """The nodes whose attributes were read so far."""
    return model._source.nodes.read  # type: ignore[attr-defined,no-any-return]  # those of GraphDefs


# --- graphs of one operator ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Fixed:
    """An operand that is a constant of the graph."""

    array: np.ndarray


def fixed(value: object, dtype: str = "int32") -> Fixed:
    return Fixed(np.asarray(value, dtype))


def graph_of(op: str, *operands: np.ndarray | Fixed, **attributes: Attribute) -> tuple[bytes, dict[str, np.ndarray]]:
    """A graph whose node ``y`` applies an operator, and what its placeholders ``x0``, ``x1`` are."""
    nodes, inputs = [], {}
    for place, operand in enumerate(operands):
        name = f"x{place}"
        if isinstance(operand, Fixed):
            nodes.append(const(name, operand.array))
        else:
            nodes.append(placeholder(name, operand.dtype.name))
            inputs[name] = operand
    nodes.append(node("y", op, *(f"x{place}" for place in range(len(operands))), **attributes))
    return binary(nodes), inputs


def applied(
    op: str, *operands: np.ndarray | Fixed, results: int = 1, compiled: bool = False, **attributes: Any
) -> list[np.ndarray]:
    """The results of an operator: of the oracle, or of compiled kernels."""
    data, inputs = graph_of(op, *operands, **attributes)
    model = tc.graph.load(data)
    names = ["y", *(f"y:{place}" for place in range(1, results))]
    found = (model.run if compiled else model.reference)(names, inputs)
    return [found[name] for name in names]
