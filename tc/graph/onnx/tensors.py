"""Tensors and types of ONNX as those of NumPy and of the language."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import numpy as np

from tc.base.errors import GraphError
from tc.base.types import ScalarType

if TYPE_CHECKING:
    Folder: TypeAlias = str | os.PathLike[str]

# Numbers of ``TensorProto.DataType``.
TYPES: Final = {
    1: ScalarType.FLOAT32,
    2: ScalarType.UINT8,
    3: ScalarType.INT8,
    4: ScalarType.UINT16,
    5: ScalarType.INT16,
    6: ScalarType.INT32,
    7: ScalarType.INT64,
    9: ScalarType.BOOL,
    10: ScalarType.FLOAT16,
    11: ScalarType.FLOAT64,
    12: ScalarType.UINT32,
    13: ScalarType.UINT64,
    16: ScalarType.BFLOAT16,
    17: ScalarType.FLOAT8_E4M3FN,
    19: ScalarType.FLOAT8_E5M2,
}
NUMBERS: Final = {type: number for number, type in TYPES.items()}
_OTHERS: Final = {
    0: "undefined", 8: "string", 14: "complex64", 15: "complex128", 18: "float8_e4m3fnuz", 20: "float8_e5m2fnuz",
    21: "uint4", 22: "int4", 23: "float4_e2m1", 24: "float8_e8m0", 25: "uint2", 26: "int2",
}  # fmt: skip
# Where the numbers of a type are, if they are not raw; several are kept as integers of more bits.
_FIELDS: Final = {1: "float_data", 7: "int64_data", 11: "double_data", 12: "uint64_data", 13: "uint64_data"}
# More bytes than any machine has are announced by mistake, or by malice.
_MOST_BYTES: Final = 1 << 40


def type_of(number: int, what: str) -> ScalarType:
    """The type with a number of ONNX; GraphError for one that the language lacks."""
    found = TYPES.get(number)
    if found is None:
        raise GraphError(f"{what} has the type {_OTHERS.get(number, number)}, which is not supported")
    return found


def dtype_of(type: ScalarType) -> np.dtype:
    """NumPy's type, that of ml_dtypes for those that NumPy lacks."""
    from tc.runtime.frameworks.numpy_arrays import numpy_dtype

    return numpy_dtype(type)


def array_of(tensor: Any, folder: Folder | None, what: str) -> np.ndarray:
    """The contents of a ``TensorProto``, or of what has its fields; ``folder`` is where data may lie beside the model.

    GraphError where its bytes are not those that its shape announces, or lie elsewhere.
    """
    shape, type = tuple(tensor.dims), type_of(tensor.data_type, what)
    if any(extent < 0 for extent in shape):
        raise GraphError(f"{what} announces the shape {shape}")
    count = 1
    for extent in shape:
        count *= extent
    if count * type.itemsize > _MOST_BYTES:
        raise GraphError(f"{what} announces {count * type.itemsize} bytes")
    dtype = dtype_of(type)
    if tensor.data_location == 1:
        raw: bytes | None = _beside(tensor, folder, what)
    else:
        raw = tensor.raw_data if tensor.HasField("raw_data") else None
    if raw is not None:
        if len(raw) != count * type.itemsize:
            raise GraphError(f"{what} announces {count * type.itemsize} bytes and has {len(raw)}")
        stored = dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype
        return np.frombuffer(raw, stored).astype(dtype, copy=False).reshape(shape)
    values = getattr(tensor, _FIELDS.get(tensor.data_type, "int32_data"))
    if len(values) != count:
        raise GraphError(f"{what} announces {count} elements and has {len(values)}")
    if type.is_half:  # their bits
        width = np.uint16 if type.itemsize == 2 else np.uint8
        return np.asarray(values, np.int64).astype(width).view(dtype).reshape(shape)
    return np.asarray(values).astype(dtype).reshape(shape)


def _beside(tensor: Any, folder: Folder | None, what: str) -> bytes:
    """The bytes of a tensor in a file beside the model, in its folder, reached by no link."""
    entries = {entry.key: entry.value for entry in tensor.external_data}
    location = entries.get("location", "")
    if folder is None:
        raise GraphError(f"{what} lies in the file {location!r}; load the model by its path")
    from pathlib import Path

    parts = Path(location).parts
    if not location or Path(location).is_absolute() or ".." in parts:
        raise GraphError(f"{what} lies in {location!r}, which is not in the folder of the model")
    path = Path(folder)
    for part in parts:
        path /= part
        if path.is_symlink():
            raise GraphError(f"{what} lies in {location!r}, which is reached by a link")
    try:
        offset, length = int(entries.get("offset", "0")), int(entries.get("length", "-1"))
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            if offset < 0 or offset > size or (length >= 0 and offset + length > size):
                raise GraphError(f"{what} begins at {offset} of {location!r}, which has {size} bytes")
            file.seek(offset)
            return file.read(length if length >= 0 else size - offset)
    except (OSError, ValueError) as error:
        raise GraphError(f"{what} cannot be read from {location!r}: {error}") from None
