"""All that a cache has of one kernel, and what of it a call on this machine would run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from tc.artifact.definition import definitions_from_json
from tc.artifact.packing import options_text
from tc.base.errors import CacheError
from tc.base.frozen import frozen
from tc.cache.content.choice import latest, winner_of
from tc.cache.content.contents import Contents
from tc.cache.format.database_errors import damaged
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Measurement, Variant
from tc.cache.format.rows import record_of
from tc.cache.format.tables import MEASUREMENTS, TEXTS, VARIANTS, Kept, Table, where
from tc.runtime.host.threads import available_threads
from tc.store.measured_machine import measured_machine
from tc.targets.default_options import default_options_of
from tc.targets.numerics import Numerics
from tc.targets.options import Options

SHORT: Final = 12
"""Digits of a key that people see."""

_SHOWN: Final = 3


@frozen
class KernelSummary:
    """``stored``: when the kernel came.  ``name``: what texts in the cache call it, empty if none does.
    ``measurements``: the last of each variant and machine, which alone count.
    """

    ingredients: Ingredients
    stored: str
    name: str
    variants: tuple[Variant, ...]
    measurements: tuple[Measurement, ...]

    @property
    def deciding(self) -> Measurement | None:
        """``deciding`` of the measurements."""
        return deciding(self.measurements, self.ingredients.target)

    @property
    def _default(self) -> Options:
        numerics = self.ingredients.numerics
        return default_options_of(self.ingredients.target, Numerics.from_json(numerics) if numerics else None)

    @property
    def chosen(self) -> Variant | None:
        """The variant that wins; where none was measured, that with the default options, if there is one."""
        decision, default = self.deciding, options_text(self._default)
        if decision is not None:
            return next(variant for variant in self.variants if variant.identity == decision.variant)
        defaults = (variant for variant in self.variants if variant.options == default)
        return min(defaults, key=lambda variant: variant.threads, default=None)


def deciding(measurements: Iterable[Measurement], target: str) -> Measurement | None:
    """The measurement of one kernel for which a call on this machine would run its variant; None without any."""
    counting = latest(measurements)
    machine, threads = measured_machine(gpu=target == "cuda"), available_threads() if target == "cpu" else 1
    winner = winner_of(counting, machine, threads)
    own = [one for one in counting if one.variant == winner]
    return min(own, key=lambda one: (one.machine != machine, one.threads != threads, one.seconds), default=None)


def names_of(contents: Contents) -> Mapping[str, str]:
    """By canonical text, what the texts in the cache call a definition."""
    names: dict[str, set[str]] = {}
    for text, _ in contents.records(TEXTS):
        try:
            definitions = definitions_from_json(text.definitions, "", dict)
        except (ValueError, RecursionError):  # names are for people: a kernel without one has its program
            continue
        for definition in definitions.values():
            names.setdefault(definition.canonical, set()).add(definition.interface.name)
    return {canonical: ", ".join(sorted(known)) for canonical, known in names.items()}


def summaries(contents: Contents) -> Iterator[KernelSummary]:
    """Those of all kernels, in the order of their keys."""
    names = names_of(contents)
    for ingredients, stored in contents.kernels():
        yield _summary(contents, ingredients, stored, names)


def find_summary(contents: Contents, prefix: str) -> KernelSummary:
    """That of the one kernel whose key begins so; CacheError if there is none, or several."""
    found = [kernel for kernel in contents.kernels() if kernel[0].key.startswith(prefix.lower())]
    if not found:
        raise CacheError(f"{contents.place} has no kernel whose key begins with {prefix!r}; see `tc-cache list`")
    if len(found) > 1:
        keys = ", ".join(ingredients.key[: max(SHORT, len(prefix) + 4)] for ingredients, _ in found[:_SHOWN])
        more = ", ..." if len(found) > _SHOWN else ""
        raise CacheError(f"{len(found)} kernels have keys that begin with {prefix!r}: {keys}{more}; give more digits")
    (kernel,) = found
    return _summary(contents, *kernel, names_of(contents))


def _summary(contents: Contents, ingredients: Ingredients, stored: str, names: Mapping[str, str]) -> KernelSummary:
    variants = _of_kernel(contents, VARIANTS, ingredients.key)
    measurements = latest(_of_kernel(contents, MEASUREMENTS, ingredients.key))
    identities = {variant.identity for variant in variants}
    if any(one.variant not in identities for one in measurements):
        raise damaged(contents.place, f"kernel {ingredients.key}", "a variant that was measured is missing")
    return KernelSummary(ingredients, stored, names.get(ingredients.definition, ""), variants, measurements)


def _of_kernel(contents: Contents, table: Table[Kept], key: str) -> tuple[Kept, ...]:
    rows = contents.session.rows(where(table, "kernel"), kernel=key)
    return tuple(record_of(table, row, contents.key, contents.place) for row in rows)
