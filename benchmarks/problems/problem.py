"""``Problem``: a comprehension that is measured, and how arguments for it are made at any sizes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

import tc
from tc.api.comprehension import Comprehension
from tc.api.definitions import Definitions
from tc.language.program.program import Expression, Literal, SizeReference
from tc.runtime.frameworks.numpy_arrays import numpy_dtype

Array: TypeAlias = npt.NDArray[Any]  # floats, and integers that are indices
Sizes: TypeAlias = Mapping[str, int]
# What a library's call takes: arrays, and integers that are part of the call, such as a number of groups.
PeerArguments: TypeAlias = tuple[Array | int, ...]

_FOLDER: Final = Path(__file__).parents[1] / "comprehensions"


def as_they_are(*arrays: Array) -> PeerArguments:
    """The arguments of the comprehension, unchanged."""
    return arrays


@dataclass(frozen=True, slots=True)
class Problem:
    """The definition in ``comprehensions/NAME.tc``, or the one of that name in ``comprehensions/FILE.tc``.

    ``indices``: per argument that holds indices, the argument whose rows they choose.
    ``classes``: per argument that holds numbers of classes, the size that says how many there are.
    ``arrange``: what libraries take instead of the arguments; it is not timed.
    """

    name: str
    indices: Mapping[str, str] = field(default_factory=dict)
    classes: Mapping[str, str] = field(default_factory=dict)
    arrange: Callable[..., PeerArguments] = as_they_are
    file: str | None = None

    @property
    def text(self) -> str:
        """The definition, and others of its file."""
        return (_FOLDER / f"{self.file or self.name}.tc").read_text(encoding="utf-8")

    @property
    def comprehension(self) -> Comprehension:
        """The definition, ready to be called."""
        return _define(self.text)[self.name] if self.file else _define(self.text).single()

    def shapes(self, sizes: Sizes) -> dict[str, tuple[int, ...]]:
        """Shapes of the arguments by name, in the order of the parameters.

        ValueError if a size is missing or unknown.
        """
        program = self.comprehension.program
        if set(sizes) != set(program.sizes):
            raise ValueError(f"{self.name} has the sizes {', '.join(program.sizes)}, got {', '.join(sizes)}")
        return {
            name: tuple(_extent(extent, sizes) for extent in program.tensor(name).shape) for name in program.arguments
        }

    def arguments(self, sizes: Sizes, seed: int = 0) -> dict[str, Array]:
        """Normally distributed floats and uniformly distributed integers, by name, in the order of the parameters.

        The same numbers for the same sizes and seed, in every process.  ValueError if a size is missing or unknown.
        """
        shapes = self.shapes(sizes)
        random = np.random.default_rng(seed)
        made: dict[str, Array] = {}
        for name, shape in shapes.items():
            type = numpy_dtype(self.comprehension.program.tensor(name).type)
            if name in self.indices:
                made[name] = random.integers(0, shapes[self.indices[name]][0], shape, type)
            elif name in self.classes:
                made[name] = random.integers(0, sizes[self.classes[name]], shape, type)
            elif type == np.bool_:
                made[name] = random.integers(0, 2, shape).astype(type)
            elif np.issubdtype(type, np.integer):
                limits = np.iinfo(type)
                made[name] = random.integers(limits.min, limits.max, shape, type, endpoint=True)
            else:
                drawn = np.float64 if type == np.float64 else np.float32
                made[name] = random.standard_normal(shape, drawn).astype(type, copy=False)
        return made


def _extent(extent: Expression, sizes: Sizes) -> int:
    match extent:
        case SizeReference(name):
            return sizes[name]
        case Literal(value):
            return int(value)
        case _:
            raise ValueError(f"an extent of an argument must be a size or a number, got {extent}")


@functools.cache
def _define(text: str) -> Definitions:
    return tc.define(text)
