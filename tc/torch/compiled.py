"""``Compiled``: a graph of ``torch.fx`` that kernels of ours compute, called on tensors."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

import torch
from torch import fx

from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.graph.run.execute import Execution
from tc.graph.run.repeated import Repeated
from tc.graph.settings import Settings
from tc.torch.frame import Frame
from tc.torch.fx.canonical import canonical
from tc.torch.fx.parts import partitioned
from tc.torch.fx.shares import Share
from tc.torch.kept import Claims, KeptPart, cache_here, part_digest
from tc.torch.passing import Giving, Taking, giving_of, layout_of, taking_of
from tc.torch.rules import meaning_of, rules
from tc.torch.trials import Trials, trials_of


@frozen
class Ready:
    """A graph for some sizes, ready to run.  ``kept``: its plan came from the cache."""

    frame: Frame
    repeated: Repeated
    taking: tuple[tuple[int, Taking], ...]
    giving: tuple[Giving, ...]
    kept: bool

    @staticmethod
    def of(module: fx.GraphModule, given: Sequence[Any], frame: Frame, execution: Execution, *, kept: bool) -> Ready:
        """A plan of a module for what its placeholders are."""
        taking = tuple((at, taking_of(given[at])) for at, _ in frame.taken)
        repeated = Repeated(execution, tuple(name for _, name in frame.taken))
        return Ready(frame, repeated, taking, giving_of(module, frame), kept)

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """What the module returns."""
        computed = self.repeated(tuple([take(arguments[at]) for at, take in self.taking]))
        outputs = [
            give(one.look.of(computed))
            if one.look is not None
            else (one.number if one.place is None else arguments[one.place])
            for give, one in zip(self.giving, self.frame.outputs, strict=True)
        ]
        return outputs[0] if self.frame.single else outputs


class Mixed:
    """A module in which PyTorch computes a share of the operators; the parts between them are ours."""

    def __init__(self, whole: Compiled, share: Share) -> None:
        copied = fx.GraphModule(whole.module, copy.deepcopy(whole.module.graph))
        left = share.of(copied)
        for node in left:
            if node.target is torch.ops.aten.view.default:  # of what may lie in memory as it was not traced
                node.target = torch.ops.aten.reshape.default
        self._module, names = partitioned(copied, left)
        self.parts: Final[list[Compiled]] = []
        for name in names:
            module, title = getattr(self._module, name), f"{whole.name}.{len(self.parts)}"
            own = Compiled(module, title, whole.settings, lambda _: True)  # PyTorch runs what fails
            self.parts.append(own)
            setattr(self._module, name, Submodule(own))
        self._module.recompile()

    def __call__(self, arguments: Sequence[Any]) -> Any:
        """What the module returns."""
        return self._module(*arguments)


class Compiled:
    """Called on what the placeholders are, it returns what the module returns.

    A graph is made for the numbers among the arguments, and kept.  ``name``: of it, for people.  ``fails``: what is
    done where that cannot be done, given the reason: it returns whether PyTorch runs the module.  ``measured``: PyTorch
    runs it, or some of its operators, where tuning has found that to be quicker.  ``timed``: ``seconds`` is the least
    time of a call.
    """

    def __init__(
        self,
        module: fx.GraphModule,
        name: str,
        settings: Settings,
        fails: Callable[[str], bool],
        *,
        measured: bool = False,
        timed: bool = False,
    ) -> None:
        self.module: Final = module
        self.name: Final = name
        self.settings: Final = settings
        self._fails: Final = fails
        self._measured: Final = measured
        self.timed: Final = timed
        self.seconds: float | None = None
        # Of the graph that it is a part of.
        self.claims: Claims | None = None
        # Is told of each call, which PyTorch runs meanwhile.
        self.watch: Watch | None = None
        # What tuning has found of the graphs, in the order in which they were called first.
        self.trials: Final[list[Trials]] = []
        self._lock: Final = threading.Lock()
        # None is left to PyTorch.
        self._ready: Final[dict[tuple[object, ...], Ready | Mixed | None]] = {}
        found = [node.meta.get("val") for node in module.graph.nodes if node.op == "placeholder"]
        self._open: Final = any(_is_open(one) for one in found)
        self._numbers: Final = tuple(at for at, one in enumerate(found) if not isinstance(one, torch.Tensor))

    def __call__(self, *arguments: Any) -> Any:
        """The results."""
        if not self.timed:
            return self._called(arguments)
        started = time.perf_counter()
        found = self._called(arguments)
        taken = time.perf_counter() - started
        self.seconds = taken if self.seconds is None else min(self.seconds, taken)
        return found

    def _called(self, arguments: Sequence[Any]) -> Any:
        if self.watch is not None:
            self.watch(self, arguments)
            return self.module(*arguments)
        key = self._key(arguments)
        ready = self._ready.get(key, _MISSING)
        if ready is _MISSING:
            ready = self._prepared(key, arguments)
        return self.module(*arguments) if ready is None else ready(arguments)

    def _key(self, arguments: Sequence[Any]) -> tuple[object, ...]:
        """What tells the graphs of the module apart."""
        if self._open:
            return tuple(tuple(one.shape) if isinstance(one, torch.Tensor) else one for one in arguments)
        return tuple([arguments[at] for at in self._numbers])

    @property
    def ready(self) -> tuple[Ready, ...]:
        """What has been prepared so far, without what is left to PyTorch."""
        found: list[Ready] = []
        for one in self._ready.values():
            if isinstance(one, Ready):
                found.append(one)
            elif one is not None:
                found += (ready for part in one.parts for ready in part.ready)
        return tuple(found)

    @property
    def executions(self) -> tuple[Execution, ...]:
        """The plans of what is ``ready``."""
        return tuple(ready.repeated.execution for ready in self.ready)

    def adopt(self, arguments: Sequence[Any], ready: Ready, mixed: Mapping[Share, Mixed], trials: Trials) -> None:
        """From now on, calls with such arguments run what tuning has found to be the quickest."""
        self.trials.append(trials)
        best = trials.best if self._measured else None
        with self._lock:
            self._ready[self._key(arguments)] = ready if best is None else mixed.get(best)

    def told(self, trials: Trials) -> str:
        """What was measured, and what follows from it here, in words."""
        return trials.said(decides=self._measured)

    def digest(self, given: Sequence[Any]) -> str | None:
        """What identifies the module for what its placeholders are; None if nothing does."""
        return part_digest(canonical(self.module, meaning_of), given, self.settings)

    def _prepared(self, key: tuple[object, ...], arguments: Sequence[Any]) -> Ready | Mixed | None:
        with self._lock:
            if key not in self._ready:
                try:
                    self._ready[key] = self._made(arguments)
                except TCError as error:
                    if not self._fails(str(error)):
                        raise
                    self._ready[key] = None
            return self._ready[key]

    def _made(self, arguments: Sequence[Any]) -> Ready | Mixed | None:
        """The plan from the cache, or prepared now, and kept there; that of some of it, or None, where it was measured
        that PyTorch is quicker.
        """
        given, cache = [layout_of(one) for one in arguments], cache_here()
        digest = None if cache is None else self.digest(given)
        if cache is None or digest is None:
            return Ready.of(self.module, given, *self._planned(given), kept=False)
        trials = trials_of(cache, digest)
        self.trials.extend(() if trials is None else (trials,))
        best = None if trials is None or not self._measured else trials.best
        if best is not None:
            return None if best is Share.ALL else Mixed(self, best)
        kept = KeptPart(cache, digest, self.module, self.settings)
        found = kept.find(len(given))
        if found is not None:
            return Ready.of(self.module, given, *found, kept=True)
        frame, execution = self._planned(given)
        kept.keep(frame, execution.plan)
        return Ready.of(self.module, given, frame, execution, kept=False)

    def _planned(self, given: Sequence[Any]) -> tuple[Frame, Execution]:
        from tc.torch.graphs import graph_of

        frame, plan = graph_of(self.module, self.name, rules(), given).planned(self.settings)
        return frame, Execution(plan, self.settings.target)


class Submodule(torch.nn.Module):
    """A part of a module that is ours."""

    def __init__(self, compiled: Callable[..., Any]) -> None:
        super().__init__()
        self._compiled = compiled

    def forward(self, *arguments: Any) -> Any:
        """What the part returns."""
        return self._compiled(*arguments)


Watch: TypeAlias = Callable[[Compiled, Sequence[Any]], None]
_MISSING: Final[Any] = object()


def _is_open(example: object) -> bool:
    if isinstance(example, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in example.shape)
    return isinstance(example, torch.SymInt | torch.SymFloat | torch.SymBool)
