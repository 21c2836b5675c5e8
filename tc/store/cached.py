"""The cache as comprehensions use it: which kernel is wanted, what is found, and what is kept."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

from tc.artifact.definition import Definition, definitions_from_json
from tc.artifact.executable import Executable
from tc.artifact.packing import assemble, options_text
from tc.base.counted import counted
from tc.base.digest import hash_much
from tc.base.environment import Environment
from tc.base.errors import CacheError, DeviceError
from tc.base.frozen import frozen
from tc.base.generator import generator_version
from tc.cache.content.configured import Mode, configured
from tc.cache.format.ingredients import Ingredients
from tc.cache.format.records import LibraryTrial, Variant, text_key
from tc.store.access import Access
from tc.store.wanted import Wanted, target_names, threads_of
from tc.targets.default_options import default_options
from tc.targets.numerics import Numerics
from tc.targets.target import Target

if TYPE_CHECKING:
    from tc.cache.content.lookup import Reader
    from tc.language.program.program import Program
    from tc.targets.target import Target

# More kernels are hashed in less time by a library that takes a while to load.
_FEW: Final = 10

_Parse: TypeAlias = "Callable[[], Mapping[str, Program]]"


@frozen
class _Here:
    """What there is for a target here: the threads of a call, and the compilers of which kernels may serve."""

    threads: int
    compilers: tuple[str, ...]


class KernelCache(Access):
    """The cache of a process; safe from many threads."""

    def definitions(self, text: str, parse: _Parse) -> Mapping[str, Definition] | None:
        """What a text means, if an earlier process has parsed it."""
        with self._forgiven():
            reader = self._reader()
            found = None if reader is None else reader.text(text_key(text, generator_version()))
            if found is not None:
                try:
                    return definitions_from_json(found.definitions, text, parse)
                except ValueError as error:
                    raise self._damaged(f"the definitions of a text ({error})") from error
        return None

    def was_searched(self, wanted: Wanted, covers: Callable[[str], bool]) -> bool:
        """Whether a search for the kernel has ended that went far enough, or none may begin, because the cache is only
        read.  ``covers``: whether a search with such settings, in JSON, did; one that is known by its winner alone did.
        """
        if self._configuration.mode is not Mode.STORE:
            return True
        with self._forgiven():
            reader = self._reader()
            if reader is not None:
                return any(
                    run is None or covers(run.settings)
                    for serving in self._serving(reader, wanted)
                    for ingredients in self._candidates(reader, serving)
                    for run in reader.ended_runs(ingredients.key, wanted.machine, wanted.threads)
                )
        return False

    def find(self, wanted: Wanted) -> Executable | None:
        """The kernel, checked to be what is wanted; None where it is to be compiled.

        CacheError where it is missing and must not be compiled, saying how the nearest entry differs.
        """
        with self._forgiven():
            reader = self._reader()
            found = None if reader is None else self._variant(reader, wanted, self._here(reader, wanted.target))
            if found is not None:
                return self._executable(*found)
        match self._configuration.mode:
            case Mode.STRICT:
                raise CacheError(f"{self._miss(wanted)}\ncompile or tune it elsewhere, and ship the file again")
            case Mode.WARN:
                text = f"{self._miss(wanted)}\nit is compiled with default options, as others that are missing"
                self._say_once("miss", text)
        return None

    def times(self, several: Sequence[Wanted]) -> list[Mapping[tuple[str, int], tuple[float, float]]]:
        """Of each kernel, by machine and number of threads, the seconds of a call of the best one, and of the one with
        the default options, as far as that was measured.
        """
        with self._forgiven():
            reader = self._reader()
            if reader is not None:
                compilers = {
                    target: self._compilers(reader, target) for target in {wanted.target for wanted in several}
                }
                keys = [[wanted.ingredients(one).key for one in compilers[wanted.target]] for wanted in several]
                defaults = (options_text(default_options(wanted.target, wanted.numerics)) for wanted in several)
                known = {key: default for own, default in zip(keys, defaults, strict=True) for key in own}
                found = reader.times(known)
                return [next((found[key] for key in own if found[key]), {}) for own in keys]
        return [{} for _ in several]

    def measured_shapes(self, target: Target) -> frozenset[str]:
        """``shapes_text`` of the kernels for a target that were measured."""
        with self._forgiven():
            reader = self._reader()
            if reader is not None:
                return reader.measured_shapes(*target_names(target), generator_version())
        return frozenset()

    def found_together(self, wanted: Sequence[Wanted]) -> list[Executable] | None:
        """Several kernels, each as ``find`` has it; None where one of them is missing, which is no error."""
        with self._forgiven():
            reader = self._reader()
            if reader is None:
                return None
            found = []
            if len(wanted) > _FEW:
                hash_much()
            with reader.held() as held:
                # To ask takes as long as to look for a kernel.
                here = {target: self._here(held, target) for target in {one.target for one in wanted}}
                for one in wanted:
                    variant = self._variant(held, one, here[one.target])
                    if variant is None:
                        return None
                    found.append(self._executable(*variant))
            return found
        return None

    def expect(self) -> None:
        """Opens the cache for what is going to be kept, since that takes a while; ``keep`` says what is wrong."""
        if self.keeps:
            with suppress(CacheError):
                self._store.get(None, self._open_store)

    def keep(self, wanted: Wanted, siblings: Mapping[str, Definition], executable: Executable) -> None:
        """Stores a kernel that was compiled, and what a process needs that has no compiler; only reads in other modes.

        ``siblings``: all definitions of the text that it comes from.  What cannot be stored is a warning.
        """
        if self._configuration.mode is not Mode.STORE:
            return
        from tc.store.deposit import deposit

        try:
            store = self._store.get(None, self._open_store)
            deposit(store, wanted, siblings, executable, self._settings, made="compiled when it was called")
            self._limit()
        except CacheError as error:
            self._say_once("keep", f"a kernel is not kept: {error}")

    @property
    def keeps(self) -> bool:
        """Whether what is missing is made and stored; otherwise the cache is only read."""
        return self._configuration.mode is Mode.STORE

    def library_trial(self, work: str, machine: str, threads: int, library: str, generator: str) -> LibraryTrial | None:
        """How long a library takes for some work, if that was measured."""
        with self._forgiven():
            reader = self._reader()
            return None if reader is None else reader.library_trial(work, machine, threads, library, generator)
        return None

    def keep_library_trial(self, trial: LibraryTrial, *, replace: bool = False) -> None:
        """Stores how long a library takes; only reads in other modes.  What cannot be stored is a warning.

        ``replace``: in the place of an earlier trial.
        """
        if not self.keeps:
            return
        try:
            self._store.get(None, self._open_store).add_library_trial(trial, replace=replace)
        except CacheError as error:
            self._say_once("keep", f"the trial of a library is not kept: {error}")

    def explain(self, wanted: Wanted) -> str:
        """What ``find`` would do, and why, as text."""
        place = f"{self._place} ({self._configuration.mode.value})"
        try:
            reader = self._reader()
            found = None if reader is None else self._variant(reader, wanted, self._here(reader, wanted.target))
        except CacheError as error:
            return f"{place}\n{error}"
        if found is None:
            return f"{place}\n{self._miss(wanted)}"
        variant, _ = found
        threads = counted(variant.threads, "thread")
        return f"{place}\nfound: options {variant.options}, made for {threads}\n{variant.proof}\n{variant.origin}"

    def _here(self, reader: Reader, target: Target) -> _Here:
        return _Here(threads_of(target), self._compilers(reader, target))

    def _variant(self, reader: Reader, wanted: Wanted, here: _Here) -> tuple[Variant, Wanted] | None:
        """The variant, and what it was made for: the very kernel, or one that serves it with symbolic sizes."""
        # Kernels are compiled for as many threads as there are; where they are only read, others do, too.
        needed = here.threads if self.keeps else None
        for serving in self._serving(reader, wanted):
            for ingredients in map(serving.ingredients, here.compilers):
                if wanted.options is not None:
                    found = reader.variant(ingredients.key, options_text(wanted.options), needed)
                else:
                    default = _default_text(wanted.target, wanted.numerics)
                    found = reader.best(ingredients.key, wanted.machine, here.threads, default, needed)
                if found is not None:
                    return found, serving
        return None

    def _serving(self, reader: Reader, wanted: Wanted) -> Iterator[Wanted]:
        """The kernel itself, then those with symbolic sizes, the smallest ones first."""
        yield wanted
        if wanted.signature.symbolic:
            return
        own = wanted.ingredients("any")
        try:
            opened = [wanted.opened(symbolic) for symbolic in reader.symbolic(own.program_hash, own.symbolic)]
        except ValueError as error:
            raise self._damaged(f"a kernel of {wanted.definition.interface.name} ({error})") from error
        found = [serving for serving in opened if serving is not None]
        yield from sorted(found, key=lambda serving: serving.signature.reach)

    def _candidates(self, reader: Reader, wanted: Wanted) -> Iterator[Ingredients]:
        """What may serve: kernels of the compilers that may be asked for."""
        return map(wanted.ingredients, self._compilers(reader, wanted.target))

    def _compilers(self, reader: Reader, target: Target) -> tuple[str, ...]:
        """The compiler that is here, or where none is asked, those in the cache."""
        if self._configuration.mode is Mode.STORE:
            from tc.runtime.version import compiler_version

            with suppress(DeviceError):  # what was compiled elsewhere still runs
                return (compiler_version(target, self._settings),)
        return reader.compilers(*target_names(target))

    def _executable(self, variant: Variant, wanted: Wanted) -> Executable:
        what = f"the kernel {variant.kernel[:12]}"
        try:
            found = assemble(variant.executable, variant.options, variant.source, variant.binary)
        except ValueError as error:
            raise self._damaged(f"{what} ({error})") from error
        interface = wanted.definition.interface
        if found.convention.interface.anonymous() != interface.anonymous():
            raise self._damaged(f"{what} (it has other arguments)")
        renamed = found.renamed(interface)
        if renamed.convention.signature != wanted.signature or found.target != wanted.target:
            raise self._damaged(f"{what} (it is made for something else)")
        return renamed

    def _miss(self, wanted: Wanted) -> str:
        text = f"{self._place} has no kernel for {wanted}"
        if wanted.options is not None:
            text += f" with options {options_text(wanted.options)}"
        reader = self._reader()
        if reader is None:
            return text
        ingredients = next(self._candidates(reader, wanted), wanted.ingredients("any"))
        nearest = reader.nearest(ingredients)
        if nearest is None:
            return f"{text}; it is empty"
        _, differences = nearest
        if not differences:
            return f"{text}; it has the kernel with other options, or for another number of threads"
        lines = [f"    {field:12} wanted {ours}\n{'':12}     there {theirs}" for field, ours, theirs in differences]
        return "\n".join((f"{text}; the nearest entry differs in", *lines))


@functools.lru_cache(maxsize=16)
def _default_text(target: Target, numerics: Numerics) -> str:
    return options_text(default_options(target, numerics))


@functools.cache
def kernel_cache(settings: Environment) -> KernelCache | None:
    """The cache of a process with this environment; None if there is none."""
    configuration = configured(settings)
    return None if configuration is None else KernelCache(configuration, settings)
