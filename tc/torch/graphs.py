"""Modules as graphs of comprehensions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from torch import fx

from tc.api.progress import Progress
from tc.base.errors import GraphError
from tc.base.frozen import frozen
from tc.graph.preparation import prepared
from tc.graph.run.bases import Look, bases_of
from tc.torch.frame import Frame, Output, needed_inputs
from tc.torch.fx.importer import Imported, imported
from tc.torch.fx.layout import Layout
from tc.torch.fx.operation import Rules, UnclaimedError

if TYPE_CHECKING:
    from tc.graph.ir.graph import Graph
    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.settings import Settings


@frozen
class ModuleGraph:
    """``graph``: computes what results look at, each of them once, by the ``looks`` at them in order."""

    graph: Graph
    looks: tuple[Look, ...]
    imported: Imported

    def frame(self, plan: MemoryPlan) -> Frame:
        """How the module calls a plan of the graph."""
        needed, looks = needed_inputs(plan), iter(self.looks)
        every = self.imported
        outputs = (Output(one.place, None if one.value is None else next(looks), one.number) for one in every.outputs)
        taken = ((at, name) for at, name in enumerate(every.inputs) if name is not None and name in needed)
        return Frame(tuple(taken), tuple(outputs), every.single)

    def planned(self, settings: Settings) -> tuple[Frame, MemoryPlan]:
        """The graph, prepared; GraphError where it cannot be."""
        plan = prepared(self.graph, settings).memory
        return self.frame(plan), plan


def graph_of(
    module: fx.GraphModule, name: str, rules: Rules, given: Sequence[Layout | bool | int | float]
) -> ModuleGraph:
    """The graph for what placeholders are; GraphError for what no rule takes.  Terminals show how far it is."""
    try:
        with Progress(f"importing {name}", len(module.graph.nodes)) as bar:
            found = imported(module, name, rules, given, bar.at)
    except UnclaimedError as error:
        raise GraphError(str(error)) from error
    bases = bases_of(found.graph)
    return ModuleGraph(bases.graph, bases.looks, found)
