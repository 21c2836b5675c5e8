"""``Report``: what runs where of a model that was compiled."""

from __future__ import annotations

import warnings
from collections import Counter
from typing import TYPE_CHECKING, Final

from tc.base.counted import counted
from tc.base.errors import GraphError
from tc.graph.ir.nodes import Call
from tc.torch.options import Fallback

if TYPE_CHECKING:
    from tc.torch.compiled import Compiled
    from tc.torch.kept import Claims


class Part:
    """A graph that PyTorch captured: the forward, the backward, or what runs without gradients.

    ``claims``: which of its nodes are ours; None where nothing identifies it.  ``compiled``: its parts that are ours.
    ``left``: operators that are left to PyTorch, with the reason and the places in the user's code.
    """

    def __init__(self, kind: str, nodes: int) -> None:
        self.kind: Final = kind
        self.nodes: Final = nodes
        self.compiled: Final[list[Compiled]] = []
        self.claims: Claims | None = None
        self.left: Final[dict[str, str]] = {}
        self.counts: Final[Counter[str]] = Counter()
        self.places: Final[dict[str, str]] = {}
        self.failures: Final[list[str]] = []

    def leave(self, operator: str, reason: str, place: str) -> None:
        """Notes a call that is left to PyTorch."""
        self.left[operator] = reason
        self.places.setdefault(operator, place)
        self.counts[operator] += 1

    def require(self, fallback: Fallback) -> None:
        """GraphError where operators are left that may not be."""
        forbidden = [name for name in self.counts if fallback is Fallback.NEVER and not is_random(name)]
        if forbidden:
            every = "; ".join(f"{name} {self.left[name]} ({self.places[name]})" for name in forbidden)
            raise GraphError(f"fallback='never': {every}")

    def fails(self, why: str, fallback: Fallback) -> bool:
        """Notes that a part could not be compiled; whether PyTorch runs it then."""
        self.failures.append(why)
        if fallback is Fallback.NEVER:
            return False
        warnings.warn(f"tc: PyTorch runs a part of the {self.kind}: {why}", stacklevel=2)
        return True

    def __str__(self) -> str:
        kernels = sum(len(one.kernels) for own in self.compiled for one in own.executions)
        lines = [f"{self.kind}: {self.nodes} nodes, {len(self.compiled)} parts of ours, {kernels} kernels"]
        for number, own in enumerate(self.compiled):
            lines.append(f"  part {number}: {_said(own)}")
            if own.timed:
                lines += [f"    {count} x {kernel}" for kernel, count in _kernels(own).items()]
        for name, count in self.counts.items():
            lines.append(f"  left to PyTorch: {name} ({count} times, {self.places[name]}): {self.left[name]}")
        lines += [f"  run by PyTorch: {why}" for why in self.failures]
        return "\n".join(lines)


# Random numbers are PyTorch's: its generators decide what they are.  So are the tensors that have their shapes.
_RANDOM: Final = (
    *("rand", "bernoulli", "dropout", "multinomial", "normal", "exponential", "uniform", "cauchy", "geometric"),
    *("poisson", "rrelu_with_noise", "getitem", "empty"),
)


def is_random(name: str) -> bool:
    """Whether an operator, by its name as in ``aten.rand.default``, draws random numbers or goes with them."""
    return any(part in name for part in _RANDOM)


def _said(own: Compiled) -> str:
    """What became of a part, how long a call takes, and what tuning has measured of it."""
    kernels = counted(sum(len(one.kernels) for one in own.executions), "kernel")
    origins = dict.fromkeys("plan from the cache" if ready.kept else "planned here" for ready in own.ready)
    took = [] if own.seconds is None else [f"{own.seconds * 1e6:,.0f} us at best"]
    return ", ".join([kernels, *origins, *took, *(map(own.told, own.trials) if own.trials else ["not tuned"])])


def _kernels(own: Compiled) -> Counter[str]:
    """How often a part has each kernel, which are told apart by name and shapes."""
    found: Counter[str] = Counter()
    for execution in own.executions:
        graph = execution.plan.graph
        for node in graph.nodes:
            if isinstance(node, Call):
                shapes = ", ".join("x".join(map(str, graph.values[name].shape)) or "scalar" for name in node.operands)
                found[f"{node.program.name}({shapes})"] += 1
    return found


class Report:
    """The parts in the order in which PyTorch captured them.  ``timed``: calls of ours are timed, and kernels
    listed.
    """

    def __init__(self, *, timed: bool = False) -> None:
        self.parts: Final[list[Part]] = []
        self.timed: Final = timed

    def __str__(self) -> str:
        return "\n".join(map(str, self.parts))
