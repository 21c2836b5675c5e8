"""Kernels chosen by the user instead of a search: checked like any candidate, then kept in a cache as its winner.

Options are compiled and proven.  Of an injected source, nothing can be proven: it takes the place of the
source of a proven kernel, called in the same way, and is compared with the definition on several inputs.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Final, TypeVar

from tc.artifact.executable import Executable
from tc.artifact.packing import pack, unpack
from tc.base.environment import Environment
from tc.base.errors import OptionsError, TuningError
from tc.base.frozen import frozen
from tc.base.proof import Proof
from tc.cache.content.store import Store
from tc.compiler import compile_source
from tc.reference.memory import plan_within
from tc.runtime.cuda.cuda import check_cuda_device
from tc.runtime.host.scratch import clear_abandoned, scratch_folder
from tc.runtime.host.total_memory import oracle_memory
from tc.store.wanted import Wanted
from tc.targets.default_options import default_options
from tc.targets.options import Options
from tc.targets.target import CudaTarget, Target
from tc.tuner.session.confirm import Contender, confirm
from tc.tuner.session.final_comparison import DEFAULT
from tc.tuner.session.search_records import SearchRecords
from tc.tuner.session.settings import SECONDS
from tc.tuner.session.subject import Subject
from tc.tuner.space.starts import require_startable
from tc.tuner.trial.checked_calls import keep_calls, specialized_calls
from tc.tuner.trial.trial_arrays import random_arrays
from tc.tuner.trial.trial_outcome import Failed, FailureKind
from tc.tuner.trial.trials import LONGEST_BUILD
from tc.tuner.trial.workers import Limits, LocalWorkers, Packed, Workers

Answer = TypeVar("Answer")

# What cannot be proven is tried on so many inputs.
INPUTS: Final = 5
_ROUNDS: Final = 7
_GIVEN: Final = "given"


@frozen
class Wish:
    """A kernel that is to be the winner; ``source``: what takes the place of the one that options make."""

    subject: Subject
    target: Target
    options: Options
    source: str | None = None


@frozen
class Injected:
    """What calls run from now on; times are seconds of a call.  ``default``: of the static default beside it."""

    executable: Executable
    seconds: float
    interval: tuple[float, float]
    default: float


def inject(wish: Wish, store: Store, environment: Environment) -> Injected:
    """Tries what is wished for, and keeps it; it serves calls from now on, until a search finds something quicker.

    OptionsError for options that the kernel or the target does not take; CompileError for a source that the compiler
    refuses; TuningError, and nothing is kept, where it crashes, writes out of bounds, computes something else, or does
    not come back.
    """
    require_startable((wish.options,), wish.target)
    if isinstance(wish.target, CudaTarget):
        check_cuda_device(wish.target.architecture, 0)
    clear_abandoned()
    with ExitStack() as stack:
        first = stack.enter_context(_Trial(wish, 0))
        given, default = first.build(wish.options), first.build(default_options(wish.target, wish.options.numerics))
        if wish.source is not None:
            given = _with_source(unpack(given), wish.source, wish.target, environment)
        first.require_right(given)
        for seed in range(1, 1 if wish.source is None else INPUTS):
            with _Trial(wish, seed) as trial:
                trial.require_right(given)
        found = confirm(first.workers, {DEFAULT: default, _GIVEN: given}, _ROUNDS, SECONDS, lambda _round: True)
        if found.keys() != {DEFAULT, _GIVEN}:
            raise TuningError(
                f"{wish.subject.definition.interface.name}: it ran before, and cannot be measured now; try again"
            )
        return _keep(wish, unpack(given), found[_GIVEN], found[DEFAULT], store, environment)


def _keep(
    wish: Wish, executable: Executable, given: Contender, default: Contender, store: Store, environment: Environment
) -> Injected:
    records = SearchRecords(
        store,
        Wanted(wish.subject.definition, wish.subject.signature, wish.target, None, numerics=wish.options.numerics),
        wish.subject.siblings,
        environment,
    )
    made = "injected: options" if wish.source is None else "injected: a source, which is not proven"
    records.keep(executable, given, default, run="", made=made, chosen=True)
    return Injected(executable, given.seconds, given.interval, default.seconds)


def _with_source(proven: Executable, source: str, target: Target, environment: Environment) -> Packed:
    """The executable with another source, called in the same way."""
    binary = compile_source(source, target, environment)
    return pack(replace(proven, source=source, binary=binary, proof=Proof(0, 0, 0, 0, tried=INPUTS)))


class _Trial:
    """Processes that try a kernel on random arguments of a seed; use it in a ``with`` statement."""

    def __init__(self, wish: Wish, seed: int) -> None:
        self._name: Final = wish.subject.definition.interface.name
        self._stack: Final = ExitStack()
        task, program = wish.subject.task(wish.target), wish.subject.definition.program
        calls = specialized_calls(task, program)
        plan_within(calls[0], memory := oracle_memory())
        folder = self._stack.enter_context(scratch_folder("tc-tune-"))
        arrays, products = random_arrays(program, calls[0], seed), wish.options.numerics.products
        keep_calls(calls, arrays, dict(wish.subject.scalars), folder, memory, products)
        self.workers: Final[Workers] = self._stack.enter_context(LocalWorkers(task, folder, 1, Limits()))

    def build(self, options: Options) -> Packed:
        """The kernel with these options, proven."""
        (built,) = self.workers.build([options.to_json()], LONGEST_BUILD)
        return self._unless_failed(built)

    def require_right(self, packed: Packed) -> None:
        """TuningError unless the results are those of the definition."""
        self._unless_failed(self.workers.check(packed, _GIVEN))

    def _unless_failed(self, answer: Answer | Failed) -> Answer:
        if isinstance(answer, Failed) and answer.kind is FailureKind.ILLEGAL:
            raise OptionsError(f"{self._name}: {answer.reason}")
        if isinstance(answer, Failed):
            raise TuningError(f"{self._name}: nothing is kept: {answer.kind.value}: {answer.reason}")
        return answer

    def __enter__(self) -> _Trial:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()
