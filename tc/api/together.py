"""Compiles many kernels at a time, in processes of their own, and says how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from tc.api.available import target_of_call
from tc.api.comprehension import Comprehension
from tc.api.progress import INTERVAL, Progress
from tc.base.frozen import frozen
from tc.runtime.host.threads import get_threads
from tc.targets.target import OpenClTarget

if TYPE_CHECKING:
    from tc.artifact.executable import Executable
    from tc.dispatch.kernel import Kernel
    from tc.language.program.program import Program
    from tc.language.program.specialization import ArraySpec, Signature
    from tc.targets.options import Options
    from tc.targets.target import Target

Made = TypeVar("Made")
_Key: TypeAlias = "tuple[Comprehension, Signature]"

# To start processes takes as long as to compile one kernel.
FEW: Final = 3


@frozen
class Wanted:
    """A kernel of a comprehension for operands; ``in_place`` and ``out`` as of ``Comprehension.compile``."""

    comprehension: Comprehension
    operands: tuple[ArraySpec, ...]
    in_place: tuple[tuple[str, str], ...] = ()
    out: tuple[tuple[str, ArraySpec], ...] = ()

    @property
    def signature(self) -> Signature:
        """That of its calls."""
        return self.comprehension.signature(self.operands, dict(self.in_place), dict(self.out))

    @property
    def key(self) -> _Key:
        """What equal kernels have in common."""
        return self.comprehension, self.signature


def compile_together(
    wanted: Sequence[Wanted],
    target: str | None = None,
    *,
    progress: bool = True,
    meanwhile: Callable[[], object] | None = None,
) -> list[Kernel]:
    """The kernels in order; equal ones are one, and those that are known already are not compiled.

    ``progress``: a bar on the standard error, if that is a terminal and compiling takes longer than two seconds.
    ``meanwhile``: other work, of this process, while others compile.
    """
    chosen, keys = target_of_call(target), [one.key for one in wanted]
    missing = [key for key in dict.fromkeys(keys) if not key[0].kernels.has(key[1], chosen)]
    # Drivers of OpenCL have threads, which no other process inherits.
    if len(missing) > FEW and get_threads() > 1 and not isinstance(chosen, OpenClTarget):
        jobs = {key: (key[0].program, key[1], chosen) for key in missing}
        for (comprehension, signature), executable in _elsewhere(
            _built, jobs, "compiling", shown=progress, meanwhile=meanwhile
        ):
            comprehension.kernels.adopt(signature, chosen, executable)
    elif meanwhile is not None:
        meanwhile()
    found = []
    with Progress("compiling", len(keys), shown=progress) as bar:
        for comprehension, signature in keys:
            found.append(comprehension.kernels.get(signature, chosen, None))
            bar.at(len(found), "kernels")
    return found


def steps_together(wanted: Sequence[Wanted], target: str | None = None, *, progress: bool = True) -> list[str]:
    """In order, the steps of the schedule of each kernel as text (see ``tc.polyhedral.steps``).

    Kernels are scheduled and proven for that, but no compiler of the target sees them.
    """
    chosen, keys = target_of_call(target), [one.key for one in wanted]
    jobs = {key: (key[0].program, key[1], key[0].kernels.options(key[1], chosen), chosen) for key in keys}
    if len(jobs) > FEW and get_threads() > 1:
        found = dict(_elsewhere(_steps, jobs, "explaining", shown=progress))
    else:
        found = {key: _steps(*job) for key, job in jobs.items()}
    return [found[key] for key in keys]


def _elsewhere(
    work: Callable[..., Made],
    jobs: Mapping[_Key, tuple[object, ...]],
    title: str,
    *,
    shown: bool,
    meanwhile: Callable[[], object] | None = None,
) -> Iterator[tuple[_Key, Made]]:
    """What is made of each job, as soon as it is, in other processes, which inherit what this one has imported.

    ``title``: what is done to them, as a bar on terminals says it, where it is to be ``shown``.
    """
    # What is known already needs no processes.
    import multiprocessing
    from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait

    context = multiprocessing.get_context("fork")
    with (
        Progress(title, len(jobs), shown=shown) as progress,
        ProcessPoolExecutor(min(get_threads(), len(jobs)), context) as pool,
    ):
        running = {pool.submit(work, *job): key for key, job in jobs.items()}
        waiting = set(running)
        if meanwhile is not None:
            meanwhile()
        while waiting:
            done, waiting = wait(waiting, INTERVAL, FIRST_COMPLETED)
            for future in done:
                yield running[future], future.result()
            progress.at(len(running) - len(waiting), "kernels")


def _built(program: Program, signature: Signature, target: Target) -> Executable:
    return Comprehension.of(program).kernels.built(signature, target)


def _steps(program: Program, signature: Signature, options: Options, target: Target) -> str:
    from tc.compiler import translate

    return translate(Comprehension.of(program).kernels.specialize(signature), options, target).steps
