"""``weights.bin``: the constants of a model in one file; ``weights.h`` says how it begins."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from tc.base.frozen import frozen
from tc.graph.memory.offsets import ALIGNMENT

if TYPE_CHECKING:
    import numpy as np

_TEXT: Final = b"TCWEIGHT"
_HEAD: Final = struct.Struct("<8sQQQ")
_HEAD_BYTES: Final = 64
_ENTRY: Final = struct.Struct("<QQ")
_IDENTITY_BYTES: Final = 8


@frozen
class Tensor:
    """A constant in the file: equal ones share their bytes."""

    name: str
    offset: int
    bytes: int


@frozen
class Weights:
    """``identity``: what tells the files of two exports apart.  ``sha256``: of the whole file."""

    tensors: tuple[Tensor, ...]
    size: int
    identity: int
    sha256: str
    pieces: tuple[bytes | memoryview, ...]

    @property
    def offsets(self) -> dict[str, int]:
        """Where each constant begins."""
        return {tensor.name: tensor.offset for tensor in self.tensors}


def weights_of(constants: Mapping[str, np.ndarray]) -> Weights:
    """The file with these constants, which lie in order."""
    first: dict[bytes, str] = {}
    digests = {name: hashlib.sha256(_bytes(array)).digest() for name, array in constants.items()}
    for name, digest in digests.items():
        first.setdefault(digest, name)
    table = _HEAD_BYTES + _ENTRY.size * len(constants)
    offsets, size = {}, _rounded(table)
    for name in first.values():
        offsets[name] = size
        size += _rounded(constants[name].nbytes)
    tensors = tuple(Tensor(name, offsets[first[d]], constants[name].nbytes) for name, d in digests.items())
    entries = b"".join(_ENTRY.pack(tensor.offset, tensor.bytes) for tensor in tensors)
    identity = int.from_bytes(hashlib.sha256(entries + b"".join(first)).digest()[:_IDENTITY_BYTES], "little")
    head = _padded(_HEAD.pack(_TEXT, identity, size, len(tensors)), _HEAD_BYTES)
    pieces = (_padded(head + entries, ALIGNMENT), *_aligned(constants[name] for name in first.values()))
    whole = hashlib.sha256()
    for piece in pieces:
        whole.update(piece)
    return Weights(tensors, size, identity, whole.hexdigest(), pieces)


def _aligned(arrays: Iterable[np.ndarray]) -> Iterator[bytes | memoryview]:
    for array in arrays:
        yield _bytes(array)
        yield bytes(-array.nbytes % ALIGNMENT)


def _bytes(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view("uint8").data


def _rounded(size: int) -> int:
    return size + -size % ALIGNMENT


def _padded(text: bytes, alignment: int) -> bytes:
    return text + bytes(-len(text) % alignment)
