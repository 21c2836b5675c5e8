"""The calls on which candidates of a task are checked: arguments and expected results, kept in a folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy.typing as npt

from tc.base.dots import Products
from tc.language.lower.specialize import specialize
from tc.language.program.program import Program
from tc.language.program.specialization import Specialization
from tc.reference.evaluate import Result, evaluate
from tc.reference.following import bytes_kept, followed
from tc.reference.kept import keep_results, kept_results
from tc.reference.memory import plan_within
from tc.runtime.host.total_memory import oracle_memory
from tc.tuner.trial.task import Task, parse_task
from tc.tuner.trial.trial_arrays import first_elements, keep_arrays

Array: TypeAlias = npt.NDArray[Any]

# Of an element of a result: its value, its bound, and whether it is ambiguous.
_KEPT_BYTES: Final = 8 + 8 + 1


def specialized_calls(task: Task, program: Program) -> tuple[Specialization, ...]:
    """The program for each of ``task.calls``.

    ArgumentError or RangeError, as of ``specialize``, also where a size cannot stay open.
    """
    signature = task.signature
    if signature.symbolic:
        specialize(program, signature)
    return tuple(specialize(program, signature.at(sizes)) for sizes in task.calls)


def room_for(calls: Sequence[Specialization], arrays: Mapping[str, Array]) -> int:
    """About how many bytes ``keep_calls`` writes."""
    elements = sum(call.layouts[name].size for call in calls for name in call.program.results)
    return sum(array.nbytes for array in arrays.values()) + _KEPT_BYTES * elements


def keep_calls(
    calls: Sequence[Specialization],
    arrays: Mapping[str, Array],
    scalars: Mapping[str, int | float],
    folder: Path,
    memory: int | None = None,
    products: Products = Products.EXACT,
) -> None:
    """Writes the arrays, which are those of the first call, and what the oracle makes of all calls.

    The others have the first elements of them: what reads beyond finds numbers that change its results.  ``memory``:
    bytes that the oracle may take, for which TooLargeError is raised before anything is written; None where that is
    known.  ``products``: of the numerics of the candidates.
    """
    plans = [None if memory is None else plan_within(call, memory) for call in calls]
    keep_arrays(arrays, folder)
    if followed(calls[0].program):
        (folder / _FOLLOWED).write_text(products.value, encoding="utf-8")
    for number, (call, plan) in enumerate(zip(calls, plans, strict=True)):
        given = {name: first_elements(array, call.layouts[name].shape) for name, array in arrays.items()}
        keep_results(evaluate(call, given, scalars, plan=plan, products=products), folder, number)


# Says that steps of blocks are judged by what a candidate gave for those before, and how factors are rounded.
_FOLLOWED: Final = "followed"


class Expected:
    """What the results of the calls in a folder must be."""

    def __init__(self, task: Task, folder: Path) -> None:
        self._task: Final = task
        self._folder: Final = folder
        self._calls: Final[list[Specialization]] = []

    def of(self, number: int, arrays: Mapping[str, Array], results: Mapping[str, Array]) -> tuple[Result, ...]:
        """Of a call with these arguments, for which a candidate gave these results."""
        if not (self._folder / _FOLLOWED).exists():
            return kept_results(self._folder, number)
        if not self._calls:
            self._calls.extend(specialized_calls(self._task, parse_task(self._task)))
        call = self._calls[number]
        given = {name: first_elements(array, call.layouts[name].shape) for name, array in arrays.items()}
        scalars = {scalar.name: self._task.value(scalar.name, scalar.type) for scalar in call.program.scalars}
        plan = plan_within(call, oracle_memory() - bytes_kept(call))
        products = Products((self._folder / _FOLLOWED).read_text(encoding="utf-8"))
        return tuple(evaluate(call, given, scalars, plan=plan, given=results, products=products).values())
