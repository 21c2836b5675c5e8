"""Rules: what operators of ATen are as comprehensions."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from tc.torch.aten import (
    attention,
    convolutions,
    distances,
    elementwise,
    factories,
    indexing,
    layout,
    normalizations,
    pooling,
    products,
    reductions,
    sampling,
    scans,
    scatters,
    searching,
    sorting,
    special,
    views,
)
from tc.torch.fx.operation import Rule

_FAMILIES: Final = (
    attention,
    convolutions,
    distances,
    elementwise,
    factories,
    indexing,
    layout,
    normalizations,
    pooling,
    products,
    reductions,
    sampling,
    scans,
    scatters,
    searching,
    sorting,
    special,
    views,
)
RULES: Final[Mapping[Any, Rule]] = MappingProxyType(
    {operator: rule for family in _FAMILIES for operator, rule in family.RULES.items()}
)
