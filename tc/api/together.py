"""Compiles many kernels at a time, in processes of their own, and says how far it is."""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from typing import TYPE_CHECKING, Final

from tc.api.available import target_of_call
from tc.api.comprehension import Comprehension
from tc.base.frozen import frozen
from tc.runtime.host.threads import get_threads

if TYPE_CHECKING:
    from tc.artifact.executable import Executable
    from tc.dispatch.kernel import Kernel
    from tc.language.program.program import Program
    from tc.language.program.specialization import ArraySpec, Signature
    from tc.targets.target import Target

# To start processes takes as long as to compile one kernel.
FEW: Final = 3
# Seconds after which a line says how far it is, and between one and the next.
PATIENCE: Final = 2.0


@frozen
class Wanted:
    """A kernel of a comprehension for operands; ``in_place`` as of ``Comprehension.compile``."""

    comprehension: Comprehension
    operands: tuple[ArraySpec, ...]
    in_place: tuple[tuple[str, str], ...] = ()

    @property
    def signature(self) -> Signature:
        """That of its calls."""
        return self.comprehension.signature(self.operands, dict(self.in_place))


def compile_together(wanted: Sequence[Wanted], target: str | None = None, *, progress: bool = True) -> list[Kernel]:
    """The kernels in order; equal ones are one, and those that are known already are not compiled.

    ``progress``: lines on the standard error, if that is a terminal and compiling takes longer than two seconds.
    """
    chosen = target_of_call(target)
    keys = [(one.comprehension, one.signature) for one in wanted]
    missing = [key for key in dict.fromkeys(keys) if not key[0].kernels.has(key[1], chosen)]
    if len(missing) > FEW and get_threads() > 1:
        _compile(missing, chosen, progress=progress and sys.stderr.isatty())
    return [comprehension.kernels.get(signature, chosen, None) for comprehension, signature in keys]


def _compile(missing: Sequence[tuple[Comprehension, Signature]], target: Target, *, progress: bool) -> None:
    """Compiles kernels in other processes, which inherit what this one has imported."""
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(min(get_threads(), len(missing)), context) as pool:
        running = {
            pool.submit(_built, comprehension.program, signature, target): (comprehension, signature)
            for comprehension, signature in missing
        }
        for future in _counted(as_completed(running), len(missing), shown=progress):
            comprehension, signature = running[future]
            comprehension.kernels.adopt(signature, target, future.result())


def _built(program: Program, signature: Signature, target: Target) -> Executable:
    return Comprehension.of(program).kernels.built(signature, target)


def _counted(futures: Iterator[Future[Executable]], count: int, *, shown: bool) -> Iterator[Future[Executable]]:
    """The futures, with a line now and then that says how many there were."""
    said = time.monotonic()
    for number, future in enumerate(futures, 1):
        yield future
        if shown and (time.monotonic() - said > PATIENCE):
            said = time.monotonic()
            print(f"tc: {number} of {count} kernels compiled", file=sys.stderr, flush=True)
