"""What the cache has of a plan: the plan itself, its kernels by their definitions and signatures, its constants."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tc.artifact.definition import Remembered
from tc.base.frozen import frozen
from tc.base.interface import Interface
from tc.base.json_records import from_json, to_json
from tc.graph.ir.nodes import Call
from tc.graph.ir.sizes import shape_text
from tc.graph.kept.constants import Stored, are_held, restored, stored
from tc.graph.kept.steps import Numbers, StoredPlan, restored_plan, restored_values, stored_plan
from tc.graph.run.kernels import wanted_of
from tc.language.program.specialization import Signature
from tc.store.plans import MadePlan
from tc.store.wanted import Wanted

if TYPE_CHECKING:
    import numpy as np

    from tc.cache.format.records import Plan
    from tc.graph.kept.contents import Arrays
    from tc.graph.memory.plan import MemoryPlan
    from tc.language.program.program import Program
    from tc.targets.target import Target


@frozen
class _Kernel:
    """``program``: canonical."""

    interface: Interface
    program: str
    signature: Signature


@frozen
class _Steps:
    """``constants``: by name, where they are.  ``demanded``: what the source calls the outputs, if they decide what
    comes next.
    """

    plan: StoredPlan
    kernels: tuple[_Kernel, ...]
    constants: dict[str, Stored]
    demanded: tuple[str, ...] | None


def made_plan(
    interface: str,
    plan: MemoryPlan,
    target: Target,
    held: Mapping[str, np.ndarray],
    *,
    demanded: tuple[str, ...] | None,
) -> MadePlan | None:
    """A plan as it is stored; None for one that cannot be: with functions of the host, or with too many constants.

    ``interface``: what callers must know of the model.  ``held``: what it holds.  ``demanded``: what the source
    calls the outputs, if they decide what comes next.
    """
    calls = [(call, wanted_of(plan, call)) for call in plan.graph.nodes if isinstance(call, Call)]
    kernels = dict.fromkeys((one.comprehension.definition, one.signature) for _, one in calls)
    numbers = {key: number for number, key in enumerate(kernels)}
    numbered = {call.results: numbers[one.comprehension.definition, one.signature] for call, one in calls}
    steps, constants = stored_plan(plan, numbered), stored(plan.graph.constants, held)
    if steps is None or constants is None:
        return None
    described = tuple(_Kernel(own.interface, own.canonical, signature) for own, signature in kernels)
    found = _Steps(steps, described, dict(constants.places), demanded)
    graph = plan.graph
    inputs = ", ".join(f"{name}({shape_text(graph.values[name].shape)})" for name in graph.inputs)
    return MadePlan(
        interface=interface,
        title=f"{graph.name}({inputs})",
        kernels=tuple(Wanted(own, signature, target, None) for own, signature in kernels),
        constants=constants.large,
        steps=json.dumps(to_json(found), separators=(",", ":")),
        contents=constants.small,
    )


class Steps:
    """The steps of a plan in the cache; ValueError or LookupError, here and in ``plan``, for what no plan is."""

    def __init__(self, record: Plan) -> None:
        self._contents: Final = record.contents
        self._steps: Final = from_json(_Steps, json.loads(record.steps))

    @property
    def demanded(self) -> tuple[str, ...] | None:
        """What the source calls the outputs, if they decide what comes next."""
        return self._steps.demanded

    @property
    def signatures(self) -> tuple[Signature, ...]:
        """Of the kernels, in the order of their numbers."""
        return tuple(one.signature for one in self._steps.kernels)

    def kernels(self, target: Target) -> list[Wanted]:
        """The kernels that are needed, in the order of their numbers."""
        return [Wanted(_definition(one), one.signature, target, None) for one in self._steps.kernels]

    def held(self, arrays: Arrays) -> Mapping[str, np.ndarray]:
        """What the model holds, which is read where the plan needs it."""
        return arrays() if are_held(self._steps.constants) else {}

    def plan(self, large: Sequence[bytes], held: Mapping[str, np.ndarray]) -> tuple[MemoryPlan, Numbers]:
        """The plan, and the numbers of its kernels.

        ``large``: the contents of its large constants.  ``held``: what the model holds.
        """
        steps = self._steps
        values = restored_values(steps.plan)
        constants = restored(steps.constants, values, self._contents, large, held)
        return restored_plan(steps.plan, values, [one.interface for one in steps.kernels], constants)


def _definition(kernel: _Kernel) -> Remembered:
    return Remembered(kernel.interface, kernel.program, None, lambda: _program(kernel.program))


def _program(text: str) -> Program:
    from tc.graph.ir.builder import program_of

    return program_of(text)
