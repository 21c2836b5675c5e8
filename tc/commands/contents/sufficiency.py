"""Whether a process without a compiler finds all that it needs in a cache."""

from __future__ import annotations

import json
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping

from tc.artifact.packing import has_injected_source
from tc.base.errors import TCError
from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.cache.content.contents import Contents
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import Variant
from tc.cache.format.tables import NATIVES as NATIVES_TABLE
from tc.cache.format.tables import TEXTS, VARIANTS
from tc.cache.format.texts import programs_of
from tc.commands.contents.listing import kernel_line
from tc.runtime.host.native import NATIVES, native_source
from tc.store.deposit import TEXT
from tc.targets.target import CpuTarget, EmulatorTarget, parse_target, processor


@frozen
class _Helpers:
    """The compiled parts of our runtime that a cache has: by machine, the names, each with the hash of its source."""

    found: Mapping[str, frozenset[tuple[str, str]]]

    def missing(self, kernel: Ingredients, machine: str) -> tuple[str, ...]:
        """The names of those that a kernel needs on a machine, and that are not there."""
        found = self.found.get(machine, frozenset())
        if kernel.generator == generator_version():
            return tuple(name for name in NATIVES if (name, native_source(name).digest) not in found)
        # What another version of tc needs, only that one knows.
        return () if found else NATIVES


def unproven(contents: Contents) -> Iterator[str]:
    """A note for every winner with an injected source; that is no fault."""
    kernels = {ingredients.key: ingredients for ingredients, _ in contents.kernels()}
    chosen_variants = {key: frozenset(places.values()) for key, places in contents.chosen_variants().items()}
    for variant, _ in contents.records(VARIANTS):
        if variant.identity in chosen_variants.get(variant.kernel, ()) and has_injected_source(variant.options):
            yield f"note: kernel {kernel_line(kernels[variant.kernel])} is {variant.proof}"


def missing(contents: Contents) -> tuple[str, ...]:
    """What production needs of a cache and does not find there, each with what to do; CacheError for damage.

    Production calls what ``cache.ship`` ships: the winners, and what was never measured.
    """
    return tuple(dict.fromkeys(_missing(contents)))


def _missing(contents: Contents) -> Iterator[str]:
    kernels = {ingredients.key: ingredients for ingredients, _ in contents.kernels()}
    chosen_variants = {key: frozenset(places.values()) for key, places in contents.chosen_variants().items()}
    programs = frozenset(program for text, _ in contents.records(TEXTS) for program in programs_of(text.definitions))
    helpers = _helpers(contents)
    found = set()
    for variant, _ in contents.records(VARIANTS):
        winners = chosen_variants.get(variant.kernel)
        wins = winners is not None and variant.identity in winners
        found.add(variant.identity)
        if wins or winners is None:
            yield from _of_variant(contents.place, variant, kernels[variant.kernel], programs, helpers, wins=wins)
    for key, winners in chosen_variants.items():
        if winners - found:
            yield _complaint(contents.place, kernels[key], "the winner", _TUNE)


def _of_variant(
    place: str, variant: Variant, kernel: Ingredients, programs: frozenset[str], helpers: _Helpers, *, wins: bool
) -> Iterator[str]:
    if not variant.binary:
        yield _complaint(place, kernel, f"the binary of its {'winner' if wins else 'variant'}", _TUNE)
    if kernel.definition not in programs and _stands_in_a_text(variant):
        yield _complaint(place, kernel, "the text in which it stands", _CALL)
    machine = _machine(kernel)
    # What was compiled for another kind of machine, and never ran there, has no helpers yet.
    if wins or machine is None or machine == processor().machine:
        for name in _least(helpers, kernel, machine):
            on = f" for {machine}" if machine is not None else ""
            yield (
                f"{place} is not self-sufficient: production would need a C compiler, because it has no compiled "
                f"{name}{on}; {_CALL.format(file=shlex.quote(place))}"
            )


_CALL = (
    "call the kernel where there is a compiler with TC_CACHE=new.db, which must be a new file, and run "
    "`tc-cache merge {file} new.db`"
)
_TUNE = "tune it again with `tc-tune`, or restore the file from a copy"


def _complaint(place: str, kernel: Ingredients, what: str, remedy: str) -> str:
    return (
        f"{place} is not self-sufficient: {what} is missing for kernel {kernel_line(kernel)}; "
        f"{remedy.format(file=shlex.quote(place))}"
    )


def _stands_in_a_text(variant: Variant) -> bool:
    """Whether the kernel was written as text, not built in Python; earlier releases did not say."""
    try:
        origin = json.loads(variant.origin)
    except (ValueError, RecursionError):
        return True
    return not isinstance(origin, dict) or origin.get(TEXT, "") is not None


def _helpers(contents: Contents) -> _Helpers:
    found: dict[str, set[tuple[str, str]]] = defaultdict(set)
    for native, _ in contents.records(NATIVES_TABLE):
        if native.binary:
            found[native.machine].add((native.name, native.source))
    return _Helpers({machine: frozenset(names) for machine, names in found.items()})


def _least(helpers: _Helpers, kernel: Ingredients, machine: str | None) -> tuple[str, ...]:
    """What is missing; for a kernel that does not depend on the processor, on the machine where the least is."""
    machines = (*helpers.found, processor().machine) if machine is None else (machine,)
    return min((helpers.missing(kernel, one) for one in machines), key=len)


def _machine(kernel: Ingredients) -> str | None:
    """The kind of processor on which a kernel runs; None if that is a device, or unknown."""
    name = f"{kernel.target}:{kernel.architecture}" if kernel.target == "cpu" else kernel.architecture
    if kernel.target not in ("cpu", "emulator"):
        return None
    try:
        target = parse_target(name)
    except TCError:
        return None
    match target:
        case CpuTarget():
            return target.machine
        case EmulatorTarget(host):
            return host.machine
        case _:
            return None
