"""Random numbers that are those of eager PyTorch: in the order of the program, and in that of memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import torch
from torch import fx

aten: Final = torch.ops.aten
Found = TypeVar("Found")
# Tensors without contents, which have the layout that what is drawn has, too.
_EMPTY: Final = (aten.empty_permuted.default, aten.empty_like.default, aten.empty.memory_format)


def keep_draws(module: fx.GraphModule) -> None:
    """Makes each draw depend on the one before, so that no division of the graph has them in another order: each
    generator goes on from where the draw before left it.  Masks are drawn in the layout of what they are for.
    """
    earlier: fx.Node | None = None
    for node in list(module.graph.nodes):
        if not _draws(node):
            continue
        given = node.args[0] if node.args else None
        if node.target is aten.bernoulli.p and isinstance(given, fx.Node) and given.target in _EMPTY:
            node.target, node.args = _mask, (earlier, *node.args)
        elif earlier is not None:
            node.target, node.args = _after, (earlier, node.target, *node.args)
        earlier = node
    module.recompile()


def _mask(_earlier: object, empty: torch.Tensor, p: float) -> torch.Tensor:
    """What dropout draws; ``aten.bernoulli.p``, as which it is captured, draws a contiguous tensor.

    Several masks may have the same empty tensor.
    """
    return torch.empty_like(empty).bernoulli_(p)


def _after(_earlier: object, function: Callable[..., Found], *arguments: Any, **named: Any) -> Found:
    """Calls the function; what was drawn earlier is an argument, so that it comes first."""
    return function(*arguments, **named)


def _draws(node: fx.Node) -> bool:
    """Whether a node, or an operator that it calls, changes the state of a generator."""
    called = [node.target, *node.args] if node.op == "call_function" else []
    operators = (one for one in called if isinstance(one, torch._ops.OpOverload))
    return any(torch.Tag.nondeterministic_seeded in operator.tags for operator in operators)
