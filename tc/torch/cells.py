"""Recurrent cells, step by step, as operators of PyTorch: LSTM, GRU and the plain one.

What a sequence gives to the gates is computed ahead of the steps, by one product for all of them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import torch

from tc.api.definitions import define
from tc.api.torch_operator import torch_operator
from tc.base.types import ScalarType

# `x(t,b,q,j)`: what gate `q` gets from the sequence; `R(q,j,k)`: its matrix for the state `h`.  `{now}` is the place of
# step `t` in the sequence.  The gradient of a sigmoid that is a hyperbolic tangent needs nothing but its value.
_LSTM: Final = """
def {name}({type}(T,B,4,H) x, {type}(4,H,H) R, {type}(B,H) first, {type}(B,H) first_cell) -> (y, last, cell) {{
    h(0,b,j) = first(b,j)
    c(0,b,j) = first_cell(b,j)
    for t in 0:T {{
        v(t,b,q,j) = x({now},b,q,j)
        v(t,b,q,j) += h(t,b,k) * R(q,j,k)
        i(t,b,j) = 0.5 * tanh(0.5 * v(t,b,0,j)) + 0.5
        f(t,b,j) = 0.5 * tanh(0.5 * v(t,b,1,j)) + 0.5
        g(t,b,j) = tanh(v(t,b,2,j))
        o(t,b,j) = 0.5 * tanh(0.5 * v(t,b,3,j)) + 0.5
        c(t+1,b,j) = f(t,b,j) * c(t,b,j) + i(t,b,j) * g(t,b,j)
        h(t+1,b,j) = o(t,b,j) * tanh(c(t+1,b,j))
    }}
    y({now},b,j) = h(t+1,b,j) where t in 0:T
    last(b,j) = h(T,b,j)
    cell(b,j) = c(T,b,j)
}}"""
_GRU: Final = """
def {name}({type}(T,B,3,H) x, {type}(3,H,H) R, {type}(3,H) bias, {type}(B,H) first) -> (y, last) {{
    h(0,b,j) = first(b,j)
    for t in 0:T {{
        v(t,b,q,j) = bias(q,j) where b in 0:B
        v(t,b,q,j) += h(t,b,k) * R(q,j,k)
        r(t,b,j) = 0.5 * tanh(0.5 * (x({now},b,0,j) + v(t,b,0,j))) + 0.5
        z(t,b,j) = 0.5 * tanh(0.5 * (x({now},b,1,j) + v(t,b,1,j))) + 0.5
        n(t,b,j) = tanh(x({now},b,2,j) + r(t,b,j) * v(t,b,2,j))
        h(t+1,b,j) = n(t,b,j) + z(t,b,j) * (h(t,b,j) - n(t,b,j))
    }}
    y({now},b,j) = h(t+1,b,j) where t in 0:T
    last(b,j) = h(T,b,j)
}}"""
_PLAIN: Final = """
def {name}({type}(T,B,H) x, {type}(H,H) R, {type}(B,H) first) -> (y, last) {{
    h(0,b,j) = first(b,j)
    for t in 0:T {{
        v(t,b,j) = x({now},b,j)
        v(t,b,j) += h(t,b,k) * R(j,k)
        h(t+1,b,j) = {function}
    }}
    y({now},b,j) = h(t+1,b,j) where t in 0:T
    last(b,j) = h(T,b,j)
}}"""
_TEXTS: Final = {
    "lstm": _LSTM,
    "gru": _GRU,
    "rnn_tanh": _PLAIN.replace("{function}", "tanh(v(t,b,j))"),
    "rnn_relu": _PLAIN.replace("{function}", "max(v(t,b,j), 0)"),
}
# Types in which cells are computed.
TYPES: Final = {torch.float32: ScalarType.FLOAT32, torch.float64: ScalarType.FLOAT64}


@functools.cache
def cell(kind: str, dtype: torch.dtype, *, backward: bool, trains: bool) -> Callable[..., Any]:
    """The operator of a cell over a sequence, which it goes through from its end where it is ``backward``.

    ``lstm`` takes (T,B,4,H) numbers for its gates, (4,H,H) weights, and (B,H) for the first state and the first cell:
    it gives (T,B,H) states, the last of them and the last cell.  ``gru`` takes (T,B,3,H), (3,H,H), a (3,H) bias and the
    first state, ``rnn_tanh`` and ``rnn_relu`` take (T,B,H), (H,H) and the first state; they give states and the last of
    them.  ``trains``: it has a gradient.
    """
    name = f"{kind}{'_reversed' if backward else ''}_{TYPES[dtype]}{'' if trains else '_inference'}"
    text = _TEXTS[kind].format(name=name, type=TYPES[dtype], now="T-1-t" if backward else "t")
    found: Callable[..., Any] = torch_operator(define(text)[name], f"tc::{name}", differentiable=trains)
    return found
