"""What a model computes in float64, wherever its float32 numbers come from.

A model may make float32 tensors of its own while it runs.  Each of them is widened where it comes into being, and
random numbers are drawn as float32 before that: in float64, generators give others.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_RANDOM: Final = frozenset(("rand", "randn", "rand_like", "randn_like", "normal"))
# These write random numbers into a tensor that is there.
_WRITTEN: Final = frozenset(("normal_", "uniform_", "bernoulli_", "exponential_", "cauchy_", "log_normal_"))


def exact(model: torch.nn.Module, inputs: Sequence[Any]) -> Any:
    """The results of a model in float64; the generators go on as they do when the model itself is called."""
    wide = copy.deepcopy(model).double()
    for module in wide.modules():  # a state that is no buffer may be written, too
        vars(module).update({name: _widened(value) for name, value in vars(module).items()})
    with Widened():  # type: ignore[no-untyped-call]  # PyTorch's
        return wide(*[_widened(one) for one in inputs])


class Widened(TorchDispatchMode):  # type: ignore[no-untyped-call]  # PyTorch's
    """Computes everything that is float32 in float64."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """What an operator gives."""
        del types
        name, named = func.overloadpacket.__name__, dict(kwargs or {})
        if name in _WRITTEN:
            return _written(func, args, named)
        if name in _RANDOM:
            if name.endswith("_like") and named.get("dtype") is None and args[0].dtype is torch.float64:
                named["dtype"] = torch.float32
            return _widened(func(*args, **named))
        found = func(*_each(_widened, args), **_each(_wide_type, _each(_widened, named)))
        return _each(_widened, found)


def _written(func: Any, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    own, *others = args
    if own.dtype is not torch.float64:
        return func(*args, **named)
    drawn = torch.empty_like(own, dtype=torch.float32)
    func(drawn, *others, **named)
    return own.copy_(drawn)


def _each(change: Callable[[Any], Any], values: Any) -> Any:
    return torch.utils._pytree.tree_map(change, values)


def _widened(value: Any) -> Any:
    return value.double() if isinstance(value, torch.Tensor) and value.dtype is torch.float32 else value


def _wide_type(value: Any) -> Any:
    return torch.float64 if value is torch.float32 else value
