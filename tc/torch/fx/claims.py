"""Which nodes of a graph are ours: those that a rule takes, tried one by one with the sizes of the example."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any, Final

import torch
from torch import fx

from tc.graph.ir.builder import Builder
from tc.torch.fx.importer import computed
from tc.torch.fx.operation import At, Held, Rules, UnclaimedError
from tc.torch.fx.types import TYPES, hinted, hinted_shape


def refused(module: fx.GraphModule, rules: Rules, at: At) -> dict[fx.Node, str]:
    """The nodes that are left to PyTorch in order, each with the reason.  ``at`` is told how many have been tried."""
    claims, found = _Claims(rules), {}
    for number, node in enumerate(module.graph.nodes):
        if node.op == "call_function" and not claims.has(node):
            found[node] = claims.left[node]
        at(number + 1, "operators")
    return found


class _Claims:
    """``left``: why nodes are not ours."""

    def __init__(self, rules: Rules) -> None:
        self._rules: Final = rules
        self.left: Final[dict[fx.Node, str]] = {}
        self._known: Final[dict[fx.Node, bool]] = {}

    def has(self, node: fx.Node) -> bool:
        """Whether a node is ours."""
        if node not in self._known:
            reason = self._reason(node)
            self._known[node] = reason is None
            if reason is not None:
                self.left[node] = reason
        return self._known[node]

    def _reason(self, node: fx.Node) -> str | None:
        """Why a node is left to PyTorch; None if it is not."""
        if node.target is operator.getitem:
            source = node.args[0]
            assert isinstance(source, fx.Node)
            if not self.has(source):
                return "is of an operator that is left to PyTorch"
        elsewhere = [one for one in (node, *node.all_input_nodes) if not _is_in_memory(one)]
        if elsewhere:
            return "works on another device, or on a kind of tensor that has no elements in memory"
        builder = Builder("claim")
        held: Mapping[fx.Node, Held] = {other: _example(builder, other) for other in node.all_input_nodes}
        try:
            computed(node, builder, held, self._rules)
        except UnclaimedError as error:
            return str(error)
        return None


def _is_in_memory(node: fx.Node) -> bool:
    found = node.meta.get("val")
    every = found if isinstance(found, list | tuple) else (found,)
    tensors = [one for one in every if isinstance(one, torch.Tensor)]
    return all(one.device.type == "cpu" and one.layout is torch.strided and one.dtype in TYPES for one in tensors)


def _example(builder: Builder, node: fx.Node) -> Held:
    """What stands for an argument of a node that is tried."""
    found: Any = node.meta.get("val")
    if isinstance(found, torch.Tensor):
        return builder.input(builder.fresh(node.name), TYPES[found.dtype], hinted_shape(found))
    if isinstance(found, list | tuple):
        return tuple(
            builder.input(builder.fresh(node.name), TYPES[one.dtype], hinted_shape(one))
            if isinstance(one, torch.Tensor)
            else None
            for one in found
        )
    if isinstance(found, torch.SymInt | torch.SymFloat | torch.SymBool):
        return hinted(found)
    return found if isinstance(found, bool | int | float) else None
