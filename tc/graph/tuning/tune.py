"""Tunes models from Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import TYPE_CHECKING, Final

from tc.api.tuning import TuningRequest, workers_for, written_to
from tc.base.environment import environment
from tc.cache.content.store import Store
from tc.graph.tuning.model_search import Keep, ModelSearch, search
from tc.graph.tuning.pool import KernelPool
from tc.runtime.host.scratch import scratch_folder
from tc.store.cached import KernelCache
from tc.targets.target import Target
from tc.tuner.session.console import console
from tc.tuner.session.control import Control
from tc.tuner.session.progress_events import silence
from tc.tuner.session.search_setup import Machines, tuning
from tc.tuner.session.searches import Searches
from tc.tuner.session.status_line import StatusLine

if TYPE_CHECKING:
    from tc.graph.ir.graph import Graph
    from tc.graph.settings import Settings
    from tc.graph.tuning.report import ModelTuning
    from tc.tuner.session.kernel_search import Tuning
    from tc.tuner.session.subject import Subject

_PREFIX: Final = "tc-tune-"


def tune(
    name: str, graph: Graph, settings: Settings, target: Target, request: TuningRequest, keep: Keep | None
) -> tuple[ModelTuning, tuple[str, ...] | None]:
    """``Model.tune``: what came of it, and the cuts by name, None where the settings decide them.

    ``keep``: keeps the plan that comes of it, beside the winners.
    """
    (found,) = tune_together([(name, graph, keep)], settings, target, request)
    return found


def tune_together(
    graphs: Sequence[tuple[str, Graph, Keep | None]],
    settings: Settings,
    target: Target,
    request: TuningRequest,
    then: Callable[[KernelCache], None] | None = None,
) -> list[tuple[ModelTuning, tuple[str, ...] | None]]:
    """The same for several graphs by name, which share the budget.

    ``then``: what comes last, with the cache that has the winners and the plans, which may end with this call.
    """
    asked, here, status = request.settings, environment(), StatusLine()
    machines = Machines(workers_for(request.devices, request.workers, target))
    with scratch_folder(_PREFIX) as folder, ExitStack() as stack:
        configuration = written_to(request.cache, here, folder)
        store = Store.open(configuration.where, key=configuration.key)

        def begin(kernel: str, subject: Subject) -> AbstractContextManager[Tuning]:
            def say(line: str) -> None:
                status.say(f"{kernel}: {line}")

            listen = console(say, lambda text: status.show(f"{kernel}: {text}")) if request.progress else silence
            return tuning(subject, target, store, asked, here, machines, Control(listen))

        searches = Searches(stack, lambda: False)
        pool = KernelPool(searches, begin, target, KernelCache(configuration, here), lambda: False)
        models = [ModelSearch(name, graph, settings, pool, keep) for name, graph, keep in graphs]
        try:
            search(models, pool, asked.budget, lambda: None)
        except KeyboardInterrupt:
            searches.keep_best()
            raise
        finally:
            status.clear()
        for model in models:
            model.refresh()
        if then is not None:
            then(pool.cache)
        return [model.report() for model in models]
