"""``Specialization``: a program for one set of dtypes, shapes, strides and structural scalar values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace
from typing import TYPE_CHECKING, TypeAlias

from tc.base.counted import counted
from tc.base.errors import ArgumentError
from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.language.program.extent import Extent

if TYPE_CHECKING:  # ``import tc`` offers ArraySpec, and need not wait for the classes of programs
    from tc.language.program.program import Program


class Dynamic(int):
    """The greatest value of an extent that stays open."""

    def __repr__(self) -> str:
        return f"tc.dynamic({int(self)})"


def dynamic(most: int) -> int:
    """An extent that stays open, for shapes: one kernel serves every one from 1 to ``most``.

    It may stand for the first dimension of arguments, in ``ArraySpec`` and in plain shapes, and opens the size that is
    declared there, wherever else it occurs.  ArgumentError unless it is a positive integer.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ArgumentError(f"tc.dynamic takes the greatest size that is to be served, such as 512, got {most!r}")
    return Dynamic(most)


@frozen
class ArraySpec:
    """What a call must know of an array: ``strides`` in elements; None means C-contiguous.

    The first extent may be ``tc.dynamic``.  ArgumentError for a negative extent, strides whose number is not that of
    the extents, or another kind of dtype.
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
            raise ArgumentError(
                f"{counted(len(self.strides), 'stride')} for {counted(len(self.shape), 'dimension')}; give one for each"
            )
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


@frozen
class Layout:
    """Where the elements of a tensor lie: shape and strides, both in elements.

    ``first``: the extent of the first dimension where it depends on symbolic sizes; ``shape`` then has the greatest
    one.
    """

    type: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    first: Extent | None = None

    def at(self, sizes: tuple[int, ...]) -> Layout:
        """The layout for these values of the symbolic sizes."""
        if self.first is None:
            return self
        return Layout(self.type, (self.first.at(sizes), *self.shape[1:]), self.strides)

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


# Names of sizes that stay open, each with its greatest value; the least is 1.
Sizes: TypeAlias = tuple[tuple[str, int], ...]


@frozen
class SymbolicSize:
    """A size that stays open: one kernel serves every one from 1 to ``most``.

    ``arguments``: those whose first dimension it is.
    """

    most: int
    arguments: tuple[str, ...]

    @property
    def name(self) -> str:
        """Where callers find it: ``A.0`` for the first dimension of ``A``."""
        return f"{self.arguments[0]}.0"


@frozen
class Signature:
    """What distinguishes one compilation of a program from another.

    ``arguments``: per tensor argument its spec.  ``results``: specs of outputs passed through ``out=`` that are
    not C-contiguous, or are inputs.  ``scalars``: values of the integer scalars that occur in subscripts, ranges or
    shapes.
    ``aliases``: pairs (output, input) that share one memory with one layout.
    ``symbolic``: sizes that stay open, in the order of the arguments; specs have the greatest ones.
    """

    arguments: tuple[tuple[str, ArraySpec], ...]
    results: tuple[tuple[str, ArraySpec], ...] = ()
    scalars: tuple[tuple[str, int], ...] = ()
    aliases: tuple[tuple[str, str], ...] = ()
    symbolic: tuple[SymbolicSize, ...] = ()

    @property
    def settled(self) -> Signature:
        """The signature with the greatest sizes in place of symbolic ones."""
        return replace(self, symbolic=())

    def sizes_of(self, call: Signature) -> tuple[int, ...] | None:
        """The values of the symbolic sizes in a call that this signature covers; None if it does not cover it."""
        if not self.symbolic:
            return () if call == self else None
        specs = dict(call.arguments)
        found: list[int] = []
        for size in self.symbolic:
            extents = {specs[name].shape[0] for name in size.arguments if name in specs and specs[name].shape}
            if len(extents) != 1 or not 1 <= min(extents) <= size.most:
                return None
            found += extents
        return tuple(found) if self.at(tuple(found)) == call else None

    def opened(self, symbolic: tuple[SymbolicSize, ...]) -> Signature | None:
        """The signature that covers this one with these sizes open; None if they do not fit."""
        most = {name: size.most for size in symbolic for name in size.arguments}
        found = replace(self._with_first(most), symbolic=symbolic)
        return found if found.sizes_of(self) is not None else None

    def at(self, sizes: tuple[int, ...]) -> Signature:
        """The signature of a call with these sizes."""
        pairs = zip(self.symbolic, sizes, strict=True)
        extents = {name: extent for size, extent in pairs for name in size.arguments}
        return self._with_first(extents).settled

    def extents(self, name: str) -> tuple[str, ...]:
        """``extents_text`` of an argument or a result; KeyError if there is no spec of it."""
        opened = (size.most for size in self.symbolic if name in size.arguments)
        return extents_text(dict((*self.arguments, *self.results))[name].shape, next(opened, None))

    def _with_first(self, extents: Mapping[str, int]) -> Signature:
        arguments = tuple(
            (name, _with_first(spec, extents[name]) if name in extents and spec.shape else spec)
            for name, spec in self.arguments
        )
        return replace(self, arguments=arguments)


def extents_text(shape: tuple[int, ...], most: int | None) -> tuple[str, ...]:
    """Extents in words: ``1..512`` for a first one that stays open up to 512; None leaves none open."""
    first = () if most is None else (f"1..{most}",)
    return (*first, *map(str, shape[len(first) :]))


def _with_first(spec: ArraySpec, extent: int) -> ArraySpec:
    """The spec with another first extent; a stride that no element follows is that of a contiguous array."""
    shape, strides = (extent, *spec.shape[1:]), spec.strides
    if strides is not None and extent == 1:
        strides = (contiguous_strides(shape)[0] if len(shape) == 1 else strides[1] * max(shape[1], 1), *strides[1:])
    return ArraySpec(shape, spec.dtype, strides)


@frozen
class Specialization:
    """A program whose sizes and structural scalars are literals, proven to stay inside its tensors.

    ``program`` has only symbolic sizes left: ranges, conditions, shapes and subscripts are affine in them and in the
    iterators, apart from gathers.  ``layouts`` covers every tensor, results and temporaries included.
    """

    program: Program
    signature: Signature
    layouts: dict[str, Layout] = field(hash=False)

    @property
    def sizes(self) -> Sizes:
        """The symbolic sizes in the order of the signature."""
        most = (size.most for size in self.signature.symbolic)
        return tuple(zip(self.program.sizes, most, strict=True))
