"""The parts of a graph that are ours, as modules of their own."""

from __future__ import annotations

from collections.abc import Container, Mapping

import torch
from torch import fx
from torch.fx.passes.infra.partitioner import CapabilityBasedPartitioner
from torch.fx.passes.operator_support import OperatorSupportBase

from tc.torch.fx.draws import keep_draws


def partitioned(module: fx.GraphModule, left: Container[fx.Node]) -> tuple[fx.GraphModule, list[str]]:
    """The module with a submodule for every part that is ours, and their names.  ``left``: what is PyTorch's."""
    keep_draws(module)
    partitioner = CapabilityBasedPartitioner(module, _Support(left), allows_single_node_partition=True)
    fused = partitioner.fuse_partitions(partitioner.propose_partitions())
    names = [str(node.target) for node in fused.graph.nodes if node.op == "call_module"]
    return fused, names


class _Support(OperatorSupportBase):
    """What is ours, as PyTorch's partitioner asks for it."""

    def __init__(self, left: Container[fx.Node]) -> None:
        self._left = left

    def is_node_supported(self, submodules: Mapping[str, torch.nn.Module], node: fx.Node) -> bool:
        """Whether a node is ours."""
        del submodules
        return node.op == "call_function" and node not in self._left
