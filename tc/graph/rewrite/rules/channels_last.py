"""Convolutions become those of images with channels last, whose weights lie in panels ahead of time.

With strides, lanes along filters are quicker wherever the image comes from.  Convolutions of 1x1 gain less than it
takes to turn an image: they have channels last in graphs without grouped convolutions and concatenations of channels,
where images stay turned.
"""

from __future__ import annotations

from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.nodes import Call
from tc.graph.ir.values import Value
from tc.graph.operators.joining import Concatenated
from tc.graph.operators.neural.convolution import Convolved
from tc.graph.operators.neural.panel_convolution import PANELS, PanelConvolution
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule, Where
from tc.graph.rewrite.rules.known_convolutions import KnownConvolution, is_known, known_convolution, strides_of

# With fewer channels, sums are short, and images take longer to turn than they save.
_CHANNELS: Final = 32


def _has_strides(match: Match) -> bool:
    """Whether lanes along the image would skip elements."""
    return is_known(match) and strides_of(match)[-1] > 1


def _strided(builder: Builder, match: Match) -> Value | None:
    """With channels last; None for windows of one element."""
    known = known_convolution(match)
    return None if known is None or known.plain.weights[2:] == (1, 1) else _in_panels(builder, known)


def _is_of_points(match: Match) -> bool:
    """Whether the root is one of 1x1, in a graph without grouped convolutions and concatenations of channels."""
    if not is_known(match):
        return False
    assert isinstance(match.root, Call)
    points = match.net.value(match.root.operands[1]).shape[2:] == (1, 1)
    return points and not any(map(_keeps_channels_apart, match.net.nodes.values()))


def _keeps_channels_apart(node: object) -> bool:
    if not isinstance(node, Call):
        return False
    match node.operator:
        case Convolved(channels=channels):
            return channels.image != "c" or channels.result != "f"
        case Concatenated(axis=axis):
            return axis == 1
        case _:
            return False


def _of_points(builder: Builder, match: Match) -> Value | None:
    known = known_convolution(match)
    return None if known is None else _in_panels(builder, known)


def _in_panels(builder: Builder, known: KnownConvolution) -> Value | None:
    """None for few channels, for filters that no panels hold, and for fewer results than there are windows."""
    filters, channels = known.plain.weights[:2]
    panel = next((panel for panel in PANELS if filters % panel == 0), None)
    if panel is None or channels < _CHANNELS:
        return None
    form = PanelConvolution(known.plain, panel)
    return form.build(builder, known.x, known.weights, known.bias) if form.has_all_windows else None


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "strided convolution in panels",
        Any("root"),
        _strided,
        _has_strides,
        "conv(x, w), strided along columns -> the same of x with channels last, and of w in panels of filters",
        late=True,
        where=Where.PROCESSORS,
    ),
    Rule(
        "convolution of points in panels",
        Any("root"),
        _of_points,
        _is_of_points,
        "conv(x, w), 1x1 -> the same with channels last, where no convolution has groups, and no channels are joined",
        late=True,
        where=Where.PROCESSORS,
    ),
)
