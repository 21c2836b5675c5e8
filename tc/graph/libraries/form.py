"""``Form``: what libraries can compute of the nodes of graphs, in their terms."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final, TypeAlias

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import Shape
from tc.graph.ir.values import Value
from tc.graph.libraries.definition import is_product
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.operators.neural.windows import Window, span
from tc.graph.operators.products import Product

_TYPES: Final = (ScalarType.FLOAT32, ScalarType.FLOAT64)
# The letters of the channels of image, weights and result: one group, several, and groups of one channel.
_CHANNELS: Final = (("c", "fc", "f"), ("gc", "gfc", "gf"), ("c", "c", "c"))
_Extents: TypeAlias = tuple[int, ...]


@frozen
class Parts:
    """Along which axis of each operand, and of the result, there are parts that do not depend on each other.

    None: all of an operand belongs to each part.
    """

    operands: tuple[int | None, ...]
    result: int


@frozen
class MatrixProduct:
    """NumPy's ``matmul`` of the first two operands, with the third one added to each row if there is one."""

    type: ScalarType
    left: _Extents
    right: _Extents
    bias: bool
    result: _Extents

    @property
    def terms(self) -> int:
        """How many products are added up for each element."""
        return self.left[-1]

    @property
    def parts(self) -> Parts | None:
        """The columns, or the rows where there are more of them."""
        rows = self.left[-2] if len(self.left) > 1 else 1
        if len(self.right) > 1 and self.right[-1] >= rows:
            return Parts((None, len(self.right) - 1, *([0] * self.bias)), len(self.result) - 1)
        if len(self.left) == 1:
            return None
        columns = len(self.right) > 1
        return Parts((len(self.left) - 2, None, *([None] * self.bias)), len(self.result) - 1 - columns)


@frozen
class Convolution:
    """Of an image (N, C, ...) with weights (F, C / groups, ...), and a bias (F) if there is one.

    ``padding``: on both sides of each axis.  ``own``: the shape of the node's result, in which groups may be apart.
    """

    type: ScalarType
    image: _Extents
    weights: _Extents
    bias: bool
    own: _Extents
    stride: _Extents
    padding: _Extents
    dilation: _Extents
    groups: int

    @property
    def result(self) -> _Extents:
        """That of the node."""
        return self.own

    @property
    def terms(self) -> int:
        """How many products are added up for each element."""
        return math.prod(self.weights[1:])

    @property
    def parts(self) -> Parts:
        """The filters, or the groups."""
        return Parts((1 if self.groups > 1 else None, 0, *([0] * self.bias)), 1)


Form: TypeAlias = MatrixProduct | Convolution


def form_of(call: Call, values: Mapping[str, Value]) -> Form | None:
    """What a call is for libraries; None where they have no such thing."""
    every = [values[name] for name in (*call.operands, *call.results)]
    type, shapes = every[0].type, [_numbers(value.shape) for value in every]
    if type not in _TYPES or any(value.type is not type for value in every):
        return None
    known = [shape for shape in shapes if shape is not None and 0 not in shape]
    if len(known) != len(shapes):
        return None
    match call.operator:
        case Product(bias=bias):
            return MatrixProduct(type, known[0], known[1], bias, known[-1])
        case Convolved() as operator:
            return _convolution(operator, type, known)
        case _:
            return MatrixProduct(type, known[0], known[1], False, known[-1]) if is_product(call.program) else None


def _numbers(shape: Shape) -> _Extents | None:
    found = tuple(extent for extent in shape if isinstance(extent, int))
    return found if len(found) == len(shape) else None


def _convolution(operator: Convolved, type: ScalarType, shapes: list[_Extents]) -> Convolution | None:
    channels, axes = operator.channels, operator.windows.axes
    letters = (channels.image, channels.weights, channels.result)
    if letters not in _CHANNELS or not 1 <= len(axes) <= 3 or operator.positions != tuple(operator.windows.positions):
        return None
    image, weights, result = shapes[0], shapes[1], shapes[-1]
    spatial = image[1 + len(channels.image) :], result[1 + len(channels.result) :]
    padding = tuple(before for before in map(_padding, axes, *spatial) if before is not None)
    if len(padding) != len(axes):
        return None
    groups = image[1] if letters != _CHANNELS[0] else 1
    own = weights[len(channels.weights) :]
    of_group = weights[2:3] if letters == _CHANNELS[1] else weights[1:2] if letters == _CHANNELS[0] else (1,)
    filters = math.prod(result[1 : 1 + len(channels.result)])
    return Convolution(
        type,
        (image[0], math.prod(image[1 : 1 + len(channels.image)]), *spatial[0]),
        (filters, *of_group, *own),
        operator.bias,
        result,
        tuple(axis.stride for axis in axes),
        padding,
        tuple(axis.dilation for axis in axes),
        groups,
    )


def _padding(axis: Window, extent: int, windows: int) -> int | None:
    """How much there is on both sides, for as many windows; None where it is not the same on both."""
    if not isinstance(axis.before, int) or axis.before < 0:
        return None
    count = (extent + 2 * axis.before - span(axis.kernel, axis.dilation)) // axis.stride + 1
    return axis.before if count == windows else None
