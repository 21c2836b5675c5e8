"""What a call of a model costs, found without computing anything."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch.overrides import TorchFunctionMode
from torch.utils.flop_counter import FlopCounterMode

_RECURRENT: Final = (torch.lstm, torch.gru, torch.rnn_tanh, torch.rnn_relu)


@dataclass(frozen=True, slots=True)
class Cost:
    """``elements``: of inputs, weights and results.  ``operations``: multiply-adds."""

    elements: int
    operations: int


def cost(found: Mapping[str, Any]) -> Cost | None:
    """Of a call of what a file of KernelBench defines; None where the model does not take its inputs.

    ModuleNotFoundError where something that it imports is not installed.
    """
    try:
        with torch.no_grad():
            model = _model(found)
            with torch.device("meta"), FlopCounterMode(display=False) as counter, _Recurrences() as recurrences:
                inputs = [one.to("meta") if isinstance(one, torch.Tensor) else one for one in found["get_inputs"]()]
                result = model(*inputs)
    except Exception:  # noqa: BLE001  # whatever a model raises for sizes that do not fit
        return None
    results = torch.utils._pytree.tree_leaves(result)
    tensors = [one for one in (*inputs, *model.parameters(), *results) if isinstance(one, torch.Tensor)]
    return Cost(sum(one.numel() for one in tensors), counter.get_total_flops() // 2 + recurrences.operations)


def _model(found: Mapping[str, Any]) -> Any:
    """The model without memory; one that reads tensors while it is made gets some then."""
    try:
        with torch.device("meta"):
            return found["Model"](*found["get_init_inputs"]())
    except RuntimeError:
        return found["Model"](*found["get_init_inputs"]()).to("meta")


class _Recurrences(TorchFunctionMode):
    """Counts recurrent layers as a whole: without memory, PyTorch goes through their steps one by one."""

    def __init__(self) -> None:
        super().__init__()
        self.operations = 0

    def __torch_function__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What a function gives."""
        del types
        if func not in _RECURRENT or not isinstance(args[3], bool):
            return func(*args, **(kwargs or {}))
        input, states, params = args[:3]
        self.operations += input.shape[0] * input.shape[1] * sum(one.numel() for one in params if one.dim() == 2)
        every = tuple(states) if func is torch.lstm else (states,)
        output = input.new_empty(*input.shape[:2], params[1].shape[1] * (1 + args[7]))
        return (output, *(torch.empty_like(one) for one in every))
