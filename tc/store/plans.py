"""``PlanCache``: plans of graphs in the cache of a process."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tc.base.environment import Environment
from tc.base.errors import CacheError, DeviceError, TCError
from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.cache.format.records import Constant, ModelInterface, Plan
from tc.store.access import Access
from tc.store.cached import kernel_cache
from tc.store.wanted import Wanted, target_names, threads_of
from tc.targets.target import Target


@frozen
class Model:
    """``digest``: of its contents.  ``reader``: the version of the package that reads it here, empty if that is this
    one; None where it is not installed, so that whichever has read it will do.
    """

    digest: str
    reader: str | None

    def read_by(self, reader: str) -> bool:
        """Whether what that package has made of the model serves here."""
        return self.reader is None or self.reader == reader


@frozen
class WantedPlan:
    """A plan of a graph of a model: ``wanted`` says of which, as canonical JSON."""

    model: Model
    wanted: str
    target: Target


@frozen
class MadePlan:
    """What is stored of a plan.  ``interface``: JSON, what callers must know of the model.  ``constants``: large ones.

    ``title``, ``steps``, ``contents``: as of the record ``Plan``.  ``kernels``: those that it runs.
    """

    interface: str
    title: str
    kernels: tuple[Wanted, ...]
    constants: tuple[bytes, ...]
    steps: str
    contents: bytes


class PlanCache(Access):
    """The cache of a process; safe from many threads."""

    def interface(self, model: Model) -> str | None:
        """What callers must know of a model, in JSON, if an earlier process has read it."""
        with self._forgiven():
            reader = self._reader()
            found = () if reader is None else reader.interfaces(model.digest, generator_version())
            return next((one.interface for one in found if model.read_by(one.reader)), None)
        return None

    def find(self, wanted: WantedPlan) -> Plan | None:
        """The plan, if there is one: for as many threads as there are, or, where the cache is only read, for others."""
        with self._forgiven():
            reader = self._reader()
            if reader is None:
                return None
            names = target_names(wanted.target)
            found = reader.plans(wanted.model.digest, wanted.wanted, *names, generator_version())
            own, serving = threads_of(wanted.target), [one for one in found if wanted.model.read_by(one[1])]
            chosen = [one for one in serving if one[2] == own] or ([] if self.keeps else serving)
            return reader.plan(chosen[0][0]) if chosen else None
        return None

    def constants(self, plan: Plan) -> tuple[bytes, ...] | None:
        """The large constants of a plan in order; None where one of them is not there any more."""
        with self._forgiven():
            names, reader = self._names(plan), self._reader()
            if reader is None:
                return None
            with reader.held() as held:
                found = [one.contents for name in names if (one := held.constant(name)) is not None]
            return tuple(found) if len(found) == len(names) else None
        return None

    def keep(self, wanted: WantedPlan, made: MadePlan) -> None:
        """Stores a plan; only reads in other modes.  What cannot be stored is a warning."""
        if not self.keeps or wanted.model.reader is None:
            return
        from tc.runtime.version import compiler_version

        try:
            compiler = compiler_version(wanted.target, self._settings)
        except DeviceError:  # no kernel could be named that would be found again
            return
        target, architecture = target_names(wanted.target)
        model, generator, constants = wanted.model, generator_version(), [Constant(one) for one in made.constants]
        plan = Plan(
            model=model.digest,
            wanted=wanted.wanted,
            target=target,
            architecture=architecture,
            threads=threads_of(wanted.target),
            generator=generator,
            reader=wanted.model.reader,
            title=made.title,
            kernels=json.dumps(sorted({kernel.ingredients(compiler).key for kernel in made.kernels})),
            constants=json.dumps([constant.identity for constant in constants]),
            steps=made.steps,
            contents=made.contents,
        )
        interface = ModelInterface(model.digest, generator, wanted.model.reader, made.interface)
        try:
            self._store.get(None, self._open_store).add_plan(interface, constants, plan)
            self._limit()
        except CacheError as error:
            self._say_once("keep", f"a plan is not kept: {error}")

    @contextmanager
    def reading(self, what: str) -> Iterator[None]:
        """What goes wrong inside is the fault of a record that is whole, and yet none that was made here."""
        with self._forgiven():
            try:
                yield
            except (ValueError, LookupError, TypeError, ArithmeticError, RecursionError, TCError) as error:
                if isinstance(error, CacheError):
                    raise
                raise self._damaged(f"{what} ({error})") from error

    def _names(self, plan: Plan) -> Sequence[str]:
        try:
            found = json.loads(plan.constants)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
            raise self._damaged(f"a plan of {plan.title}")
        return found


@functools.cache
def plan_cache(settings: Environment) -> PlanCache | None:
    """The cache of a process with this environment; None if there is none."""
    kernels = kernel_cache(settings)
    return None if kernels is None else PlanCache.beside(kernels)
