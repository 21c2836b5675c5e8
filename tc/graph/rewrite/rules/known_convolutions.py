"""What rules know of a convolution of two axes whose weights are constant."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.base.types import ScalarType
from tc.graph.ir.constants import Contents
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.operators.neural.plain_convolution import PlainConvolution
from tc.graph.rewrite.pattern import Match


@frozen
class KnownConvolution:
    """The convolution of ``x``, which all extents are known of, with contents of weights and perhaps a bias."""

    plain: PlainConvolution
    x: Value
    weights: Contents
    bias: Value | None


def is_known(match: Match) -> bool:
    """Whether the root is a convolution of float32 over two axes, without groups and dilation, of known weights."""
    root = match.root
    if not (isinstance(root, Call) and isinstance(root.operator, Convolved)):
        return False
    operator, axes = root.operator, root.operator.windows.axes
    plain = all(axis.dilation == 1 and isinstance(axis.before, int) for axis in axes)
    channels = operator.channels
    whole = (channels.image, channels.weights, channels.result) == ("c", "fc", "f")
    known = match.net.contents(root.operands[1]) is not None
    own = operator.positions == tuple(operator.windows.positions)
    return len(axes) == 2 and plain and whole and own and known and match.result.type is ScalarType.FLOAT32


def strides_of(match: Match) -> tuple[int, ...]:
    """Those of a convolution that ``is_known``."""
    assert isinstance(match.root, Call)
    assert isinstance(match.root.operator, Convolved)
    return tuple(axis.stride for axis in match.root.operator.windows.axes)


def known_convolution(match: Match) -> KnownConvolution | None:
    """The root, which ``is_known``; None unless all extents are known and above 0, and nothing is cut off ahead."""
    root = match.root
    assert isinstance(root, Call)
    assert isinstance(root.operator, Convolved)
    x, weights = (match.net.value(name) for name in root.operands[:2])
    contents = match.net.contents(weights.name)
    assert contents is not None
    image, held, result = _extents(x), _extents(weights), _extents(match.result)
    first, second = root.operator.windows.axes
    if image is None or held is None or result is None:
        return None
    if not (isinstance(first.before, int) and isinstance(second.before, int)) or min(first.before, second.before) < 0:
        return None
    before, strides = (first.before, second.before), (first.stride, second.stride)
    bias = match.net.value(root.operands[2]) if root.operator.bias else None
    return KnownConvolution(PlainConvolution(image, held, before, result[2:], strides), x, contents, bias)


def _extents(value: Value) -> tuple[int, int, int, int] | None:
    known = [extent for extent in value.shape if isinstance(extent, int) and extent > 0]
    if len(known) != 4:
        return None
    first, second, third, fourth = known
    return first, second, third, fourth
