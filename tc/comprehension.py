"""The public face: texts become definitions, definitions are called on arrays, kernels are made when first needed."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from tc.definition import Definition, Parsed
from tc.environment import environment
from tc.errors import ArgumentError, DeviceError, OptionsError, nearest
from tc.once import Once
from tc.options import CpuOptions, GpuOptions, Options
from tc.runtime.warm import WarmCalls
from tc.target import CpuTarget, Target, parse_target

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from tc.arguments import Arguments
    from tc.cached import KernelCache, Wanted
    from tc.kernel import Kernel
    from tc.language.program import Program
    from tc.language.specialization import Signature, Specialization
    from tc.polyhedral.pipeline import Prepared
    from tc.reference.evaluate import Result
    from tc.tuner.budget import Budget
    from tc.tuner.tune import TuningResult


class Definitions(Mapping[str, "Comprehension"]):
    """The definitions of one text: ``defs.mm``, ``defs["mm"]``, ``list(defs)``, ``len(defs)``.

    When it holds one definition it can be called, compiled and explained itself.  Definitions that are called like a
    method of this class are reached by item.
    """

    def __init__(self, definitions: Mapping[str, Definition]) -> None:
        self._comprehensions = {name: Comprehension(found, definitions) for name, found in definitions.items()}
        self._only = next(iter(self._comprehensions.values())) if len(definitions) == 1 else None

    def __getitem__(self, name: str) -> Comprehension:
        return self._comprehensions[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._comprehensions)

    def __len__(self) -> int:
        return len(self._comprehensions)

    def __getattr__(self, name: str) -> Comprehension:
        found = self.__dict__.get("_comprehensions", {})
        if name in found:
            comprehension: Comprehension = found[name]
            return comprehension
        guess = nearest(name, found)
        hint = f"; did you mean {guess!r}?" if guess else f"; defined: {', '.join(found)}"
        raise AttributeError(f"no definition is called {name!r}{hint}")

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._comprehensions]

    def __repr__(self) -> str:
        return f"<tc.Definitions {', '.join(self)}>"

    def single(self) -> Comprehension:
        """The only definition; TypeError if there are several."""
        if self._only is None:
            raise TypeError(
                f"the text defines {', '.join(self)}; call one of them, for example defs.{next(iter(self))}"
            )
        return self._only

    def __call__(
        self,
        *arguments: object,
        out: object = None,
        target: str | None = None,
        options: Options | None = None,
    ) -> object:
        return self.single()(*arguments, out=out, target=target, options=options)

    def compile(self, *arguments: object, target: str | None = None, options: Options | None = None) -> Kernel:
        """``Comprehension.compile`` of the only definition."""
        return self.single().compile(*arguments, target=target, options=options)

    def tune(
        self,
        *arguments: object,
        target: str | None = None,
        budget: str | Budget = "10m",
        cache: str | Path | None = None,
        seed: int | None = None,
        progress: bool = True,
        jobs: int | None = None,
        strategy: str = "combined",
        numerics: str = "any",
    ) -> TuningResult:
        """``Comprehension.tune`` of the only definition."""
        return self.single().tune(
            *arguments,
            target=target,
            budget=budget,
            cache=cache,
            seed=seed,
            progress=progress,
            jobs=jobs,
            strategy=strategy,
            numerics=numerics,
        )

    def output_shapes(self, *arguments: object) -> dict[str, tuple[int, ...]]:
        """``Comprehension.output_shapes`` of the only definition."""
        return self.single().output_shapes(*arguments)

    def reference(self, *arguments: object, out: object = None) -> np.ndarray | tuple[np.ndarray, ...]:
        """``Comprehension.reference`` of the only definition."""
        return self.single().reference(*arguments, out=out)

    def explain(self, *arguments: object, target: str | None = None, options: Options | None = None) -> str:
        """``Comprehension.explain`` of the only definition."""
        return self.single().explain(*arguments, target=target, options=options)


class Comprehension:
    """One definition: called on arrays, it returns arrays."""

    def __init__(self, definition: Definition, siblings: Mapping[str, Definition] | None = None) -> None:
        self._definition: Final = definition
        self._siblings: Final = {definition.interface.name: definition} if siblings is None else siblings
        self.interface: Final = definition.interface
        self.name: Final = self.interface.name
        self._kernels: Final[Once[tuple[Signature, Options | None, Target], Kernel]] = Once()
        self._warm: Final = WarmCalls()

    @property
    def program(self) -> Program:
        """What the definition means."""
        return self._definition.program

    @staticmethod
    def of(program: Program) -> Comprehension:
        """The comprehension of a program that was built in Python."""
        return Comprehension(Parsed(program))

    def __reduce__(self) -> tuple[Callable[[Program], Comprehension], tuple[Program]]:
        # Copies and processes that receive one make kernels of their own.
        return Comprehension.of, (self.program,)

    def __repr__(self) -> str:
        arguments, results = ", ".join(self.interface.arguments), ", ".join(self.interface.results)
        return f"<tc.Comprehension {self.name}({arguments}) -> {results}>"

    def __str__(self) -> str:
        from tc.language.print_program import program_text

        return program_text(self.program)

    def __call__(
        self,
        *arguments: object,
        out: object = None,
        target: str | None = None,
        options: Options | None = None,
    ) -> object:
        """Run on arrays; compile first if the dtypes, shapes, strides or structural scalars are new.

        Returns one array, or a tuple in the order of the ``->`` list, of the arguments' framework.  ``out``: arrays to
        write into: one, a tuple in that order (None: allocate), or a mapping by name.
        """
        usual = target is None and options is None
        if usual:
            result = self._warm.call(arguments, out)
            if result is not None:
                return result
        bound = self._bind(arguments, out)
        kernel = self._kernel(bound.signature(self.interface), target, options)
        result = kernel.run(bound)
        plan = kernel.plan(bound) if usual else None
        if plan is not None:
            self._warm.remember(arguments, out, plan)
        return result

    def _bind(self, arguments: Sequence[object], out: object) -> Arguments:
        from tc.arguments import bind

        return bind(self.interface, arguments, out)

    def _kernel(
        self, signature: Signature, target: str | None, options: Options | None, prepared: Prepared | None = None
    ) -> Kernel:
        chosen = _target(target)
        wanted = CpuOptions if isinstance(chosen, CpuTarget) else GpuOptions
        if options is not None and not isinstance(options, wanted):
            raise OptionsError(f"options must be tc.{wanted.__name__} for target {str(chosen)!r}, got {options!r}")
        return self._kernels.get(
            (signature, options, chosen),
            lambda: (
                self._found(signature, chosen, options)
                or self._compiled(signature, chosen, wanted() if options is None else options, prepared)
            ),
        )

    def _found(self, signature: Signature, target: Target, options: Options | None) -> Kernel | None:
        """The kernel from the cache, unless its stages are to be seen."""
        from tc.kernel import Kernel

        cache = _cache()
        if cache is None or environment().dump is not None:
            return None
        executable = cache.find(self._wanted(signature, target, options))
        return None if executable is None else Kernel(executable)

    def _compiled(self, signature: Signature, target: Target, options: Options, prepared: Prepared | None) -> Kernel:
        from tc.compiler import build
        from tc.kernel import Kernel

        program = self._specialize(signature) if prepared is None else prepared
        built = build(program, self.interface, options, target, environment())
        kernel = Kernel(built.executable, built.stages, built.compilation)
        if (folder := environment().dump) is not None:
            from tc.dump import dump_stages

            dump_stages(built.compilation, kernel.stages, folder)
        # Of the candidates of a search, only the winner is kept.
        if prepared is None and (cache := _cache()) is not None:
            cache.keep(self._wanted(signature, target, options), self._siblings, built.executable)
        return kernel

    def _wanted(self, signature: Signature, target: Target, options: Options | None) -> Wanted:
        from tc.cached import Wanted

        return Wanted(self._definition, signature, target, options)

    def _specialize(self, signature: Signature) -> Specialization:
        from tc.language.specialize import specialize
        from tc.polyhedral.aliasing import find_overwritten_read

        if signature.aliases:
            apart = specialize(self.program, replace(signature, aliases=()))
            for output, input in signature.aliases:
                found = find_overwritten_read(apart, output, input)
                if found is not None:
                    raise ArgumentError(
                        f"{self.name}: the output {output} cannot share the memory of the input {input}: {found}; "
                        "pass a separate array"
                    )
        return specialize(self.program, signature)

    def compile(self, *arguments: object, target: str | None = None, options: Options | None = None) -> Kernel:
        """The kernel for arrays, or for ``tc.ArraySpec`` in their place; scalars by value.  Runs nothing."""
        return self._kernel(self._signature(arguments), target, options)

    def tune(
        self,
        *arguments: object,
        target: str | None = None,
        budget: str | Budget = "10m",
        cache: str | Path | None = None,
        seed: int | None = None,
        progress: bool = True,
        jobs: int | None = None,
        strategy: str = "combined",
        numerics: str = "any",
    ) -> TuningResult:
        """Searches for the quickest options for such arguments: arrays, which are tuned on, specs or shapes.

        ``budget``: wall-clock time, trials or generations, as in ``"10m"`` or ``"200 trials"``.  ``cache``: the file or
        URL that trials and winner go to; None takes that of the environment.  ``seed``: the same one repeats the
        search, and goes on with one that was interrupted.  ``progress``: lines on the standard error.  ``jobs``:
        compilations at a time.  ``strategy``: ``combined``, ``genetic``, ``original`` or ``random``.  ``numerics``:
        ``bitwise`` takes no winner whose results differ in a bit from those of the default options.

        Calls without options run the winner from now on.  TuningError where not even the default options run.
        """
        from tc.kernel import Kernel
        from tc.tuning import subject_of, tune

        chosen = _target(target)
        result = tune(
            self._definition,
            self._siblings,
            arguments,
            chosen,
            environment(),
            budget=budget,
            cache=cache,
            seed=seed,
            progress=progress,
            jobs=jobs,
            strategy=strategy,
            numerics=numerics,
        )
        signature = subject_of(self.interface, arguments).signature
        self._kernels.put((signature, None, chosen), Kernel(result.executable))
        self._warm.forget()
        return result

    def candidates(self, *arguments: object) -> Candidates:
        """For compiling many kernels for the same arguments, as ``compile`` takes them, with different options."""
        from tc.polyhedral.pipeline import Prepared

        signature = self._signature(arguments)
        prepared = Prepared(self._specialize(signature))
        return Candidates(lambda target, options: self._kernel(signature, target, options, prepared))

    def _signature(self, arguments: Sequence[object]) -> Signature:
        from tc.arguments import bind_specs

        return bind_specs(self.interface, arguments)

    def specialize(self, *arguments: object) -> Specialization:
        """The program for arrays, ``tc.ArraySpec`` or plain shapes, with all sizes settled.  Runs nothing."""
        return self._specialize(self._signature(arguments))

    def output_shapes(self, *arguments: object) -> dict[str, tuple[int, ...]]:
        """Shapes of the results by name, for arrays, specs or plain shapes.  Runs nothing."""
        specialization = self.specialize(*arguments)
        return {name: specialization.layouts[name].shape for name in self.program.results}

    def reference(self, *arguments: object, out: object = None) -> np.ndarray | tuple[np.ndarray, ...]:
        """The oracle's values: integers exact in their type, floating results in float64.  ``out`` is only read."""
        results = self.oracle(*arguments, out=out)
        values = tuple(results[name].values for name in self.program.results)
        return values[0] if len(values) == 1 else values

    def oracle(self, *arguments: object, out: object = None) -> Mapping[str, Result]:
        """The oracle's values by result, in order, with an error bound for every element (see ``tc.reference``)."""
        from tc.arguments import bind
        from tc.reference.evaluate import evaluate
        from tc.runtime.borrow import borrow

        bound = bind(self.interface, arguments, out, writes=False)
        arrays = {name: borrow(view) for name, view in (*bound.inputs.items(), *bound.outputs.items())}
        found = evaluate(self.specialize(*arguments), arrays, bound.scalars)
        return {name: found[name] for name in self.program.results}

    def explain(self, *arguments: object, target: str | None = None, options: Options | None = None) -> str:
        """What becomes of a call, as text: ranges, schedule before and after, buffers, proof, times, source."""
        from tc.explain import explain_kernel

        kernel = self.compile(*arguments, target=target, options=options)
        compiled = kernel
        if kernel.compilation is None:  # it comes from the cache, which has nothing of how it came about
            compiled = self._compiled(kernel.signature, kernel.target, kernel.options, None)
        assert compiled.compilation is not None
        cache = _cache()
        decision = "" if cache is None else cache.explain(self._wanted(kernel.signature, kernel.target, options))
        return explain_kernel(compiled.compilation, compiled.stages, decision)


class Candidates:
    """Kernels of one definition for the same arguments: dependences and schedules are computed once for all of them."""

    def __init__(self, make: Callable[[str | None, Options | None], Kernel]) -> None:
        self._make = make

    def compile(self, options: Options | None = None, *, target: str | None = None) -> Kernel:
        """The kernel with these options."""
        return self._make(target, options)


def _target(name: str | None) -> Target:
    if name is not None and not isinstance(name, str):
        raise OptionsError(f"target must be a name such as 'cpu', got {name!r}")
    return _named_target(name or environment().target or "cpu")


def _cache() -> KernelCache | None:
    from tc.cached import kernel_cache

    return kernel_cache(environment())


# Neither names nor processors change, and what a call with a scalar takes is a fifth longer if it looks again.
_named_target: Final = functools.cache(parse_target)


def define(text: str) -> Definitions:
    """The definitions of a text in the tensor comprehension language.

    ParseError if it is not in the grammar; SemanticError or RangeError, with all complaints together, if it means
    nothing.
    """
    if not isinstance(text, str):
        raise ArgumentError(f"tc.define takes the text of definitions, got {type(text).__name__}")
    cache = _cache()
    known = None if cache is None else cache.definitions(text, lambda: _parsed(text))
    return Definitions(known or {name: Parsed(program, text) for name, program in _parsed(text).items()})


def _parsed(text: str) -> Mapping[str, Program]:
    from tc.grammar.parser import parse
    from tc.language.lower import lower_text

    return lower_text(parse(text), text)


def targets() -> dict[str, str]:
    """What this machine can run: ``"available"`` and the resolved name, or why not."""
    from tc.runtime.compiler import find_compiler
    from tc.runtime.opencl import opencl_device
    from tc.target import unavailable_targets

    def target() -> Target:
        find_compiler(environment())
        return _target("cpu")

    cpu = _available(target)
    return {
        "cpu": cpu,
        "emulator": "available" if cpu.startswith("available") else cpu,
        "opencl": _available(lambda: opencl_device().name),
        **{name: f"not available: {reason}" for name, reason in unavailable_targets().items()},
    }


def _available(name: Callable[[], object]) -> str:
    try:
        return f"available: {name()}"
    except DeviceError as error:
        return f"not available: {error}"
