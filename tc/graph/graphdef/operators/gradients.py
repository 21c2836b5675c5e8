"""Gradients of activations, as TensorFlow's autodiff writes them."""

from __future__ import annotations

from typing import Final

from tc.graph.graphdef.operators.elementwise import formula

_SCALE, _SCALE_ALPHA = 1.0507009873554805, 1.7580993408473768

# Of the gradient ``{0}`` of the result, and what the function was applied to, ``{1}``, or what it gave.
_OF_GRADIENT: Final = {
    "EluGrad": "{1} < 0 ? {0} * ({1} + 1) : {0}",
    "Relu6Grad": "{1} > 0 && {1} < 6 ? {0} : 0",
    "ReluGrad": "{1} > 0 ? {0} : 0",
    "SeluGrad": f"{{1}} < 0 ? {{0}} * ({{1}} + {_SCALE_ALPHA}) : {_SCALE} * {{0}}",
    "SoftplusGrad": "{0} / (1 + exp(-{1}))",
    "SoftsignGrad": "{0} / ((1 + abs({1})) * (1 + abs({1})))",
}
# Of what the function gave, ``{0}``, and the gradient ``{1}`` of that.
_OF_RESULT: Final = {
    "InvGrad": "-{1} * {0} * {0}",
    "ReciprocalGrad": "-{1} * {0} * {0}",
    "RsqrtGrad": "{1} * {0} * {0} * {0} / -2",
    "SigmoidGrad": "{1} * {0} * (1 - {0})",
    "SqrtGrad": "{1} / (2 * {0})",
    "TanhGrad": "{1} * (1 - {0} * {0})",
}
OPERATORS: Final = {name: formula(expression, 2) for name, expression in (_OF_GRADIENT | _OF_RESULT).items()}
