"""What one random program is made of: enough to run it again, to shrink it, and to show it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

import tc
from tc.targets.options import Options
from tests.sanitizers import Sanitizer


class Layout(Enum):
    """How the elements of an array lie in memory."""

    CONTIGUOUS = "contiguous"
    TRANSPOSED = "transposed"
    STRIDED = "strided"
    REVERSED = "negative strides"
    OFFSET = "a view with an offset"
    READ_ONLY = "read-only"
    BROADCAST = "broadcast (stride 0)"


WRITABLE_LAYOUTS = (Layout.CONTIGUOUS, Layout.TRANSPOSED, Layout.STRIDED, Layout.REVERSED, Layout.OFFSET)


class Content(Enum):
    """What kind of values an array holds."""

    ORDINARY = "small values"
    SPARSE = "mostly zeros"
    WIDE = "the whole range of the type"
    SPECIAL = "NaN, infinities, -0.0, subnormals, extremes"


@dataclass(frozen=True, slots=True)
class TensorArgument:
    """An array to be made; ``extents`` are sizes by name, or numbers.

    ``below``: the values are indices in ``0:below``, whatever ``content`` says.
    """

    type: tc.ScalarType
    extents: tuple[str | int, ...]
    layout: Layout = Layout.CONTIGUOUS
    content: Content = Content.ORDINARY
    below: int | None = None
    torch: bool = False


@dataclass(frozen=True, slots=True)
class ScalarArgument:
    """A number to be passed."""

    type: tc.ScalarType
    value: int | float


@dataclass(frozen=True, slots=True)
class Recipe:
    """A call of the definition ``name`` of a text.

    ``outputs``: layouts of the results that go through ``out=``, besides those that must (in-out results).
    ``shared``: results that are to lie in the memory of an argument; a call may refuse that.
    ``opened``: sizes that stay symbolic where they can, each with its greatest value.
    ``sanitizer``: what the process must be started with, see ``workers``.
    """

    seed: int
    number: int
    text: str
    name: str
    sizes: tuple[tuple[str, int], ...]
    arguments: tuple[tuple[str, TensorArgument | ScalarArgument], ...]
    outputs: tuple[tuple[str, Layout], ...]
    shared: tuple[tuple[str, str], ...]
    options: Options
    target: str = "cpu"
    sanitizer: Sanitizer = Sanitizer.NONE
    opened: tuple[tuple[str, int], ...] = ()

    def shape(self, argument: TensorArgument) -> tuple[int, ...]:
        """The extents as numbers."""
        sizes = dict(self.sizes)
        return tuple(sizes[extent] if isinstance(extent, str) else extent for extent in argument.extents)


COPY = Recipe(
    seed=0,
    number=0,
    text="def f(float(N) A) -> (O) { O(i) = A(i) }",
    name="f",
    sizes=(("N", 7),),
    arguments=(("A", TensorArgument(tc.ScalarType.FLOAT32, ("N",))),),
    outputs=(),
    shared=(),
    options=tc.CpuOptions(vectorize=False),
)
