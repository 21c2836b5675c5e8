"""``Frame``: how the arguments and results of a module are those of a plan."""

from __future__ import annotations

from tc.base.frozen import frozen
from tc.graph.memory.plan import MemoryPlan
from tc.graph.run.bases import Look


@frozen
class Output:
    """A result: an argument by its place, a look at what the plan computes, or else a number or None."""

    place: int | None = None
    look: Look | None = None
    number: object = None


@frozen
class Frame:
    """``taken``: the arguments that are needed by their places, each with the input of the plan that it is.

    ``single``: the only result is returned itself.  All of it is kept beside the plan.
    """

    taken: tuple[tuple[int, str], ...]
    outputs: tuple[Output, ...]
    single: bool

    def require_fit(self, plan: MemoryPlan, arguments: int) -> None:
        """ValueError unless it is a frame of the plan, for so many arguments."""
        graph = plan.graph
        places = [place for place, _ in self.taken] + [one.place for one in self.outputs if one.place is not None]
        looks = [one.look for one in self.outputs if one.look is not None]
        fits = (
            all(0 <= place < arguments for place in places)
            and {name for _, name in self.taken} == needed_inputs(plan)
            and all(0 <= look.number < len(graph.outputs) and look.offset >= 0 for look in looks)
        )
        if not fits:
            raise ValueError("the arguments are not those of the plan")


def needed_inputs(plan: MemoryPlan) -> set[str]:
    """The inputs that nodes use, or that are returned."""
    graph = plan.graph
    used = {name for node in graph.nodes for name in node.operands} | set(graph.outputs)
    return used & set(graph.inputs)
