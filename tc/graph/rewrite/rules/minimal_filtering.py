"""Convolutions with a few taps become products of transformed rows or windows, where that takes less time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.operators.neural.filtered_planes import FilteredPlanes
from tc.graph.operators.neural.filtered_rows import FilteredRows
from tc.graph.operators.neural.plain_convolution import PlainConvolution
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule, Where

# Products of a group of rows, along one axis and along each of two: with more, transforms have large coefficients, and
# round too much.
_MOST_PRODUCTS: Final = 6
_MOST_OF_PLANES: Final = 5
# The estimate is no better than this.
_GAIN: Final = 1.1


def _is_convolution(match: Match) -> bool:
    """Whether the root is a convolution over two axes, of stride and dilation 1, without groups, of known weights."""
    root = match.root
    if not (isinstance(root, Call) and isinstance(root.operator, Convolved)):
        return False
    operator, axes = root.operator, root.operator.windows.axes
    plain = all(axis.stride == axis.dilation == 1 and isinstance(axis.before, int) for axis in axes)
    channels = operator.channels
    whole = (channels.image, channels.weights, channels.result) == ("c", "fc", "f")
    known = match.net.contents(root.operands[1]) is not None
    own = operator.positions == tuple(operator.windows.positions)
    return len(axes) == 2 and plain and whole and own and known and match.result.type is ScalarType.FLOAT32


def _filtered(builder: Builder, match: Match, *, panels: bool) -> Value | None:
    """The quickest of the forms; None where the sum itself is."""
    root = match.root
    assert isinstance(root, Call)
    assert isinstance(root.operator, Convolved)
    x, weights = (match.net.value(name) for name in root.operands[:2])
    contents = match.net.contents(weights.name)
    assert contents is not None
    plain = _plain(root.operator, x, weights, match.result)
    if plain is None:
        return None
    best = min(_forms(plain, panels=panels), key=lambda form: form.cost, default=None)
    if best is None or plain.cost < _GAIN * best.cost:
        return None
    bias = match.net.value(root.operands[2]) if root.operator.bias else None
    return best.build(builder, x, contents, bias)


def _plain(operator: Convolved, x: Value, weights: Value, result: Value) -> PlainConvolution | None:
    """The convolution, where all extents are known and above 0, and no border is cut off."""
    image, held, found = _extents(x), _extents(weights), _extents(result)
    top, left = (axis.before for axis in operator.windows.axes)
    if image is None or held is None or found is None or not (isinstance(top, int) and isinstance(left, int)):
        return None
    return PlainConvolution(image, held, (top, left), found[2:]) if min(top, left) >= 0 else None


def _extents(value: Value) -> tuple[int, int, int, int] | None:
    known = [extent for extent in value.shape if isinstance(extent, int) and extent > 0]
    if len(known) != 4:
        return None
    first, second, third, fourth = known
    return first, second, third, fourth


def _forms(plain: PlainConvolution, *, panels: bool) -> Sequence[FilteredRows | FilteredPlanes]:
    """Those whose transforms read the whole image."""
    down, along = plain.weights[2:]
    rows = range(2, _MOST_PRODUCTS + 2 - down) if down > 1 else ()
    planes = range(2, _MOST_OF_PLANES + 2 - max(down, along)) if min(down, along) > 1 else ()
    forms: list[FilteredRows | FilteredPlanes] = [FilteredRows(plain, m) for m in rows]
    forms += [FilteredPlanes(plain, m, panels) for m in planes]
    return [form for form in forms if plain.is_within(form.padded)]


_MEANING: Final = (
    "conv(x, w) -> sums of fewer products, of transformed rows or windows (Winograd's F(m, r)), if quicker"
)
_CONVOLUTION: Final = Any("root")

RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "minimal filtering",
        _CONVOLUTION,
        partial(_filtered, panels=True),
        _is_convolution,
        _MEANING,
        late=True,
        where=Where.PROCESSORS,
    ),
    Rule(
        "minimal filtering on GPUs",
        _CONVOLUTION,
        partial(_filtered, panels=False),
        _is_convolution,
        _MEANING,
        late=True,
        where=Where.GPUS,
    ),
)
