"""What one entry of the corpus says, and how its arguments are made."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

Array: TypeAlias = npt.NDArray[np.generic]
Integers: TypeAlias = npt.NDArray[np.integer]
Argument: TypeAlias = Array | int | float
Sizes: TypeAlias = Mapping[str, int]
Maker: TypeAlias = Callable[[np.random.Generator, Sizes], Argument]

# The divisible sizes of cases with three or four, for each of which 120 would be too many points.
_SIZES: Final = {3: (24, 120, 120), 4: (24, 120, 24, 24)}


@dataclass(frozen=True, slots=True)
class Case:
    """One comprehension with a formula for its results that shares nothing with it.

    ``source``: where the text is printed.  ``text`` may hold several definitions; ``definition`` names the one
    meant, None if there is only one.
    ``arguments``: how each argument is made, in the order of the parameter list.
    ``in_out``: how the initial values of outputs that are read before they are written are made.
    ``expected``: takes the arguments and then the initial values of ``in_out``, floats widened to float64, and
    gives the results in the order of the ``->`` list.
    ``paper_sizes``: the sizes that the place of printing uses; ``note`` says where they were cut and by how much.
    ``ragged_sizes``: sizes without a common factor, with ones, and with zeros where those make sense.
    ``even_sizes``: for ``divisible_sizes``, where they do not follow from the number of sizes: windows and strides
    stay, what loops have is even rather than what arrays have.
    ``terms``: size variables whose product bounds the number of terms that one element of a result sums up.
    ``undecided``: results that depend on whether two sums are equal, which no error bound can tell.
    """

    name: str
    source: str
    text: str
    arguments: Mapping[str, Maker]
    expected: Callable[..., Sequence[Array]]
    paper_sizes: Sizes
    ragged_sizes: tuple[Sizes, ...]
    even_sizes: Sizes | None = None
    definition: str | None = None
    in_out: Mapping[str, Maker] = field(default_factory=dict)
    terms: tuple[str, ...] = ()
    undecided: tuple[str, ...] = ()
    note: str = ""

    def make_inputs(self, rng: np.random.Generator, sizes: Sizes) -> dict[str, Argument]:
        """The arguments of a call, in the order of the parameter list."""
        return {name: make(rng, sizes) for name, make in self.arguments.items()}

    def make_outputs(self, rng: np.random.Generator, sizes: Sizes) -> dict[str, Array]:
        """Initial values of the in-out outputs, by name."""
        return {name: np.asarray(make(rng, sizes)) for name, make in self.in_out.items()}

    def expect(self, inputs: Mapping[str, Argument], outputs: Mapping[str, Array]) -> tuple[Array, ...]:
        """What the formula says about a call, computed in float64."""
        arguments = [widened(value) for value in (*inputs.values(), *outputs.values())]
        return tuple(np.asarray(result) for result in self.expected(*arguments))

    @property
    def large_ragged_sizes(self) -> Sizes:
        """The ragged sizes with the most elements; the paper's where there are none."""
        return max(self.ragged_sizes or (self.paper_sizes,), key=lambda sizes: math.prod(sizes.values()))

    @property
    def divisible_sizes(self) -> Sizes:
        """Sizes at which tiles and partial results end where loops do, with few enough points for the emulator.

        All tiles of tests divide 120; 256 partial results divide 3840, which stands for a thousand and more.
        """
        if self.even_sizes is not None:
            return self.even_sizes
        if (count := len(self.paper_sizes)) <= 2:
            return {name: 3840 if size >= 1000 else 120 for name, size in self.paper_sizes.items()}
        assert count in _SIZES, f"{self.name} has {count} sizes; give its even_sizes"
        return dict(zip(self.paper_sizes, _SIZES[count], strict=True))

    def terms_of(self, sizes: Sizes) -> int:
        """An upper bound on the terms that one element of a result sums up."""
        return math.prod(sizes[name] for name in self.terms)


def widened(value: Argument) -> Argument:
    """Floating-point arrays as float64; everything else as it is."""
    if isinstance(value, np.ndarray) and value.dtype.kind not in "biu":
        return value.astype(np.float64)
    return value


def at(names: str, *values: int) -> Sizes:
    """``at("M N", 3, 4)``: the sizes M = 3 and N = 4."""
    return dict(zip(names.split(), values, strict=True))


# --- makers of arguments; a dimension is a size variable or a number -----------------------------------------


def normal(*shape: str | int, dtype: str = "float32") -> Maker:
    """Normally distributed numbers."""
    return lambda rng, sizes: rng.standard_normal(_extents(shape, sizes)).astype(dtype)


def uniform(low: float, high: float, *shape: str | int, dtype: str = "float32") -> Maker:
    """Numbers evenly distributed between two bounds."""
    return lambda rng, sizes: rng.uniform(low, high, _extents(shape, sizes)).astype(dtype)


def integers(low: int, high: int, *shape: str | int, dtype: str = "int32") -> Maker:
    """Integers from ``low`` up to, not including, ``high``."""
    return lambda rng, sizes: rng.integers(low, high, _extents(shape, sizes)).astype(dtype)


def indices(below: str, *shape: str | int, dtype: str = "int32") -> Maker:
    """Valid subscripts of a dimension of size ``below``."""
    return lambda rng, sizes: rng.integers(0, max(sizes[below], 1), _extents(shape, sizes)).astype(dtype)


def permutation(of: str) -> Maker:
    """Every subscript of a dimension of size ``of`` once, shuffled."""
    return lambda rng, sizes: rng.permutation(sizes[of]).astype(np.int32)


def scalar(value: float) -> Maker:
    """A scalar argument."""
    return lambda rng, sizes: value


def scalar_size(name: str) -> Maker:
    """An integer scalar argument whose value stands among the sizes."""
    return lambda rng, sizes: sizes[name]


def fixed(values: npt.ArrayLike, dtype: str) -> Maker:
    """The same array every time."""
    return lambda rng, sizes: np.asarray(values, dtype)


def _extents(shape: tuple[str | int, ...], sizes: Sizes) -> tuple[int, ...]:
    return tuple(extent if isinstance(extent, int) else sizes[extent] for extent in shape)
