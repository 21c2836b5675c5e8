"""The rules, in the order in which they are tried."""

from __future__ import annotations

from typing import Final

from tc.graph.rewrite.rule import Rule
from tc.graph.rewrite.rules import (
    algebra,
    borders,
    channels_last,
    convolutions,
    formulas,
    minimal_filtering,
    neutral,
    one_hot,
    reductions,
    signs,
    views,
)

RULES: Final[tuple[Rule, ...]] = (
    *neutral.RULES,
    *views.RULES,
    *reductions.RULES,
    *algebra.RULES,
    *signs.RULES,
    *one_hot.RULES,
    *convolutions.RULES,
    *formulas.RULES,
    *minimal_filtering.RULES,
    *channels_last.RULES,
    *borders.RULES,
)
