"""``Compiled``: a graph of ``torch.fx`` that kernels of ours compute, called on tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
import torch
from torch import fx

from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.graph.run.execute import Execution
from tc.graph.run.repeated import Repeated
from tc.graph.settings import Settings
from tc.torch.frame import Frame
from tc.torch.fx.canonical import canonical
from tc.torch.fx.layout import Layout, array_of, order_of, tensor_of
from tc.torch.kept import KeptPart, cache_here, part_digest
from tc.torch.rules import meaning_of, rules

# Makes the argument of an execution of a tensor.
Taking: TypeAlias = Callable[[Any], np.ndarray]


@frozen
class _Ready:
    """A graph for some sizes, ready to run."""

    frame: Frame
    repeated: Repeated
    taking: tuple[tuple[int, Taking], ...]
    giving: tuple[Callable[[np.ndarray], torch.Tensor], ...]


class Compiled:
    """Called on what the placeholders are, it returns what the module returns.

    A graph is made for the numbers among the arguments, and kept.  ``name``: of it, for people.  ``fails``: what is
    done where that cannot be done, given the reason: it returns whether PyTorch runs the module.  ``timed``:
    ``seconds`` is the least time of a call.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        name: str,
        settings: Settings,
        fails: Callable[[str], bool],
        *,
        timed: bool = False,
    ) -> None:
        self._module: Final = module
        self._name: Final = name
        self._settings: Final = settings
        self._fails: Final = fails
        self._timed: Final = timed
        self.seconds: float | None = None
        self._lock: Final = threading.Lock()
        self._ready: Final[dict[tuple[object, ...], _Ready | None]] = {}
        found = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        self._open: Final = any(_is_open(one) for one in found)
        self._numbers: Final = tuple(at for at, one in enumerate(found) if not isinstance(one, torch.Tensor))

    def __call__(self, *arguments: Any) -> Any:
        """The results."""
        if not self._timed:
            return self._called(arguments)
        started = time.perf_counter()
        found = self._called(arguments)
        taken = time.perf_counter() - started
        self.seconds = taken if self.seconds is None else min(self.seconds, taken)
        return found

    def _called(self, arguments: Sequence[Any]) -> Any:
        if self._open:
            key = tuple(tuple(one.shape) if isinstance(one, torch.Tensor) else one for one in arguments)
        else:
            key = tuple([arguments[at] for at in self._numbers])
        ready = self._ready.get(key, _MISSING)
        if ready is _MISSING:
            ready = self._prepared(key, arguments)
        if ready is None:
            return self._module(*arguments)
        computed = ready.repeated(tuple([take(arguments[at]) for at, take in ready.taking]))
        outputs = [
            give(one.look.of(computed))
            if one.look is not None
            else (one.number if one.place is None else arguments[one.place])
            for give, one in zip(ready.giving, ready.frame.outputs, strict=True)
        ]
        return outputs[0] if ready.frame.single else outputs

    @property
    def executions(self) -> tuple[Execution, ...]:
        """What has been prepared so far."""
        return tuple(ready.repeated.execution for ready in self._ready.values() if ready is not None)

    def _prepared(self, key: tuple[object, ...], arguments: Sequence[Any]) -> _Ready | None:
        with self._lock:
            if key not in self._ready:
                try:
                    self._ready[key] = self._made(arguments)
                except TCError as error:
                    if not self._fails(str(error)):
                        raise
                    self._ready[key] = None
            return self._ready[key]

    def _made(self, arguments: Sequence[Any]) -> _Ready:
        given = [_layout(one) for one in arguments]
        frame, execution = self._found(given)
        taking = tuple((at, _taking(given[at])) for at, _ in frame.taken)
        repeated = Repeated(execution, tuple(name for _, name in frame.taken))
        return _Ready(frame, repeated, taking, tuple(_giving(self._module)))

    def _found(self, given: Sequence[Any]) -> tuple[Frame, Execution]:
        """The plan from the cache, or prepared now, and kept there."""
        cache = cache_here()
        text = None if cache is None else canonical(self._module, meaning_of)
        digest = part_digest(text, given, self._settings)
        kept = None if cache is None or digest is None else KeptPart(cache, digest, self._module, self._settings)
        found = None if kept is None else kept.find(len(given))
        if found is not None:
            return found
        from tc.torch.graphs import graph_of

        frame, plan = graph_of(self._module, self._name, rules(), given).planned(self._settings)
        execution = Execution(plan, self._settings.target)
        if kept is not None:
            kept.keep(frame, plan)
        return frame, execution


_MISSING: Final[Any] = object()


def _is_open(example: object) -> bool:
    if isinstance(example, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in example.shape)
    return isinstance(example, torch.SymInt | torch.SymFloat | torch.SymBool)


def _layout(given: Any) -> Any:
    if isinstance(given, torch.Tensor):
        return Layout.of(tuple(given.shape), given.stride(), given.dtype)
    return given


def _taking(layout: Layout) -> Taking:
    """Makes an array of a tensor: its own memory where that is in the order of the layout, else a copy."""
    order = layout.order if layout.order != tuple(range(len(layout.order))) else None

    def take(tensor: torch.Tensor) -> np.ndarray:
        found = tensor.detach() if order is None else tensor.detach().permute(order)
        if not found.is_contiguous() or found.is_neg():
            found = found.resolve_neg().contiguous()
        return array_of(found)

    return take


def _giving(module: fx.GraphModule) -> list[Callable[[np.ndarray], torch.Tensor]]:
    """Make tensors of the arrays of outputs, with dimensions in the order that callers see."""
    (node,) = (node for node in module.graph.nodes if node.op == "output")
    (returned,) = node.args
    every = returned if isinstance(returned, list | tuple) else (returned,)
    return [_give(order_of(one), one.meta["val"].dtype) if _is_tensor(one) else _refuse for one in every]


def _is_tensor(one: object) -> bool:
    return isinstance(one, fx.Node) and isinstance(one.meta.get("val"), torch.Tensor)


def _refuse(array: np.ndarray) -> torch.Tensor:
    raise AssertionError(f"{array.shape} is no tensor in the graph that was captured")


def _give(order: tuple[int, ...], dtype: torch.dtype) -> Callable[[np.ndarray], torch.Tensor]:
    back = None if order == tuple(range(len(order))) else tuple(order.index(axis) for axis in range(len(order)))

    def give(array: np.ndarray) -> torch.Tensor:
        found = tensor_of(array, dtype)
        return found if back is None else found.permute(back)

    return give
