"""The messages of a GraphDef: their fields with numbers, names and kinds, as TensorFlow's ``.proto`` files have them.

What this package does not need is left out, and is skipped where it is met.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from tc.graph.protobuf.schema import Field, Kind, Schema

DIMENSION: Final = Schema("Dim", Field(1, "size", Kind.INTEGER), Field(2, "name", Kind.TEXT))
SHAPE: Final = Schema(
    "TensorShapeProto", Field(2, "dim", DIMENSION, repeated=True), Field(3, "unknown_rank", Kind.BOOLEAN)
)
TENSOR: Final = Schema(
    "TensorProto",
    Field(1, "dtype", Kind.TYPE),
    Field(2, "tensor_shape", SHAPE),
    Field(4, "tensor_content", Kind.BYTES),
    Field(5, "float_val", Kind.FLOAT, repeated=True),
    Field(6, "double_val", Kind.DOUBLE, repeated=True),
    Field(7, "int_val", Kind.INTEGER, repeated=True),
    Field(8, "string_val", Kind.BYTES, repeated=True),
    Field(10, "int64_val", Kind.INTEGER, repeated=True),
    Field(11, "bool_val", Kind.BOOLEAN, repeated=True),
    Field(13, "half_val", Kind.INTEGER, repeated=True),
    Field(16, "uint32_val", Kind.UNSIGNED, repeated=True),
    Field(17, "uint64_val", Kind.UNSIGNED, repeated=True),
    Field(18, "float8_val", Kind.BYTES),
)
_SCALARS: Final = (
    (2, "s", Kind.BYTES),
    (3, "i", Kind.INTEGER),
    (4, "f", Kind.FLOAT),
    (5, "b", Kind.BOOLEAN),
    (6, "type", Kind.TYPE),
    (7, "shape", SHAPE),
    (8, "tensor", TENSOR),
)
# A function with attributes of its own, which nothing here looks into.
_FUNCTION: Final = Schema("NameAttrList", Field(1, "name", Kind.TEXT))
LIST: Final = Schema(
    "ListValue",
    *(Field(number, name, kind, repeated=True) for number, name, kind in _SCALARS),
    Field(9, "func", _FUNCTION, repeated=True),
)
ATTRIBUTE: Final = Schema(
    "AttrValue",
    Field(1, "list", LIST),
    *(Field(number, name, kind) for number, name, kind in _SCALARS),
    Field(9, "placeholder", Kind.TEXT),
    Field(10, "func", _FUNCTION),
    one=True,
)
ENTRY: Final = Schema("AttrEntry", Field(1, "key", Kind.TEXT), Field(2, "value", ATTRIBUTE))
NODE: Final = Schema(
    "NodeDef",
    Field(1, "name", Kind.TEXT),
    Field(2, "op", Kind.TEXT),
    Field(3, "input", Kind.TEXT, repeated=True),
    Field(4, "device", Kind.TEXT),
    Field(5, "attr", ENTRY, repeated=True),
)
VERSIONS: Final = Schema("VersionDef", Field(1, "producer", Kind.INTEGER), Field(2, "min_consumer", Kind.INTEGER))
GRAPH: Final = Schema("GraphDef", Field(1, "node", NODE, repeated=True), Field(4, "versions", VERSIONS))

# Names of ``DataType`` by number; a number above 100 is that of a reference to a variable of the type 100 below.
TYPE_NAMES: Final = MappingProxyType(
    dict(
        enumerate(
            (
                "DT_INVALID", "DT_FLOAT", "DT_DOUBLE", "DT_INT32", "DT_UINT8", "DT_INT16", "DT_INT8", "DT_STRING",
                "DT_COMPLEX64", "DT_INT64", "DT_BOOL", "DT_QINT8", "DT_QUINT8", "DT_QINT32", "DT_BFLOAT16",
                "DT_QINT16", "DT_QUINT16", "DT_UINT16", "DT_COMPLEX128", "DT_HALF", "DT_RESOURCE", "DT_VARIANT",
                "DT_UINT32", "DT_UINT64", "DT_FLOAT8_E5M2", "DT_FLOAT8_E4M3FN",
            )
        )
    )
)  # fmt: skip
REFERENCE: Final = 100
TYPE_NUMBERS: Final = MappingProxyType(
    {name: number for number, name in TYPE_NAMES.items()}
    | {f"{name}_REF": number + REFERENCE for number, name in TYPE_NAMES.items()}
)
