"""Constants of plans: what the model holds is found there by its name, the rest is stored.

What does not change along an axis is stored once for it, as weights that only have a shape yet.  Small constants are
stored with the plan, large ones by themselves, so that plans for other shapes share them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tc.base.frozen import frozen
from tc.graph.ir.values import Value
from tc.graph.run.arrays import numbers
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

# Bytes of the largest that is stored with the plan.
SMALL: Final = 1 << 14
# Bytes of all that plans store: models whose weights are computed from larger ones are prepared by each process.
MOST: Final = 1 << 28


@frozen
class Stored:
    """A constant: its shape before it is spread to that of its value, and where its elements are.

    ``name``: in the model.  ``offset``: among the small ones, in bytes.  ``number``: among the large ones.
    """

    shape: tuple[int, ...]
    name: str | None = None
    offset: int | None = None
    number: int | None = None


@frozen
class StoredConstants:
    """``places``: by name.  ``small``: one after the other.  ``large``: each of them once."""

    places: Mapping[str, Stored]
    small: bytes
    large: tuple[bytes, ...]


def stored(constants: Mapping[str, np.ndarray], held: Mapping[str, np.ndarray]) -> StoredConstants | None:
    """The constants as they are stored, with those that the model holds; None where they are too many."""
    places: dict[str, Stored] = {}
    small, large = bytearray(), dict[bytes, int]()
    found, own = dict[int, Stored](), _Held(held)
    for name, array in constants.items():
        if id(array) in found:
            places[name] = found[id(array)]
            continue
        source = own.find(array)
        if source is not None:
            place = Stored(array.shape, name=source)
        else:
            part = _gathered(array)
            contents = part.tobytes()
            if len(contents) <= SMALL:
                place = Stored(part.shape, offset=len(small))
                small += contents
            else:
                place = Stored(part.shape, number=large.setdefault(contents, len(large)))
        places[name] = found[id(array)] = place
    if len(small) + sum(map(len, large)) > MOST:
        return None
    return StoredConstants(places, bytes(small), tuple(large))


def are_held(places: Mapping[str, Stored]) -> bool:
    """Whether some constants are those that the model holds."""
    return any(place.name is not None for place in places.values())


def restored(
    places: Mapping[str, Stored],
    values: Mapping[str, Value],
    small: bytes,
    large: Sequence[bytes],
    held: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """The constants by name; equal ones are one array.  ``held``: what the model holds, where ``are_held`` says so.

    ValueError or LookupError for places that there are not.
    """
    found: dict[object, np.ndarray] = {}
    made = {}
    for name, place in places.items():
        value = values[name]
        shape, dtype = numbers(value.shape, name), numpy_dtype(value.type)
        key: object = (place, shape, value.type)
        if place.offset is not None:
            count = math.prod(place.shape) * dtype.itemsize
            key = (small[place.offset : place.offset + count], place.shape, shape, value.type)
        if key not in found:
            found[key] = _restored(place, shape, dtype, small, large, held)
        made[name] = found[key]
    return made


def _restored(
    place: Stored,
    shape: tuple[int, ...],
    dtype: np.dtype,
    small: bytes,
    large: Sequence[bytes],
    model: Mapping[str, np.ndarray],
) -> np.ndarray:
    if place.name is not None:
        array = model[place.name]
        if array.dtype != dtype:
            raise ValueError(f"the model has {place.name} with the type {array.dtype}, not {dtype}")
        return np.require(array.reshape(shape), requirements=["C", "A"])
    if place.number is not None:
        array = np.frombuffer(large[place.number], dtype)
    else:
        assert place.offset is not None
        array = np.frombuffer(small, dtype, math.prod(place.shape), place.offset)
    part = array.reshape(place.shape)
    if place.shape == shape:
        return np.require(part, requirements=["C", "A"])
    whole = np.empty(shape, dtype)
    whole[...] = part
    return whole


def _gathered(array: np.ndarray) -> np.ndarray:
    """The array with one element along each axis on which nothing changes."""
    bits = _bits(array)
    for axis in range(bits.ndim):
        first = bits.take([0], axis) if bits.shape[axis] > 1 and bits.size else None
        if first is not None and (bits == first).all():
            bits = first
    return np.ascontiguousarray(bits).view(array.dtype).reshape(bits.shape)


def _bits(array: np.ndarray) -> np.ndarray:
    """The elements as integers, which tell NaNs and zeros apart."""
    return np.ascontiguousarray(array).view(f"u{array.itemsize}").reshape(array.shape)


class _Held:
    """The arrays of a model by their contents."""

    def __init__(self, arrays: Mapping[str, np.ndarray]) -> None:
        self._by_size: Final[dict[tuple[np.dtype, int], list[tuple[str, np.ndarray]]]] = {}
        for name, array in arrays.items():
            self._by_size.setdefault((array.dtype, array.nbytes), []).append((name, array))

    def find(self, array: np.ndarray) -> str | None:
        """The name of one with these elements, which is worth finding."""
        if array.nbytes <= SMALL:
            return None
        bits = _bits(array).reshape(-1)
        candidates = self._by_size.get((array.dtype, array.nbytes), ())
        return next((name for name, one in candidates if np.array_equal(_bits(one).reshape(-1), bits)), None)
