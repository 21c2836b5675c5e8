"""``Comprehension``: one definition, called on arrays, compiled, tuned and explained."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tc.api.available import target_of_call
from tc.api.candidates import Candidates
from tc.api.derivatives import Derivatives
from tc.api.followed import Following
from tc.api.kernels import Kernels
from tc.artifact.definition import Definition, Parsed
from tc.base.counted import counted
from tc.base.dots import Products
from tc.base.environment import environment
from tc.base.errors import ArgumentError
from tc.base.once import Once
from tc.dispatch.warm import WarmCalls
from tc.targets.options import CpuOptions, GpuOptions, Options, numerics_alone
from tc.targets.target import Target
from tc.targets.usual_options import Usual

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

    from tc.dispatch.arguments import Arguments
    from tc.dispatch.kernel import Kernel
    from tc.graph.ir.graph import Graph
    from tc.language.program.program import Program
    from tc.language.program.specialization import Signature, Specialization
    from tc.reference.evaluate import Result
    from tc.tuner.session.settings import TuningResult
    from tc.tuner.space.preferences import Constraint, Objective
    from tc.tuner.trial.budget import Budget


class Comprehension:
    """One definition: called on arrays, it returns arrays."""

    def __init__(
        self,
        definition: Definition,
        siblings: Mapping[str, Definition] | None = None,
        tune: str | Budget | None = None,
        usual: Usual = (),
        raw: Program | None = None,
        own: Comprehension | str | None = None,
    ) -> None:
        self._definition: Final = definition
        self._siblings: Final = {definition.interface.name: definition} if siblings is None else siblings
        self._kernels: Final = Kernels(definition, self._siblings, tune, usual)
        self._usual: Final = usual
        # Of a gradient, before the front end has read it: with the extents that tensors were made with.
        self._raw: Final = raw
        # The gradient that the text gives it, or why it has none.
        self._own: Final = own
        self.interface: Final = definition.interface
        self.name: Final = self.interface.name
        self._warm: Final = WarmCalls()
        # Of calls that name a target or options.
        self._warm_with: Final[Once[tuple[str | None, Options | None], WarmCalls]] = Once()
        self._following: Final = Following(definition.interface)
        self._gradients: Final[Once[tuple[tuple[str, ...], str], Comprehension]] = Once()
        self._pairs: Final[Once[tuple[object, ...], Pair]] = Once()

    @property
    def program(self) -> Program:
        """What the definition means."""
        return self._definition.program

    @property
    def definition(self) -> Definition:
        """The definition, by which the cache knows its kernels."""
        return self._definition

    @property
    def graph(self) -> Graph:
        """A graph of one call, whose sizes are open; ``tc.graph.Model.of`` runs it.

        GraphError where the definition takes scalars.
        """
        from tc.graph.ir.replay import graph_of

        return graph_of(self.program)

    @property
    def derivation(self) -> str:
        """Of a gradient, its statements in order, each below the rule that made it; empty for others."""
        if self._raw is None:
            return ""
        from tc.gradient.derivation import derivation_of

        return derivation_of(self._raw)

    @staticmethod
    def of(
        program: Program,
        usual: Usual = (),
        raw: Program | None = None,
        own: Comprehension | str | None = None,
    ) -> Comprehension:
        """The comprehension of a program that was built in Python.

        ``usual``: options of calls that name none.  ``raw``: what is differentiated instead of the program, which means
        the same.  ``own``: its gradient, or why it has none.
        """
        return Comprehension(Parsed(program), usual=usual, raw=raw, own=own)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., Comprehension], tuple[object, ...]]:
        # Copies and processes that receive one make kernels of their own.
        return Comprehension.of, (self.program, self._usual, self._raw, self._own)

    def __repr__(self) -> str:
        arguments, results = ", ".join(self.interface.arguments), ", ".join(self.interface.results)
        return f"<tc.Comprehension {self.name}({arguments}) -> {results}>"

    def __str__(self) -> str:
        from tc.language.text.print_program import program_text

        return program_text(self.program)

    def __call__(
        self,
        /,
        *arguments: object,
        out: object = None,
        target: str | None = None,
        options: Options | None = None,
        **named: object,
    ) -> object:
        """Run on arrays, in order or by name; compile first for new dtypes, shapes, strides or structural scalars.

        Returns one array, or a tuple in the order of the ``->`` list, of the arguments' framework.  ``out``: arrays to
        write into: one, a tuple in that order (None: allocate), or a mapping by name.
        """
        if named:
            arguments = self._in_order(arguments, named)
        warm = self._warm if target is None and options is None else self._warm_calls(target, options)
        result = warm.call(arguments, out)
        if result is not None:
            return result
        followed = self._following.tensors(arguments) if out is None else None
        if followed is not None:
            return self._following.call(self, arguments, followed, target, options)
        bound = self._bind(arguments, out)
        chosen = target_of_call(target, _device_of(bound))
        kernel = self._kernels.get(bound.signature(self.interface), chosen, options)
        result = kernel.run(bound)
        plan = kernel.plan(bound)
        if plan is not None:
            warm.remember(arguments, out, plan)
        return result

    def _warm_calls(self, target: str | None, options: Options | None) -> WarmCalls:
        """The warm calls with a target or options; none where an error is to come."""
        if isinstance(target, str | None) and isinstance(options, CpuOptions | GpuOptions | None):
            return self._warm_with.get((target, options), WarmCalls)
        return WarmCalls()

    def gradient(self, *names: str, ties: str = "split") -> Comprehension:
        """The gradient by the arguments named, or by all floating tensors: a comprehension like any other.

        It takes the arguments of this one, then ``d_C`` for every floating result ``C``: the derivative of a number by
        each element of ``C``; between them, the first values of results that come in.  It returns ``d_A`` for every
        argument ``A`` named: the derivatives of that number by each element of ``A``.  ``str`` of it is its text, and
        ``derivation`` says what each of its statements is there for.

        ``ties``: who gets the derivative of a maximum or minimum that several terms reach: ``split`` gives them equal
        parts, ``first`` all to the one of the first instance.  GradientError for what has no derivative.
        """

        def make() -> Comprehension:
            found = self._derivatives.gradient(names, ties)
            if isinstance(self._own, Comprehension) and found.program == self._own.program:
                return self._own
            return self._derived(found.program, found.raw)

        return self._gradients.get((names, ties), make)

    def with_gradient(
        self, *names: str, save: Sequence[str] | None = None, ties: str = "split", only: Sequence[str] = ()
    ) -> Pair:
        """The definition and its gradient by the arguments named, or by all floating tensors, which share values.

        ``save``: the names of the values that the gradient is given, beside the arguments; all others are computed
        again.  None: reductions are saved, what is computed element by element is not, and of what follows from each
        other the smallest (a minimum cut over bytes).  ``ties`` and errors as of ``gradient``.  ``only``: of the
        arguments named, those whose adjoints the backward returns.
        """
        wanted = None if save is None else tuple(save)

        def make() -> Pair:
            found = self._derivatives.pair(names, ties, wanted, tuple(only))
            if found is None:
                return Pair(self, self.gradient(*(only or names)), ())
            forward = self if found.forward == self.program else self._derived(found.forward)
            return Pair(forward, self._derived(found.backward, found.raw), found.kept)

        return self._pairs.get((names, ties, wanted, tuple(only)), make)

    def jvp(self, *names: str, ties: str = "split") -> Comprehension:
        """The directional derivative by the arguments named, or by all floating tensors (forward mode).

        It takes the arguments of this one, then ``t_A`` for every argument ``A`` named: the direction in which it
        changes; between them, the first values of results that come in.  It returns ``t_C`` for every floating result
        ``C``: how it changes with them.  ``ties`` and errors as of ``gradient``.
        """
        return self._derived(self._derivatives.jvp(names, ties))

    def _derived(self, program: Program, raw: Program | None = None) -> Comprehension:
        return Comprehension.of(program, tuple(map(numerics_alone, self._usual)), raw)

    @property
    def _derivatives(self) -> Derivatives:
        return Derivatives(self, self._raw, self._own)

    def torch_op(self, name: str) -> Any:
        """Registers the operator ``torch.ops.ns.name`` of PyTorch, called as in ``"ns::name"``, and returns it.

        It takes the arguments in order and returns the results.  ``torch.compile`` and ``torch.export`` take it without
        a graph break, also with symbolic shapes; autograd, second derivatives too, and ``torch.vmap`` go through it.
        OptionsError for a name that is taken, and for results that come in.
        """
        from tc.api.torch_operator import torch_operator

        return torch_operator(self, name)

    def _in_order(self, arguments: tuple[object, ...], named: Mapping[str, object]) -> tuple[object, ...]:
        from tc.dispatch.arguments import in_order

        return in_order(self.interface, arguments, named)

    def _bind(self, arguments: Sequence[object], out: object) -> Arguments:
        from tc.dispatch.arguments import bind

        return bind(self.interface, arguments, out)

    def compile(
        self,
        /,
        *arguments: object,
        target: str | None = None,
        options: Options | None = None,
        in_place: Mapping[str, str] | None = None,
        out: object = None,
        **named: object,
    ) -> Kernel:
        """The kernel for arrays, ``tc.ArraySpec`` or plain shapes; scalars by value.  Runs nothing.

        Where an extent is ``tc.dynamic``, it serves all of its values, and calls that fit run it from now on.
        ``in_place``: results by name, each with the argument in whose place it is written; calls then pass that array
        through ``out=``, too.  ``out``: what calls pass through ``out=``, where it is not C-contiguous: one, a tuple or
        a mapping, as there.
        """
        arguments = self._in_order(arguments, named)
        signature = self.signature(arguments, in_place, out)
        return self._kernels.get(signature, self._target(arguments, target), options)

    def signature(
        self, arguments: Sequence[object], in_place: Mapping[str, str] | None = None, out: object = None
    ) -> Signature:
        """What distinguishes the kernel for such arguments from others; as of ``compile``."""
        from tc.dispatch.arguments import bind_specs

        found = bind_specs(self.interface, arguments, out)
        if not in_place:
            return found
        specs = dict(found.arguments)
        placed = {**dict(found.results), **{name: specs[other] for name, other in in_place.items()}}
        results = tuple((name, placed[name]) for name in self.interface.results if name in placed)
        return replace(found, results=results, aliases=tuple(in_place.items()))

    @property
    def kernels(self) -> Kernels:
        """Its kernels, by signature."""
        return self._kernels

    def tune(
        self,
        /,
        *arguments: object,
        target: str | None = None,
        budget: str | Budget | None = None,
        cache: str | Path | None = None,
        seed: int | None = None,
        progress: bool = True,
        jobs: int | None = None,
        strategy: str = "combined",
        numerics: str = "any",
        workers: str | None = None,
        devices: Sequence[int] | None = None,
        start: Options | Sequence[Options] | None = None,
        objective: Objective | None = None,
        constraint: Constraint | None = None,
        effort: str = "default",
        **named: object,
    ) -> TuningResult:
        """Searches for the quickest options for such arguments: arrays, which are tuned on, specs or shapes.

        Where an extent is ``tc.dynamic``, the winner serves all of its values; it is timed with the greatest.
        ``effort``: ``quick``, ``default`` or ``thorough``, the budget and how much is tried and measured (see
        ``tc.tuner.session.effort``).  ``budget``: wall-clock time, trials or generations, as in ``"10m"`` or ``"200
        trials"``; None takes that of the effort.  ``cache``: the file or URL that trials and winner go to; None takes
        that of the environment.  ``seed``: the same one repeats the search, and goes on with one that was interrupted.
        ``progress``: lines on the standard error.  ``jobs``: compilations at a time.  ``strategy``: ``combined``,
        ``genetic``, ``original`` or ``random``.  ``numerics``: ``bitwise`` takes no winner whose results differ in any
        bit from those of the default options.  ``workers``:
        ``dask://host:port`` compiles and measures on the Dask cluster of that scheduler; None does so here.
        ``devices``: numbers of GPUs of one kind, which measure beside each other; None takes the first.
        ``start``: options, or several, that are tried right after the default ones; what came of them is in
        ``.started``, also where they failed, which does not end the search.  ``objective``: a callable that is given
        the record of a trial (``options``, ``seconds``, ``samples``) and returns a finite number, which is made small
        instead of the seconds.  ``constraint``: a callable that is given options and returns whether they may win.
        Both are called in this process; TuningError where they fail.

        Calls without options run the winner from now on.  TuningError where not even the default options run.
        """
        from tc.api.tuning import TuningRequest, device_numbers, require_own_numerics, subject_of, tune
        from tc.dispatch.kernel import Kernel

        arguments = self._in_order(arguments, named)
        gpus = device_numbers(devices)
        chosen = target_of_call(target, gpus[0]) if gpus else self._target(arguments, target)
        request = TuningRequest(
            budget, cache, seed, progress, jobs, strategy, numerics, workers, gpus, start, objective, constraint, effort
        )
        own = self._kernels.numerics(chosen)
        require_own_numerics(start, own)
        subject = replace(subject_of(self._definition, self._siblings, arguments), numerics=own)
        result = tune(subject, chosen, environment(), request)
        self._kernels.put(subject.signature, chosen, Kernel(result.executable))
        for warm in (self._warm, *(own for _, own in self._warm_with.items())):
            warm.forget()
        return result

    def candidates(self, /, *arguments: object) -> Candidates:
        """For compiling many kernels for the same arguments, as ``compile`` takes them, with different options."""
        from tc.polyhedral.pipeline import Prepared

        signature = self._signature(arguments)
        prepared = Prepared(self._kernels.specialize(signature))

        def make(target: str | None, options: Options | None) -> Kernel:
            return self._kernels.get(signature, self._target(arguments, target), options, prepared)

        return Candidates(make)

    def _target(self, arguments: Sequence[object], name: str | None) -> Target:
        from tc.dispatch.array_placement import device_of_arrays

        return target_of_call(name, device_of_arrays(self.interface, arguments))

    def _signature(self, arguments: Sequence[object]) -> Signature:
        from tc.dispatch.arguments import bind_specs

        return bind_specs(self.interface, arguments)

    def specialize(self, /, *arguments: object) -> Specialization:
        """The program for arrays, ``tc.ArraySpec`` or plain shapes, with all sizes settled.  Runs nothing."""
        return self._kernels.specialize(self._signature(arguments))

    def output_shapes(self, /, *arguments: object, **named: object) -> dict[str, tuple[int, ...]]:
        """Shapes of the results by name, for arrays, specs or plain shapes.  Runs nothing."""
        specialization = self.specialize(*self._in_order(arguments, named))
        return {name: specialization.layouts[name].shape for name in self.program.results}

    def reference(
        self, /, *arguments: object, out: object = None, **named: object
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """The oracle's values: integers exact in their type, floating results in float64.  ``out`` is only read.

        TooLargeError, before it begins, where the oracle needs more than a quarter of the memory there is.
        """
        results = self._evaluate(self._in_order(arguments, named), out, None, None, bounds=False)
        values = tuple(results[name].values for name in self.program.results)
        return values[0] if len(values) == 1 else values

    def oracle(
        self,
        /,
        *arguments: object,
        out: object = None,
        memory: int | None = None,
        given: object = None,
        products: Products = Products.EXACT,
    ) -> Mapping[str, Result]:
        """The oracle's values by result, in order, with an error bound for every element (see ``tc.reference``).

        ``given``: the results of a call, from which the steps of blocks then go on: each of them is judged for itself,
        where a result keeps the values of all.  ``products``: of the numerics of a kernel that may round factors.

        ``memory``: bytes that it may take beside the arguments; None stands for a quarter of what there is.
        TooLargeError, before it begins, where it needs more.
        """
        return self._evaluate(arguments, out, memory, given, bounds=True, products=products)

    def _evaluate(
        self,
        arguments: tuple[object, ...],
        out: object,
        memory: int | None,
        given: object,
        *,
        bounds: bool,
        products: Products = Products.EXACT,
    ) -> Mapping[str, Result]:
        from tc.dispatch.arguments import bind
        from tc.reference.evaluate import evaluate
        from tc.reference.following import bytes_kept
        from tc.reference.memory import plan_within
        from tc.runtime.frameworks.borrow import borrow
        from tc.runtime.host.total_memory import oracle_memory

        bound = bind(self.interface, arguments, out, writes=False)
        arrays = {name: borrow(view) for name, view in (*bound.inputs.items(), *bound.outputs.items())}
        specialization = self.specialize(*arguments)
        room, found = oracle_memory() if memory is None else memory, None
        if given is not None:
            room, found = room - bytes_kept(specialization), self._results(given)
        plan = plan_within(specialization, room, bounds=bounds)
        return evaluate(specialization, arrays, bound.scalars, bounds=bounds, plan=plan, given=found, products=products)

    def _results(self, given: object) -> Mapping[str, np.ndarray]:
        """The results of a call by name, as NumPy arrays."""
        from tc.runtime.frameworks.arrays import describe
        from tc.runtime.frameworks.borrow import borrow

        values = given if isinstance(given, tuple) else (given,)
        names = self.program.results
        if len(values) != len(names):
            raise ArgumentError(
                f"{self.interface.name}: {counted(len(values), 'result')} given, the definition has {len(names)}; pass "
                "what a call returned"
            )
        return {name: borrow(describe(value, name)) for name, value in zip(names, values, strict=True)}

    def explain(
        self, /, *arguments: object, target: str | None = None, options: Options | None = None, **named: object
    ) -> str:
        """What becomes of a call, as text: ranges, schedule before and after, buffers, proof, times, source."""
        from tc.api.explain import explain_injected, explain_kernel

        kernel = self.compile(*self._in_order(arguments, named), target=target, options=options)
        decision = self._kernels.decision(kernel.signature, kernel.target, options)
        if kernel.proof.tried is not None:  # an injected source, which no stage of ours has made
            return explain_injected(self._kernels.specialize(kernel.signature), kernel.executable, decision)
        compiled = kernel
        if kernel.compilation is None:  # it comes from the cache, which has nothing of how it came about
            compiled = self._kernels.compile(kernel.signature, kernel.target, kernel.asked)
        assert compiled.compilation is not None
        return explain_kernel(compiled.compilation, compiled.stages, decision)


class Pair(NamedTuple):
    """A definition and its gradient, which share values: ``forward, backward, kept = f.with_gradient("A")``.

    ``forward``: takes the arguments of the definition, and returns its results, then what else is kept.
    ``backward``: takes the same arguments, then what is kept, then the adjoints of the results of the definition.
    ``kept``: the results of the forward that the backward takes, by name, in its order.
    """

    forward: Comprehension
    backward: Comprehension
    kept: tuple[str, ...]


def _device_of(bound: Arguments) -> int | None:
    from tc.dispatch.array_placement import device_of

    return device_of(bound)
