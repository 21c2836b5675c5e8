"""``Compiled``: a graph of ``torch.fx`` that kernels of ours compute, called on tensors."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import torch
from torch import fx

from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.graph.run.execute import Execution
from tc.graph.run.repeated import Repeated
from tc.graph.settings import Settings
from tc.torch.frame import Frame
from tc.torch.fx.canonical import canonical
from tc.torch.kept import KeptPart, cache_here, part_digest
from tc.torch.passing import Giving, Taking, giving_of, layout_of, taking_of
from tc.torch.rules import meaning_of, rules
from tc.torch.trials import is_left, said, trial_of

if TYPE_CHECKING:
    from tc.cache.format.records import LibraryTrial
    from tc.store.cached import KernelCache


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


class Compiled:
    """Called on what the placeholders are, it returns what the module returns.

    A graph is made for the numbers among the arguments, and kept.  ``name``: of it, for people.  ``fails``: what is
    done where that cannot be done, given the reason: it returns whether PyTorch runs the module.  ``measured``: PyTorch
    runs it where tuning has found that to be quicker.  ``timed``: ``seconds`` is the least time of a call.
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
        # Is told of each call, which PyTorch runs meanwhile.
        self.watch: Watch | None = None
        # What tuning has found of the graphs, in the order in which they were called first.
        self.trials: Final[list[LibraryTrial]] = []
        self._lock: Final = threading.Lock()
        self._ready: Final[dict[tuple[object, ...], Ready | None]] = {}
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
        """What has been prepared so far, and is not left to PyTorch."""
        return tuple(ready for ready in self._ready.values() if ready is not None)

    @property
    def executions(self) -> tuple[Execution, ...]:
        """The plans of what is ``ready``."""
        return tuple(ready.repeated.execution for ready in self.ready)

    def adopt(self, arguments: Sequence[Any], ready: Ready, trial: LibraryTrial) -> None:
        """From now on, calls with such arguments run what tuning has found."""
        self.trials.append(trial)
        with self._lock:
            self._ready[self._key(arguments)] = None if self._measured and is_left(trial) else ready

    def told(self, trial: LibraryTrial) -> str:
        """What was measured, and what follows from it here, in words."""
        return said(trial, left=self._measured and is_left(trial))

    def digest(self, given: Sequence[Any]) -> str | None:
        """What identifies the module for what its placeholders are; None if nothing does."""
        return part_digest(canonical(self.module, meaning_of), given, self.settings)

    def _prepared(self, key: tuple[object, ...], arguments: Sequence[Any]) -> Ready | None:
        with self._lock:
            if key not in self._ready:
                try:
                    self._ready[key] = self._made(arguments)
                except TCError as error:
                    if not self._fails(str(error)):
                        raise
                    self._ready[key] = None
            return self._ready[key]

    def _made(self, arguments: Sequence[Any]) -> Ready | None:
        """The plan from the cache, or prepared now, and kept there; None where PyTorch was measured to be quicker."""
        given, cache = [layout_of(one) for one in arguments], cache_here()
        digest = None if cache is None else self.digest(given)
        if cache is None or digest is None:
            return Ready.of(self.module, given, *self._planned(given), kept=False)
        if self._is_left(cache, digest):
            return None
        kept = KeptPart(cache, digest, self.module, self.settings)
        found = kept.find(len(given))
        if found is not None:
            return Ready.of(self.module, given, *found, kept=True)
        frame, execution = self._planned(given)
        kept.keep(frame, execution.plan)
        return Ready.of(self.module, given, frame, execution, kept=False)

    def _is_left(self, cache: KernelCache, digest: str) -> bool:
        trial = trial_of(cache, digest)
        if trial is None:
            return False
        self.trials.append(trial)
        return self._measured and is_left(trial)

    def _planned(self, given: Sequence[Any]) -> tuple[Frame, Execution]:
        from tc.torch.graphs import graph_of

        frame, plan = graph_of(self.module, self.name, rules(), given).planned(self.settings)
        return frame, Execution(plan, self.settings.target)


Watch: TypeAlias = Callable[[Compiled, Sequence[Any]], None]
_MISSING: Final[Any] = object()


def _is_open(example: object) -> bool:
    if isinstance(example, torch.Tensor):
        return any(isinstance(size, torch.SymInt) for size in example.shape)
    return isinstance(example, torch.SymInt | torch.SymFloat | torch.SymBool)
