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

    It may stand for any dimension of arguments, in ``ArraySpec`` and in plain shapes, and opens the size that is
    declared there, wherever else it occurs.  ArgumentError unless it is a positive integer.
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ArgumentError(f"tc.dynamic takes the greatest size that is to be served, such as 512, got {most!r}")
    return Dynamic(most)


@frozen
class ArraySpec:
    """What a call must know of an array: ``strides`` in elements; None means C-contiguous.

    Extents may be ``tc.dynamic``.  An array that is C-contiguous with the greatest ones is so with all; other strides
    are the same for all.  ArgumentError for a negative extent, strides whose number is not that of the extents, or
    another kind of dtype.
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
class OpenStride:
    """A stride that depends on symbolic sizes: a number times extents."""

    factor: int
    extents: tuple[Extent, ...]


@frozen
class Layout:
    """Where the elements of a tensor lie: shape and strides, both in elements.

    ``extents``: those that depend on symbolic sizes, by dimension, None where one is a number; nothing where all are.
    ``shape`` and ``strides`` then have the greatest ones.  ``packed``: rows lie end to end for all sizes, so that
    strides depend on them, too.
    """

    type: ScalarType
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    extents: tuple[Extent | None, ...] = ()
    packed: bool = False

    def at(self, sizes: tuple[int, ...]) -> Layout:
        """The layout for these values of the symbolic sizes."""
        shape = tuple(extent if isinstance(extent, int) else extent.at(sizes) for extent in self.bounds)
        return Layout(self.type, shape, contiguous_strides(shape) if self.packed else self.strides)

    @property
    def bounds(self) -> tuple[int | Extent, ...]:
        """The extents, open or not."""
        if not self.extents:
            return self.shape
        return tuple(most if extent is None else extent for most, extent in zip(self.shape, self.extents, strict=True))

    @property
    def steps(self) -> tuple[int | OpenStride, ...]:
        """The strides, open or not."""
        if not self.packed:
            return self.strides
        return tuple(self._step(dimension) for dimension in range(len(self.shape)))

    def _step(self, dimension: int) -> int | OpenStride:
        inner = self.bounds[dimension + 1 :]
        opened = tuple(extent for extent in inner if not isinstance(extent, int))
        if not opened:
            return self.strides[dimension]
        return OpenStride(math.prod(max(extent, 1) for extent in inner if isinstance(extent, int)), opened)

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

    ``places``: where it is, in the order of the arguments: which dimension of which.
    """

    most: int
    places: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """Where callers find it: ``A.0`` for the first dimension of ``A``."""
        argument, dimension = self.places[0]
        return f"{argument}.{dimension}"

    def dimensions(self, argument: str) -> tuple[int, ...]:
        """Those of an argument that are of this size."""
        return tuple(dimension for name, dimension in self.places if name == argument)


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

    @property
    def reach(self) -> tuple[int, ...]:
        """What the least of kernels that serve a call is chosen by: elements of its largest arguments, then bounds."""
        bounds = (size.most for size in self.symbolic)
        return sum(math.prod(spec.shape) for _, spec in self.arguments), *bounds

    def sizes_of(self, call: Signature) -> tuple[int, ...] | None:
        """The values of the symbolic sizes in a call that this signature covers; None if it does not cover it."""
        if not self.symbolic:
            return () if call == self else None
        shapes = {name: spec.shape for name, spec in call.arguments}
        found: list[int] = []
        for size in self.symbolic:
            extents = {shapes[n][dimension] for n, dimension in size.places if dimension < len(shapes.get(n, ()))}
            if len(extents) != 1 or not 1 <= min(extents) <= size.most:
                return None
            found += extents
        return tuple(found) if self.at(tuple(found)) == call else None

    def opened(self, symbolic: tuple[SymbolicSize, ...]) -> Signature | None:
        """The signature that covers this one with these sizes open; None if they do not fit."""
        most = {place: size.most for size in symbolic for place in size.places}
        found = replace(self._with_extents(most), symbolic=symbolic)
        return found if found.sizes_of(self) is not None else None

    def at(self, sizes: tuple[int, ...]) -> Signature:
        """The signature of a call with these sizes."""
        pairs = zip(self.symbolic, sizes, strict=True)
        return self._with_extents({place: extent for size, extent in pairs for place in size.places}).settled

    def extents(self, name: str) -> tuple[str, ...]:
        """``extents_text`` of an argument or a result; KeyError if there is no spec of it."""
        opened = {dimension: size.most for size in self.symbolic for dimension in size.dimensions(name)}
        return extents_text(dict((*self.arguments, *self.results))[name].shape, opened)

    def _with_extents(self, extents: Mapping[tuple[str, int], int]) -> Signature:
        arguments = tuple((name, _with_extents(name, spec, extents)) for name, spec in self.arguments)
        return replace(self, arguments=arguments)


def extents_text(shape: tuple[int, ...], opened: Mapping[int, int]) -> tuple[str, ...]:
    """Extents in words: ``1..512`` for one that stays open up to 512, as ``opened`` says by dimension."""
    return tuple(
        f"1..{opened[dimension]}" if dimension in opened else str(extent) for dimension, extent in enumerate(shape)
    )


def _with_extents(name: str, spec: ArraySpec, extents: Mapping[tuple[str, int], int]) -> ArraySpec:
    """The spec with other extents; strides that no element follows are those of a contiguous array."""
    shape = tuple(extents.get((name, dimension), extent) for dimension, extent in enumerate(spec.shape))
    if shape == spec.shape:
        return spec
    if spec.strides is None:
        return ArraySpec(shape, spec.dtype)
    strides: list[int] = []
    step = 1
    for extent, stride in zip(reversed(shape), reversed(spec.strides), strict=True):
        strides.append(step if extent <= 1 or 0 in shape else stride)
        step = strides[-1] * max(extent, 1)
    return ArraySpec(shape, spec.dtype, tuple(reversed(strides)))


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
