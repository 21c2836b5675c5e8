"""``Module``: a layer of PyTorch that a comprehension computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import torch

from tc.api.comprehension import Comprehension
from tc.api.definitions import Definitions, define
from tc.base.errors import ArgumentError, nearest

# What a parameter begins with: random numbers of a shape, or given ones.
Beginning: TypeAlias = "Sequence[int] | torch.Tensor"


class Module(torch.nn.Module):
    """A layer: ``Module("def linear(float(B,I) x, float(O,I) W) -> (y) { ... }", parameters={"W": (10, 64)})``.

    ``parameters``: those of the arguments that are learned, by name: a shape, or a tensor with the first values.  Those
    of a shape begin as in ``torch.nn.Linear``: uniform in ``1 / sqrt(n)`` around 0, where ``n`` is the number of
    elements behind the first dimension, or in it for a vector.  The layer is called with the other arguments, in order.
    ``definition``: a text, what ``tc.define`` returned for one definition, or a comprehension.  ArgumentError for
    parameters that are no floating tensors among the arguments, or have another number of dimensions.
    """

    def __init__(
        self,
        definition: str | Definitions | Comprehension,
        parameters: Mapping[str, Beginning],
        *,
        device: torch.device | str | None = None,
    ) -> None:
        super().__init__()
        found = define(definition) if isinstance(definition, str) else definition
        self._comprehension = found.single() if isinstance(found, Definitions) else found
        interface = self._comprehension.interface
        types = {tensor.name: tensor for tensor in interface.tensors if tensor.name in interface.arguments}
        for name, beginning in parameters.items():
            if name not in types or not types[name].type.is_floating:
                floating = [known for known, tensor in types.items() if tensor.type.is_floating]
                guess = nearest(name, floating)
                hint = f"did you mean {guess!r}?" if guess else f"its floating tensors are {', '.join(floating)}"
                raise ArgumentError(f"{interface.name} has no floating tensor {name!r} among its arguments; {hint}")
            dtype = getattr(torch, types[name].type.value)
            value = _begun(beginning, dtype, device)
            if value.dim() != types[name].dimensions:
                raise ArgumentError(
                    f"parameter {name} of {interface.name} must have {types[name].dimensions} dimensions, got "
                    f"{tuple(value.shape)}"
                )
            self.register_parameter(name, torch.nn.Parameter(value))
        self._learned = tuple(parameters)

    def forward(self, *inputs: object) -> object:
        """The results for the arguments that are not learned."""
        interface, given = self._comprehension.interface, list(inputs)
        if len(given) + len(self._learned) != len(interface.arguments):
            taken = [name for name in interface.arguments if name not in self._learned]
            raise ArgumentError(f"{interface.name} takes {', '.join(taken)}, got {len(given)} arguments")
        own = dict(self.named_parameters())
        return self._comprehension(*(own[name] if name in own else given.pop(0) for name in interface.arguments))

    def extra_repr(self) -> str:
        """What ``print`` shows of it."""
        shapes = ", ".join(f"{name}={tuple(value.shape)}" for name, value in self.named_parameters())
        return f"{self._comprehension.name}, {shapes}"


def _begun(beginning: Beginning, dtype: torch.dtype, device: torch.device | str | None) -> torch.Tensor:
    if isinstance(beginning, torch.Tensor):
        return beginning.detach().to(device=device, dtype=dtype, copy=True)
    value = torch.empty(tuple(beginning), dtype=dtype, device=device)
    inner = value.shape[1:] if value.dim() > 1 else value.shape
    bound = 1 / max(1, inner.numel()) ** 0.5
    return value.uniform_(-bound, bound)
