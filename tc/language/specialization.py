"""``Specialization``: a program for one set of dtypes, shapes, strides and structural scalar values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tc.errors import ArgumentError
from tc.types import ScalarType

if TYPE_CHECKING:  # ``import tc`` offers ArraySpec, and need not wait for the classes of programs
    from tc.language.program import Program


@dataclass(frozen=True, slots=True)
class ArraySpec:
    """What a call must know of an array: ``strides`` in elements; None means C-contiguous.

    ArgumentError for a negative extent, strides whose number is not that of the extents, or another kind of dtype.
    """

    shape: tuple[int, ...]
    dtype: ScalarType
    strides: tuple[int, ...] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.dtype, ScalarType):
            raise ArgumentError(f"an array has a dtype of tc.ScalarType, such as FLOAT32, got {self.dtype!r}")
        if any(extent < 0 for extent in self.shape):
            raise ArgumentError(f"an array cannot have the shape {self.shape}; extents are not negative")
        if self.strides is not None and len(self.strides) != len(self.shape):
            raise ArgumentError(f"{len(self.strides)} strides for {len(self.shape)} dimensions; give one for each")
        if self.strides == contiguous_strides(self.shape):
            object.__setattr__(self, "strides", None)


def contiguous_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides in elements."""
    strides: list[int] = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the elements of a tensor lie: shape and strides, both in elements."""

    type: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def span(self) -> int:
        """Elements from the first to the last in memory, for strides that are not negative; 0 without elements."""
        if self.size == 0:
            return 0
        return 1 + sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))

    @property
    def offsets(self) -> range:
        """Where elements may be, relative to the one whose subscripts are 0; nowhere without elements."""
        if self.size == 0:
            return range(0)
        ends = [(extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True)]
        return range(sum(min(end, 0) for end in ends), 1 + sum(max(end, 0) for end in ends))


@dataclass(frozen=True, slots=True)
class Signature:
    """What distinguishes one compilation of a program from another.

    ``arguments``: per tensor argument its spec.  ``results``: specs of outputs passed through ``out=`` that are
    not C-contiguous, or are inputs.  ``scalars``: values of the integer scalars that occur in subscripts, ranges or
    shapes.
    ``aliases``: pairs (output, input) that share one memory with one layout.
    """

    arguments: tuple[tuple[str, ArraySpec], ...]
    results: tuple[tuple[str, ArraySpec], ...] = ()
    scalars: tuple[tuple[str, int], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Specialization:
    """A program whose sizes and structural scalars are literals, proven to stay inside its tensors.

    ``program`` has no sizes left: ranges, conditions, shapes and subscripts are affine in the iterators, apart
    from gathers.  ``layouts`` covers every tensor, results and temporaries included.
    """

    program: Program
    signature: Signature
    layouts: dict[str, Layout] = field(hash=False)
