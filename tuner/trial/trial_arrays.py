"""The arrays that a task is tried on: made at random or taken from a call, and kept in files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tc.base.interface import Interface
from tc.language.program.program import (
    Cast,
    Expression,
    Program,
    Read,
    Reduction,
    Role,
    Select,
    children,
    walk,
)
from tc.language.program.specialization import Signature, Specialization
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

Array = npt.NDArray[Any]

# Integers that choose nothing.
_INTEGERS: Final = 8


def random_arrays(
    program: Program, specialization: Specialization, seed: int, smallest: Specialization | None = None
) -> dict[str, Array]:
    """Arguments, and first values of in-out results, by name: normally distributed floats, small integers, and
    indices that are in range.  The same ones for the same seed.

    ``smallest``: the program for the smallest sizes that parts of the arrays are passed for.
    """
    random = np.random.default_rng(seed)
    made: dict[str, Array] = {}
    for tensor in program.tensors:
        if tensor.role not in (Role.INPUT, Role.IN_OUT):
            continue
        shape, dtype = specialization.layouts[tensor.name].shape, numpy_dtype(tensor.type)
        if tensor.type.is_floating:
            made[tensor.name] = random.standard_normal(shape, np.float32).astype(dtype)
        else:
            highest = min([_INTEGERS, int(tensor.type.maximum) + 1, *_indexed(tensor.name, smallest or specialization)])
            made[tensor.name] = random.integers(0, max(1, highest), shape).astype(dtype)
    return made


def _indexed(tensor: str, specialization: Specialization) -> Iterator[int]:
    """How many values the elements of ``tensor`` can have where they choose elements of another.

    They do so by way of temporaries, too, as where indices may count from the end:
    ``J(i) = I(i) < 0 ? I(i) + N : I(i)``.
    """
    pending, known = [(tensor, True)], set[tuple[str, bool]]()  # whether its elements are those of ``tensor``
    while pending:
        own, plain = pending.pop()
        if (own, plain) in known:
            continue
        known.add((own, plain))
        for statement in specialization.program.statements:
            for read in _reads((statement.value, *statement.subscripts, *statement.conditions)):
                for dimension, subscript in enumerate(read.subscripts):
                    if own in {inner.tensor for inner in _reads((subscript,))}:
                        # Where an index is computed with, 0 is the value that most likely stays in range.
                        kept = plain and _is_plain(subscript, own)
                        yield specialization.layouts[read.tensor].shape[dimension] if kept else 1
            if _is_part(statement.value, own):
                sums = statement.reduction in (Reduction.ADD, Reduction.MULTIPLY)
                pending.append((statement.target, plain and not sums and _is_plain(statement.value, own)))


def _reads(expressions: Iterable[Expression]) -> Iterator[Read]:
    return (e for expression in expressions for e in walk(expression) if isinstance(e, Read))


def _is_part(value: Expression, tensor: str) -> bool:
    """Whether a value is computed with elements of the tensor; those that choose what is read are not part of it."""
    if isinstance(value, Read):
        return value.tensor == tensor
    return any(_is_part(part, tensor) for part in children(value))


def _is_plain(index: Expression, tensor: str) -> bool:
    """Whether an index is an element of the tensor, as it is, at least on some condition."""
    match index:
        case Read():
            return index.tensor == tensor
        case Cast(operand):
            return _is_plain(operand, tensor)
        case Select(_, then, otherwise):
            return _is_plain(then, tensor) or _is_plain(otherwise, tensor)
        case _:
            return False


def keep_arrays(arrays: Mapping[str, Array], folder: Path) -> None:
    """Writes arrays into a folder, as bytes: NumPy's files know no bfloat16."""
    for name, array in arrays.items():
        np.save(folder / f"argument-{name}.npy", _bytes(array))


def first_elements(array: Array, shape: tuple[int, ...]) -> Array:
    """As many elements from the first one on as this shape has, which is no larger in any dimension."""
    return array if array.shape == shape else array.reshape(-1)[: math.prod(shape)].reshape(shape)


def kept_arrays(interface: Interface, signature: Signature, folder: Path, *, on_disk: bool) -> dict[str, Array]:
    """The arrays in a folder by name; arguments have the extents and the strides of the signature.

    ``on_disk``: they are read-only and stay in their files, so that who writes to them is stopped.
    """
    specs = dict(signature.arguments)
    found: dict[str, Array] = {}
    for tensor in interface.tensors:
        file = folder / f"argument-{tensor.name}.npy"
        if file.exists():
            stored = np.load(file, mmap_mode="r" if on_disk else None)
            values = stored.view(numpy_dtype(tensor.type)).reshape(stored.shape[:-1])
            spec = specs.get(tensor.name)
            if spec is not None:
                values = first_elements(values, spec.shape)
            strides = None if spec is None else spec.strides
            found[tensor.name] = values if strides is None else _strided(values, strides)
    return found


def _bytes(array: Array) -> Array:
    whole = np.ascontiguousarray(array).reshape(array.shape)
    return np.frombuffer(whole.tobytes(), np.uint8).reshape(*array.shape, array.dtype.itemsize)


def _strided(values: Array, strides: tuple[int, ...]) -> Array:
    """The values where an array with these strides, in elements, has them."""
    steps = [(extent - 1) * stride for extent, stride in zip(values.shape, strides, strict=True)]
    first = -sum(step for step in steps if step < 0)
    memory = np.zeros(first + sum(step for step in steps if step > 0) + 1, values.dtype)
    size = values.dtype.itemsize
    # Not ``as_strided``, which knows no types but NumPy's own.
    array: Array = np.ndarray(values.shape, values.dtype, memory, first * size, [stride * size for stride in strides])
    array[...] = values
    return array
