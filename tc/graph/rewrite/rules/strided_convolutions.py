"""Convolutions with strides become those of images with channels last, whose weights lie in panels ahead of time."""

from __future__ import annotations

from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.neural.panel_convolution import PANELS, PanelConvolution
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule, Where
from tc.graph.rewrite.rules.known_convolutions import is_known, known_convolution, strides_of

# With fewer channels, sums are short, and images take longer to turn than they save.
_CHANNELS: Final = 32


def _has_strides(match: Match) -> bool:
    """Whether lanes along the image would skip elements."""
    return is_known(match) and strides_of(match)[-1] > 1


def _in_panels(builder: Builder, match: Match) -> Value | None:
    """With channels last; None for few channels, or filters that no panels hold, and for windows of one element."""
    known = known_convolution(match)
    if known is None:
        return None
    filters, channels, taps, across = known.plain.weights
    panel = next((panel for panel in PANELS if filters % panel == 0), None)
    if panel is None or channels < _CHANNELS or taps * across == 1:
        return None
    return PanelConvolution(known.plain, panel).build(builder, known.x, known.weights, known.bias)


RULES: Final[tuple[Rule, ...]] = (
    Rule(
        "strided convolution in panels",
        Any("root"),
        _in_panels,
        _has_strides,
        "conv(x, w), strided -> the same of x with channels last, and of w in panels of filters",
        late=True,
        where=Where.PROCESSORS,
    ),
)
