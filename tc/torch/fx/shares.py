"""What may be left to PyTorch of a part: all of it, or the operators that its libraries are made for."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

import torch
from torch import fx

aten: Final = torch.ops.aten


class Share(Enum):
    """Operators of a part."""

    ALL = "all operators"
    CONVOLUTIONS = "convolutions"
    PRODUCTS = "products"
    BOTH = "convolutions and products"

    def __str__(self) -> str:
        return self.value

    def of(self, module: fx.GraphModule) -> frozenset[fx.Node]:
        """The nodes of a part that have these operators, with their several results, and the views that only they take,
        which would be copied otherwise.
        """
        every = [node for node in module.graph.nodes if node.op == "call_function"]
        if self is Share.ALL:
            return frozenset(every)
        found = {node for node in every if node.target in _OPERATORS[self]}
        found |= {node for node in every if node.target is operator.getitem and node.args[0] in found}
        for node in reversed(every):
            target: Any = node.target
            if getattr(target, "is_view", False) and node.users and found.issuperset(node.users):
                found.add(node)
        return frozenset(found)


_CONVOLUTIONS: Final = frozenset({aten.convolution.default, aten.convolution_backward.default})
_PRODUCTS: Final = frozenset({aten.mm.default, aten.addmm.default, aten.bmm.default, aten.baddbmm.default})
_OPERATORS: Final[Mapping[Share, frozenset[Any]]] = {
    Share.CONVOLUTIONS: _CONVOLUTIONS,
    Share.PRODUCTS: _PRODUCTS,
    Share.BOTH: _CONVOLUTIONS | _PRODUCTS,
}


def shares_of(module: fx.GraphModule) -> list[Share]:
    """Those that a part has, each of other nodes than those before it."""
    found: dict[frozenset[fx.Node], Share] = {}
    for share in Share:
        found.setdefault(share.of(module), share)
    return [share for nodes, share in found.items() if nodes]
