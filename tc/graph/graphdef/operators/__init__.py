"""The operators of TensorFlow that are supported, by name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tc.graph.graphdef.operation import Operator
from tc.graph.graphdef.operators import (
    elementwise,
    gathers,
    gradients,
    layout,
    losses,
    normalization,
    padding,
    products,
    reductions,
    shapes,
    slicing,
    state,
    windows,
)

_MODULES: Final = (
    elementwise,
    gathers,
    gradients,
    layout,
    losses,
    normalization,
    padding,
    products,
    reductions,
    shapes,
    slicing,
    state,
    windows,
)

OPERATORS: Final[Mapping[str, Operator]] = MappingProxyType(
    {name: operator for module in _MODULES for name, operator in module.OPERATORS.items()}
)
