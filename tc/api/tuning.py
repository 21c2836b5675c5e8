"""Tuning from Python: arguments of a call become a search, and its winner serves the next calls."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from tc.artifact.definition import Definition
from tc.base.environment import Environment
from tc.base.errors import ArgumentError, CacheError, OptionsError
from tc.base.frozen import frozen
from tc.cache.content.configured import Configuration, Mode, claim, configured, read_key
from tc.cache.content.store import Store
from tc.dispatch.arguments import bind, bind_specs
from tc.language.program.specialization import ArraySpec, Signature
from tc.runtime.frameworks.borrow import borrow
from tc.runtime.host.scratch import scratch_folder
from tc.runtime.host.threads import available_threads
from tc.runtime.views.scalars import convert_scalar
from tc.targets.numerics import Numerics
from tc.targets.options import Options
from tc.targets.target import Target
from tc.tuner.cluster.dask_workers import dask_workers
from tc.tuner.session.console import console
from tc.tuner.session.control import Control
from tc.tuner.session.effort import DEFAULT, effort_of
from tc.tuner.session.progress_events import silence
from tc.tuner.session.search_setup import (
    Machines,
    WorkerFactory,
    device_workers,
    local_workers,
    require_devices,
    tuning,
)
from tc.tuner.session.settings import Numerics as Bits
from tc.tuner.session.settings import Strategy, TuningResult, TuningSettings
from tc.tuner.session.status_line import StatusLine
from tc.tuner.session.subject import Subject
from tc.tuner.space.preferences import Constraint, Objective, Preferences
from tc.tuner.space.starts import given_starts, numerics_of
from tc.tuner.trial.budget import Budget

Chosen = TypeVar("Chosen", Strategy, Bits)


def subject_of(definition: Definition, siblings: Mapping[str, Definition], arguments: Sequence[object]) -> Subject:
    """The subject for arguments of a call: arrays, which are tuned on, or specs and shapes; scalars by value.

    ArgumentError if they do not fit.
    """
    interface = definition.interface
    if any(isinstance(value, ArraySpec | tuple) for value in arguments):
        scalars = {
            scalar.name: convert_scalar(value, scalar.type, f"argument {scalar.name} of {interface.name}")
            for scalar in interface.scalars
            for name, value in zip(interface.arguments, arguments, strict=False)
            if name == scalar.name
        }
        return Subject(definition, siblings, bind_specs(interface, arguments), scalars)
    if any(tensor.in_out for tensor in interface.tensors):
        raise ArgumentError(f"{interface.name} is tuned on arrays of its own, because it changes them; pass shapes")
    bound = bind(interface, arguments, None)
    arrays = {name: borrow(view) for name, view in bound.inputs.items()}
    return Subject(definition, siblings, bound.signature(interface), dict(bound.scalars), arrays)


@frozen
class TuningRequest:
    """How to tune, as ``Comprehension.tune``, ``tc-tune`` and its files of jobs take it.

    ``reproducers``: see ``TuningSettings``.
    """

    budget: str | Budget | None = None
    cache: str | Path | None = None
    seed: int | None = None
    progress: bool = True
    jobs: int | None = None
    strategy: str = Strategy.COMBINED.value
    numerics: str = Bits.ANY.value
    workers: str | None = None
    devices: tuple[int, ...] = ()
    start: Options | Sequence[Options] | None = None
    objective: Objective | None = None
    constraint: Constraint | None = None
    effort: str = DEFAULT.name
    reproducers: Path | None = None

    @property
    def settings(self) -> TuningSettings:
        """The same, checked; OptionsError for what is not known."""
        effort = effort_of(self.effort)
        budget = effort.budget if self.budget is None else self.budget
        return TuningSettings(
            budget=Budget.parse(budget) if isinstance(budget, str) else budget,
            effort=effort,
            seconds=effort.seconds,
            preferences=Preferences(self.objective, self.constraint),
            seed=secrets.randbits(32) if self.seed is None else self.seed,
            strategy=choice(Strategy, self.strategy, "strategy"),
            numerics=choice(Bits, self.numerics, "numerics"),
            jobs=available_threads() if self.jobs is None else _counted_jobs(self.jobs),
            starts=given_starts(self.start),
            reproducers=self.reproducers,
        )


def _counted_jobs(jobs: int) -> int:
    if not isinstance(jobs, int) or isinstance(jobs, bool) or jobs < 1:
        raise OptionsError(f"jobs must be a number of compilations at a time, at least 1, got {jobs!r}")
    return jobs


def tune(subject: Subject, target: Target, environment: Environment, request: TuningRequest) -> TuningResult:
    """``Comprehension.tune``; the cache is the named one, else that of the environment, else none that stays."""
    settings = request.settings
    machines = Machines(workers_for(request.devices, request.workers, target), first_device(request.devices))
    status = StatusLine()
    listen = console(status.say, status.show) if request.progress else silence
    with scratch_folder("tc-tune-") as folder:
        store = open_store(request.cache, environment, folder)
        with tuning(subject, target, store, settings, environment, machines, Control(listen)) as search:
            try:
                return search.run()
            finally:
                status.clear()


def subject_for(definition: Definition, siblings: Mapping[str, Definition], signature: Signature) -> Subject:
    """The subject for a signature, on random arrays."""
    structural = dict(signature.scalars)
    scalars = {scalar.name: structural.get(scalar.name, 1) for scalar in definition.interface.scalars}
    return Subject(definition, siblings, signature, scalars)


def require_own_numerics(start: Options | Sequence[Options] | None, own: Numerics) -> None:
    """OptionsError for options to start from that have others than calls without options, which a winner serves."""
    found = numerics_of(given_starts(start), own)
    if found != own:
        raise OptionsError(
            f"start has {found}, and calls without options have {own}; give these to tc.define as options, or leave "
            "numerics out of start"
        )


def device_numbers(devices: Sequence[int] | None) -> tuple[int, ...]:
    """Numbers of GPUs, in their order; none where they are not given.  OptionsError for what is no list of them."""
    if devices is None:
        return ()
    found = tuple(devices) if isinstance(devices, Sequence) and not isinstance(devices, str) else ()
    numbers = tuple(d for d in found if isinstance(d, int) and not isinstance(d, bool) and d >= 0)
    if not found or len(numbers) < len(found):
        raise OptionsError(f"devices are a list of numbers of GPUs, such as [0, 1], got {devices!r}")
    if len(set(numbers)) < len(numbers):
        raise OptionsError(f"each device measures for itself; name it once, got {devices!r}")
    return numbers


def first_device(devices: Sequence[int]) -> int:
    """The number of the GPU that stands for all of them."""
    return devices[0] if devices else 0


def workers_for(devices: Sequence[int], workers: str | None, target: Target) -> WorkerFactory:
    """Who compiles and measures: processes on this machine, or those of the cluster ``dask://host:port``.

    ``devices``: GPUs of this machine that measure; none stands for the first one, where the target is one.
    OptionsError for another address, without Dask, or for devices beside a cluster; DeviceError if the cluster does
    not answer, or a device is not there; see ``require_devices``.
    """
    if workers is not None:
        if devices:
            raise OptionsError(
                "devices are those of this machine, and workers of a cluster have their own; leave one out"
            )
        return dask_workers(workers)
    if not devices:
        return local_workers
    require_devices(devices, target)
    return device_workers(devices)


def open_store(cache: str | Path | None, environment: Environment, otherwise: Path) -> Store:
    """``written_to``, opened."""
    configuration = written_to(cache, environment, otherwise)
    return Store.open(configuration.where, key=configuration.key)


def written_to(cache: str | Path | None, environment: Environment, otherwise: Path) -> Configuration:
    """The cache that is written to; a new one in the folder ``otherwise`` where the environment has none.

    CacheError where the environment's cache is only read.
    """
    if cache is not None:
        return Configuration(str(cache), Mode.STORE, read_key(environment.cache_key), own=False)
    configuration = configured(environment)
    if configuration is None:
        return Configuration(str(otherwise / "kernels.db"), Mode.STORE, None, own=False)
    if configuration.mode is not Mode.STORE:
        raise CacheError(
            f"TC_CACHE_MODE={configuration.mode.value} never tunes; name another cache for what is found, or unset it"
        )
    claim(configuration)
    return configuration


def choice(kind: type[Chosen], name: str, what: str) -> Chosen:
    """The member with this value; OptionsError for any other."""
    for member in kind:
        if member.value == name:
            return member
    raise OptionsError(f"{what} must be one of {', '.join(member.value for member in kind)}, got {name!r}")
