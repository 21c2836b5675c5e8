"""Tensors and types of TensorFlow as those of NumPy and of the language."""

from __future__ import annotations

from typing import Final

import numpy as np

from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.graphdef.schema import REFERENCE, TYPE_NAMES, TYPE_NUMBERS
from tc.graph.protobuf.schema import Message

TYPES: Final = {
    TYPE_NUMBERS[f"DT_{name}"]: type
    for name, type in (
        ("FLOAT", ScalarType.FLOAT32),
        ("DOUBLE", ScalarType.FLOAT64),
        ("INT32", ScalarType.INT32),
        ("UINT8", ScalarType.UINT8),
        ("INT16", ScalarType.INT16),
        ("INT8", ScalarType.INT8),
        ("INT64", ScalarType.INT64),
        ("BOOL", ScalarType.BOOL),
        ("BFLOAT16", ScalarType.BFLOAT16),
        ("UINT16", ScalarType.UINT16),
        ("HALF", ScalarType.FLOAT16),
        ("UINT32", ScalarType.UINT32),
        ("UINT64", ScalarType.UINT64),
        ("FLOAT8_E5M2", ScalarType.FLOAT8_E5M2),
        ("FLOAT8_E4M3FN", ScalarType.FLOAT8_E4M3FN),
    )
}
# Where the values of a type are, if they are not the bytes of `tensor_content`; those of the others are in `int_val`.
_FIELDS: Final = {
    ScalarType.FLOAT32: "float_val",
    ScalarType.FLOAT64: "double_val",
    ScalarType.INT64: "int64_val",
    ScalarType.BOOL: "bool_val",
    ScalarType.BFLOAT16: "half_val",
    ScalarType.FLOAT16: "half_val",
    ScalarType.UINT32: "uint32_val",
    ScalarType.UINT64: "uint64_val",
    ScalarType.FLOAT8_E5M2: "float8_val",
    ScalarType.FLOAT8_E4M3FN: "float8_val",
}
# More bytes than any machine has are announced by mistake, or by malice.
_MOST_BYTES: Final = 1 << 40
# NumPy has no arrays with more.
_MOST_DIMENSIONS: Final = 64


@frozen
class Tensor:
    """``values`` has one dimension; the last of them is repeated where the shape has more elements."""

    type: ScalarType
    shape: tuple[int, ...]
    values: np.ndarray

    @property
    def count(self) -> int:
        """How many elements it has."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    @property
    def is_whole(self) -> bool:
        """Whether every element has a value of its own."""
        return len(self.values) == self.count

    def array(self) -> np.ndarray:
        """All elements."""
        count = self.count
        filled = np.pad(self.values, (0, count - len(self.values)), "edge") if not self.is_whole else self.values
        return filled.reshape(self.shape)


def type_of(number: int, what: str) -> ScalarType:
    """The type with a number of ``DataType``, or of references to it; GraphError for one that the language lacks."""
    own = number - REFERENCE if number > REFERENCE else number
    if own not in TYPES:
        raise GraphError(f"{what} has the type {TYPE_NAMES.get(own, own)}, which is not supported")
    return TYPES[own]


def read_tensor(message: Message) -> Tensor | str:
    """The tensor; in its place what is wrong, if its type is not supported, which matters where it is used.

    GraphError where it has not the values that its shape announces.
    """
    try:
        type = type_of(message.last("dtype", 0), "the tensor")
    except GraphError as error:
        return str(error)
    shape = _shape(message.message("tensor_shape"), type)
    empty = Tensor(type, shape, np.zeros(0, _dtype(type)))
    content = message.last("tensor_content", b"")
    if content:
        announced = empty.count * type.itemsize
        if len(content) != announced:
            raise GraphError(f"a tensor announces {announced} bytes, and has {len(content)}")
        return Tensor(type, shape, _from_bytes(content, type))
    values = _listed(message, type)
    if len(values) > empty.count:
        raise GraphError(f"a tensor announces {empty.count} elements, and has {len(values)}")
    if not len(values) and empty.count:
        values = np.zeros(1, _dtype(type))
    return Tensor(type, shape, values)


def _shape(message: Message, type: ScalarType) -> tuple[int, ...]:
    sizes = tuple(int(dimension.last("size", 0)) for dimension in message.messages("dim"))
    if message.last("unknown_rank", False) or any(size < 0 for size in sizes):
        raise GraphError("a tensor has a shape that is not known")
    if len(sizes) > _MOST_DIMENSIONS:
        raise GraphError(f"a tensor has {len(sizes)} dimensions, which are more than {_MOST_DIMENSIONS}")
    total = type.itemsize
    for size in sizes:
        total *= size
    if total > _MOST_BYTES:
        raise GraphError(f"a tensor announces {total} bytes")
    return sizes


def _listed(message: Message, type: ScalarType) -> np.ndarray:
    """The values of the list for a type; half precision is kept as bits."""
    field = _FIELDS.get(type, "int_val")
    if field == "float8_val":
        return _from_bytes(message.last(field, b""), type)
    values = message.all(field)
    if field == "half_val":
        return np.asarray(values, np.int64).astype(np.uint16).view(_dtype(type))
    wide = {"int_val": np.dtype(np.int64)}.get(field, _dtype(type))
    return np.asarray(values, wide).astype(_dtype(type))


def _from_bytes(content: bytes, type: ScalarType) -> np.ndarray:
    dtype = _dtype(type)
    if type is ScalarType.BOOL:
        return np.frombuffer(content, np.uint8).astype(np.bool_)
    return np.frombuffer(content, dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype).astype(dtype)


def _dtype(type: ScalarType) -> np.dtype:
    from tc.runtime.frameworks.numpy_arrays import numpy_dtype

    return numpy_dtype(type)
