"""Convolutions with a few rows of taps become products of transformed rows, where that takes less time."""

from __future__ import annotations

import math
from typing import Final

from tc.base.types import ScalarType
from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.operators.neural.minimal_filtering import Filtering
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule

# Products of a group of rows: with more, transforms have large coefficients, and round too much.
_MOST_PRODUCTS: Final = 6
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


def _filtered(builder: Builder, match: Match) -> Value | None:
    """The quickest of the forms; None where the sum itself is."""
    root = match.root
    assert isinstance(root, Call)
    assert isinstance(root.operator, Convolved)
    x, weights = (match.net.value(name) for name in root.operands[:2])
    contents = match.net.contents(weights.name)
    assert contents is not None
    image = tuple(extent for extent in x.shape if isinstance(extent, int))
    result = tuple(extent for extent in match.result.shape if isinstance(extent, int))
    held = tuple(extent for extent in weights.shape if isinstance(extent, int))
    first, second = root.operator.windows.axes
    before = (first.before, second.before)
    if len(image) != 4 or len(result) != 4 or math.prod(image) == 0 or math.prod(result) == 0:
        return None
    if not all(isinstance(b, int) and b >= 0 for b in before):
        return None
    groups = range(2, _MOST_PRODUCTS + 2 - held[2]) if held[2] > 1 else ()
    forms = [Filtering(image, held, before, result[2:], m) for m in groups]  # type: ignore[arg-type]
    fitting = [form for form in forms if _covers(form)]
    best = min(fitting, key=lambda form: form.cost, default=None)
    if best is None or best.direct_cost < _GAIN * best.cost:
        return None
    bias = match.net.value(root.operands[2]) if root.operator.bias else None
    return best.build(builder, x, contents, bias)


def _covers(form: Filtering) -> bool:
    """Whether the transform reads the whole image, as windows do that leave nothing of it out."""
    inside = zip(form.before, form.image[2:], form.padded, strict=True)
    return all(before + extent <= padded for before, extent, padded in inside)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "minimal filtering",
        Any("root"),
        _filtered,
        _is_convolution,
        "conv(x, w) -> a convolution of transformed rows with fewer products (Winograd's F(m, 3)), where it is quicker",
        late=True,
    ),
)
