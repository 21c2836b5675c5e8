"""The rules of ONNX's operators, by domain and name."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tc.graph.onnx.operation import Rule
from tc.graph.onnx.operators import (
    bits,
    classical,
    control,
    elementwise,
    indexing,
    layout,
    matrices,
    ngrams,
    optimizers,
    products,
    reductions,
    scans,
    scatters,
    selection,
    signal,
)
from tc.graph.onnx.operators.neural import (
    attention,
    convolutions,
    images,
    losses,
    normalization,
    padding,
    pooling,
    quantized,
    recurrences,
    regions,
    resizing,
    sampling,
)

_ARRAYS: Final = (
    bits,
    control,
    elementwise,
    indexing,
    layout,
    matrices,
    ngrams,
    products,
    reductions,
    scans,
    scatters,
    selection,
    signal,
)
_NEURAL: Final = (
    attention,
    convolutions,
    images,
    losses,
    normalization,
    padding,
    pooling,
    quantized,
    recurrences,
    regions,
    resizing,
    sampling,
)

RULES: Final[Mapping[tuple[str, str], Rule]] = MappingProxyType(
    {
        **{("", name): rule for module in (*_ARRAYS, *_NEURAL) for name, rule in module.RULES.items()},
        **{("ai.onnx.ml", name): rule for name, rule in classical.RULES.items()},
        **{("ai.onnx.preview.training", name): rule for name, rule in optimizers.RULES.items()},
    }
)
