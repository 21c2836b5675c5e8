"""``Kernels``: the kernels of one definition, each found in the cache, tuned or compiled when it is first needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tc.artifact.definition import Definition
from tc.base.environment import environment
from tc.base.errors import ArgumentError, OptionsError
from tc.base.once import Once
from tc.targets.default_options import default_options
from tc.targets.numerics import Numerics
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.target import CpuTarget, Target
from tc.targets.usual_options import Usual, usual_for

if TYPE_CHECKING:
    from tc.artifact.executable import Executable
    from tc.dispatch.kernel import Kernel
    from tc.language.program.specialization import Signature, Specialization
    from tc.polyhedral.pipeline import Prepared
    from tc.store.cached import KernelCache
    from tc.store.wanted import Wanted
    from tc.tuner.trial.budget import Budget


class Kernels:
    """Kernels by signature, options and target; options None stand for the best ones that are known.

    ``siblings``: all definitions of the text.  ``tune``: how long to search for options where no search was made yet;
    None does not.  ``usual``: what stands for options None until a search has found better ones.  Safe from many
    threads, each kernel is made once.
    """

    def __init__(
        self,
        definition: Definition,
        siblings: Mapping[str, Definition],
        tune: str | Budget | None = None,
        usual: Usual = (),
    ) -> None:
        self._definition: Final = definition
        self._siblings: Final = siblings
        self._tune: Final = tune
        self._usual: Final = usual
        self._made: Final[Once[tuple[Signature, Options | None, Target], Kernel]] = Once()
        # Most calls have the signature of the one before.
        self._specialized: tuple[Signature, Specialization] | None = None
        # Those with symbolic sizes, which serve calls with other signatures.
        self._open: Final[dict[tuple[Signature, Options | None, Target], Kernel]] = {}

    def get(
        self, signature: Signature, target: Target, options: Options | None, prepared: Prepared | None = None
    ) -> Kernel:
        """The kernel.  ``prepared``: the specialized program, for one of many candidates, which are not kept."""
        kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
        if options is not None and not isinstance(options, kind):
            raise OptionsError(f"options must be tc.{kind.__name__} for target {str(target)!r}, got {options!r}")

        def make() -> Kernel:
            found, chosen = None, self._chosen(target, options)
            if prepared is None:
                # What a search has found in this process goes before the options of the text.
                found = self._serving(signature, target, options) if chosen is not options else None
                found = found or self._found(signature, target, chosen)
                found = found or self._serving(signature, target, options) or self._tuned(signature, target, chosen)
            if found is None:
                chosen = default_options(target, self.numerics(target)) if chosen is None else chosen
                found = self.compile(signature, target, chosen, prepared)
            return self._noted(found, target, options)

        return self._made.get((signature, options, target), make)

    def has(self, signature: Signature, target: Target) -> bool:
        """Whether the best kernel is there without being compiled: in this process, or in the cache."""
        if (signature, None, target) in self._made:
            return True
        found = self._tune is not None or self._found(signature, target, self._chosen(target, None))
        if not isinstance(found, bool) and found is not None:
            self._made.put((signature, None, target), self._noted(found, target, None))
        return bool(found)

    def built(self, signature: Signature, target: Target) -> Executable:
        """The kernel with the usual options as data, compiled now; neither kept nor written to the cache."""
        from tc.compiler import build

        options = self._usual_options(target)
        program = self.specialize(signature)
        return build(program, self._definition.interface, options, target, environment()).executable

    def adopt(self, signature: Signature, target: Target, executable: Executable) -> None:
        """From now on, what ``built`` has made elsewhere is the best kernel; it goes into the cache."""
        from tc.dispatch.kernel import Kernel

        options = self._usual_options(target)
        if (cache := process_cache()) is not None:
            cache.keep(self._wanted(signature, target, options), self._siblings, executable)
        self._made.put((signature, None, target), self._noted(Kernel(executable), target, None))

    def _chosen(self, target: Target, options: Options | None) -> Options | None:
        """The options of a call, or those of the text: where these have only numerics, the best ones with such."""
        if options is not None:
            return options
        usual, numerics = usual_for(self._usual, target), self.numerics(target)
        only_numerics = numerics != Numerics() and usual == default_options(target, numerics)
        return None if only_numerics else usual

    def numerics(self, target: Target) -> Numerics:
        """Those of calls without options."""
        kind = CpuOptions if isinstance(target, CpuTarget) else GpuOptions
        return next((own.numerics for own in self._usual if isinstance(own, kind)), Numerics())

    def put(self, signature: Signature, target: Target, kernel: Kernel) -> None:
        """From now on, this is the best kernel, also for calls that others with symbolic sizes have served."""
        self._made.put((signature, None, target), self._noted(kernel, target, None))
        for (call, options, place), served in self._made.items():
            if served.signature.symbolic and not call.symbolic:
                self._made.put((call, options, place), self._serving(call, place, options) or served)

    def _noted(self, kernel: Kernel, target: Target, options: Options | None) -> Kernel:
        if kernel.signature.symbolic:
            self._open[kernel.signature, options, target] = kernel
        return kernel

    def _serving(self, signature: Signature, target: Target, options: Options | None) -> Kernel | None:
        """A kernel of this process that serves the signature with symbolic sizes, the one with the smallest."""
        found = [
            kernel
            for (opened, *other), kernel in tuple(self._open.items())
            if other == [options, target] and opened.sizes_of(signature) is not None
        ]
        return min(found, key=lambda kernel: kernel.signature.reach, default=None)

    def compile(
        self, signature: Signature, target: Target, options: Options, prepared: Prepared | None = None
    ) -> Kernel:
        """A kernel that is compiled now, whatever the cache has."""
        from tc.compiler import build
        from tc.dispatch.kernel import Kernel

        program = self.specialize(signature) if prepared is None else prepared
        cache = process_cache() if prepared is None else None
        meanwhile = None if cache is None else cache.expect
        built = build(program, self._definition.interface, options, target, environment(), meanwhile)
        kernel = Kernel(built.executable, built.stages, built.compilation)
        if (folder := environment().dump) is not None:
            from pathlib import Path

            from tc.api.dump import dump_stages

            dump_stages(built.compilation, kernel.stages, Path(folder))
        if cache is not None:
            cache.keep(self._wanted(signature, target, options), self._siblings, built.executable)
        return kernel

    def options(self, signature: Signature, target: Target) -> Options:
        """Those of the best kernel that is known, or else the usual ones."""
        if self.has(signature, target):
            return self.get(signature, target, None).asked
        return self._usual_options(target)

    def _usual_options(self, target: Target) -> Options:
        return self._chosen(target, None) or default_options(target, self.numerics(target))

    def decision(self, signature: Signature, target: Target, options: Options | None) -> str:
        """What the cache has for such a kernel, as text; empty without a cache."""
        cache = process_cache()
        return "" if cache is None else cache.explain(self._wanted(signature, target, self._chosen(target, options)))

    def refresh(self, signature: Signature, target: Target, cache: KernelCache) -> None:
        """From now on, what a cache has is the best kernel, if it has one."""
        from tc.dispatch.kernel import Kernel

        found = cache.find(self.wanted(signature, target))
        if found is not None:
            self.put(signature, target, Kernel(found))

    def wanted(self, signature: Signature, target: Target) -> Wanted:
        """What a cache is asked for: the best kernel."""
        return self._wanted(signature, target, self._chosen(target, None))

    def _found(self, signature: Signature, target: Target, options: Options | None) -> Kernel | None:
        """The kernel from the cache, unless its stages are to be seen, or it is to be tuned first."""
        from tc.dispatch.kernel import Kernel

        cache = process_cache()
        if cache is None or environment().dump is not None:
            return None
        wanted = self._wanted(signature, target, options)
        if self._tune is not None and options is None:
            from tc.tuner.session.covers import covers

            if not cache.was_searched(wanted, covers(self._tune)):
                return None
        executable = cache.find(wanted)
        if executable is None:
            return None
        # One that was tuned here may have gone to another cache.
        return self._open.get((executable.convention.signature, options, target)) or Kernel(executable)

    def _tuned(self, signature: Signature, target: Target, options: Options | None) -> Kernel | None:
        """The winner of a search, where one is wanted."""
        if self._tune is None or options is not None:
            return None
        from tc.api.tuning import TuningRequest, subject_for, tune
        from tc.dispatch.kernel import Kernel

        subject = subject_for(self._definition, self._siblings, signature)
        # The same seed goes on with a search that had less time.
        request = TuningRequest(self._tune, seed=0, progress=False)
        return Kernel(tune(subject, target, environment(), request).executable)

    def _wanted(self, signature: Signature, target: Target, options: Options | None) -> Wanted:
        from tc.store.wanted import Wanted

        return Wanted(self._definition, signature, target, options, numerics=self.numerics(target))

    def specialize(self, signature: Signature) -> Specialization:
        """The program for a signature; ArgumentError where an argument is overwritten before it is read."""
        latest = self._specialized
        if latest is None or latest[0] != signature:
            latest = self._specialized = signature, self._specialization(signature)
        return latest[1]

    def _specialization(self, signature: Signature) -> Specialization:
        from tc.language.lower.specialize import specialize
        from tc.polyhedral.schedule.aliasing import find_overwritten_read

        if signature.aliases:
            apart = specialize(self._definition.program, replace(signature, aliases=()))
            for output, input in signature.aliases:
                found = find_overwritten_read(apart, output, input)
                if found is not None:
                    raise ArgumentError(
                        f"{apart.program.name}: the output {output} cannot share the memory of the input {input}: "
                        f"{found}; pass a separate array"
                    )
        return specialize(self._definition.program, signature)


def process_cache() -> KernelCache | None:
    """The cache of this process; None if there is none."""
    from tc.store.cached import kernel_cache

    return kernel_cache(environment())
