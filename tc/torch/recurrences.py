"""Recurrent layers as a whole: a captured graph calls ours in their place, not one step after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import torch
from torch import fx

from tc.torch.cells import TYPES, cell

Tensor = torch.Tensor
# Gates by kind of cell.
_GATES: Final = {"lstm": 4, "gru": 3, "rnn_tanh": 1, "rnn_relu": 1}
# What PyTorch calls in a graph that has derivatives of functions as results, by ``torch.func`` or by autograd.
_DIFFERENTIATES: Final = frozenset({"_grad_increment_nesting", "grad", "_jvp_increment_nesting"})
# Arguments of PyTorch's functions.
_ARGUMENTS: Final = 9


def with_whole_recurrences(module: fx.GraphModule, *, trains: bool) -> fx.GraphModule:
    """The module with calls of ours; ``trains``: they have gradients.  Packed sequences are left to PyTorch, and so are
    all of a graph that differentiates functions itself, whose transformations ours do not know.
    """
    if not _DIFFERENTIATES.isdisjoint(getattr(node.target, "__name__", "") for node in module.graph.nodes):
        return module
    for node in module.graph.nodes:
        for kind in _GATES:
            # The fourth argument is a list of weights for packed sequences.
            if node.target is getattr(torch, kind) and len(node.args) == _ARGUMENTS and isinstance(node.args[3], bool):
                node.target = _LAYERS[kind]
                node.kwargs = {"trains": trains}
    module.recompile()
    return module


def _layers(kind: str) -> Callable[..., Any]:
    """The function of all layers, with the arguments of PyTorch's."""

    def layers(
        input: Tensor,
        hx: Any,
        params: Sequence[Tensor],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        *,
        trains: bool,
    ) -> Any:
        given = (input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)
        states = tuple(hx) if kind == "lstm" else (hx,)
        directions, count = 1 + bidirectional, 4 if has_biases else 2
        known = input.dtype in TYPES and all(one.dtype is input.dtype for one in (*states, *params))
        fits = len(params) == num_layers * directions * count  # others have projections
        if not (known and fits) or input.device.type != "cpu" or torch.is_autocast_enabled("cpu"):
            return getattr(torch, kind)(*given)
        held = input.transpose(0, 1) if batch_first else input
        last: list[tuple[Tensor, ...]] = []
        for layer in range(num_layers):
            results = []
            for direction in range(directions):
                at = layer * directions + direction
                own = params[at * count : (at + 1) * count]
                first = tuple(state[at] for state in states)
                result, *ends = _layer(kind, held, own, first, backward=direction == 1, trains=trains)
                results.append(result)
                last.append(tuple(ends))
            held = torch.cat(results, 2) if bidirectional else results[0]
            if train and dropout and layer + 1 < num_layers:
                held = torch.dropout(held, dropout, True)
        output = held.transpose(0, 1) if batch_first else held
        return (output, *(torch.stack(one) for one in zip(*last, strict=True)))

    layers.__name__ = kind
    return layers


def _layer(
    kind: str, input: Tensor, params: Sequence[Tensor], first: Sequence[Tensor], *, backward: bool, trains: bool
) -> tuple[Tensor, ...]:
    """The states of one layer in one direction for (T,B,I) numbers, and what it ends with."""
    gates, size = _GATES[kind], params[1].shape[1]
    weight, recurrent, *biases = params
    shape = () if gates == 1 else (gates,)
    x = torch.nn.functional.linear(input, weight, biases[0] if biases else None)
    rest = []
    if kind == "gru":
        # The reset gate is a factor of the product with the state and of its bias.
        rest = [(biases[1] if biases else recurrent.new_zeros(gates * size)).reshape(gates, size)]
    elif biases:
        x = x + biases[1]
    run = cell(kind, input.dtype, backward=backward, trains=trains)
    found: tuple[Tensor, ...] = run(
        x.reshape(*x.shape[:2], *shape, size), recurrent.reshape(*shape, size, size), *rest, *first
    )
    return found


_LAYERS: Final = {kind: _layers(kind) for kind in _GATES}
