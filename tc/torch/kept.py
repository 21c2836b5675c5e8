"""What the cache keeps of models of PyTorch: which operators are ours, and the plans of the parts that are."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import torch
from torch import fx

from tc.api.available import target_of_call
from tc.api.kernels import process_cache
from tc.base.digest import sha256_hex
from tc.base.environment import environment
from tc.base.frozen import frozen
from tc.base.json_records import from_json, to_json
from tc.graph.ir.source import Request
from tc.graph.kept.contents import Contents
from tc.graph.kept.keeper import Keeper
from tc.graph.kept.request import request_text
from tc.graph.run.execute import Execution
from tc.store.plans import MadePlan, Model, PlanCache, WantedPlan
from tc.torch.frame import Frame
from tc.torch.fx.canonical import constants_of
from tc.torch.fx.layout import Layout, array_of

if TYPE_CHECKING:
    import numpy as np

    from tc.graph.memory.plan import MemoryPlan
    from tc.graph.settings import Settings
    from tc.store.cached import KernelCache

# All else that a plan is for is in the digest of its part.
_REQUEST: Final = Request({}, ())


def cache_here() -> KernelCache | None:
    """The cache of the process; None where there is none, and where it is to show how kernels are made."""
    return None if environment().dump is not None else process_cache()


def part_digest(text: str | None, given: Sequence[object], settings: Settings) -> str | None:
    """What identifies a part in other processes; None if nothing does.

    ``text``: of its module, as of ``canonical``.  ``given``: what its placeholders are.
    """
    settled = request_text(_REQUEST, settings)
    known = all(one is None or isinstance(one, Layout | bool | int | float) for one in given)
    if text is None or settled is None or not known:
        return None
    return sha256_hex("\n".join((text, *map(repr, given), settled)).encode())


class KeptPart:
    """The plan of a part of a model in a cache, for what its placeholders are."""

    def __init__(self, kernels: KernelCache, digest: str, module: fx.GraphModule, settings: Settings) -> None:
        self._kernels: Final = kernels
        self._model: Final = Model(digest, _reader())
        self._module: Final = module
        self._settings: Final = settings

    def find(self, arguments: int) -> tuple[Frame, Execution] | None:
        """The plan, ready to run with so many arguments; None where there is none, or a kernel is missing."""
        plans = PlanCache.beside(self._kernels)
        text = plans.interface(self._model)
        if text is None:
            return None
        with plans.reading("a part of a model of PyTorch"):
            frame = from_json(Frame, json.loads(text))
            stage = self._keeper(frame).find(_REQUEST)
            if stage is None or not isinstance(stage[0], Execution):
                return None
            frame.require_fit(stage[0].plan, arguments)
            return frame, stage[0]
        return None

    def keep(self, frame: Frame, plan: MemoryPlan) -> None:
        """Stores the plan, in the place of an earlier one."""
        self._keeper(frame).keep_plan(_REQUEST, plan)

    def _keeper(self, frame: Frame) -> Keeper:
        contents = Contents(self._model, self._arrays)
        return Keeper(self._kernels, contents, lambda: json.dumps(to_json(frame)), self._settings)

    def _arrays(self) -> Mapping[str, np.ndarray]:
        tensors = constants_of(self._module)
        return {name: array_of(one.detach().contiguous()) for name, one in tensors.items()}


@frozen
class Claims:
    """Which nodes of a captured graph are left to PyTorch, by their numbers, and why.  ``text``: of the graph.

    They are stored as a plan that needs no kernels, since that is how the graph runs.
    """

    text: str
    left: Mapping[int, str]

    @staticmethod
    def find(kernels: KernelCache, text: str, nodes: int) -> Claims | None:
        """Those of a graph of so many nodes in a cache; None where they are not known."""
        plans = PlanCache.beside(kernels)
        record = plans.find(_claims_of(text))
        if record is None:
            return None
        with plans.reading("the claims of a graph of PyTorch"):
            found = {int(number): str(reason) for number, reason in json.loads(record.steps).items()}
            if not all(0 <= number < nodes for number in found):
                raise ValueError("there are fewer nodes")
            return Claims(text, found)
        return None

    def keep(self, kernels: KernelCache) -> None:
        """Stores them in a cache."""
        made = MadePlan("{}", "a graph of PyTorch", (), (), json.dumps(self.left), b"")
        PlanCache.beside(kernels).keep(_claims_of(self.text), made)


def _claims_of(text: str) -> WantedPlan:
    return WantedPlan(Model(sha256_hex(text.encode()), _reader()), "claims", target_of_call(None))


def _reader() -> str:
    return f"torch {torch.__version__}"
