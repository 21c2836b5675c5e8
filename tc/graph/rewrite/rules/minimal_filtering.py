"""Convolutions with a few taps become products of transformed rows or windows, where that takes less time."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.operators.neural.filtered_planes import FilteredPlanes
from tc.graph.operators.neural.filtered_rows import FilteredRows
from tc.graph.operators.neural.plain_convolution import PlainConvolution
from tc.graph.rewrite.pattern import Any, Match
from tc.graph.rewrite.rule import Rule, Where
from tc.graph.rewrite.rules.known_convolutions import is_known, known_convolution, strides_of

# Products of a group of rows, along one axis and along each of two: with more, transforms have large coefficients, and
# round too much.
_MOST_PRODUCTS: Final = 6
_MOST_OF_PLANES: Final = 5
# The estimate is no better than this.
_GAIN: Final = 1.1


def _is_convolution(match: Match) -> bool:
    """Whether the root is a convolution of known weights, of stride 1."""
    return is_known(match) and set(strides_of(match)) == {1}


def _filtered(builder: Builder, match: Match, *, panels: bool) -> Value | None:
    """The quickest of the forms; None where the sum itself is."""
    known = known_convolution(match)
    if known is None:
        return None
    best = min(_forms(known.plain, panels=panels), key=lambda form: form.cost, default=None)
    if best is None or known.plain.cost < _GAIN * best.cost:
        return None
    return best.build(builder, known.x, known.weights, known.bias)


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
