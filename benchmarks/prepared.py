"""``Prepared``: a contender with its arguments in hand, ready to be called."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, assert_never

import numpy as np

from benchmarks.contender import Contender
from benchmarks.messages import Prepare, Refused
from benchmarks.problem import Array, Problem
from tc.options import CpuOptions, from_json
from tc.runtime.threads import get_threads

if TYPE_CHECKING:
    from tc.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Prepared:
    """``call`` computes and lets go of the results; ``results`` computes and gives them as NumPy arrays.

    ``kernel``: of ours.
    """

    call: Callable[[], object]
    results: Callable[[], tuple[Array, ...]]
    kernel: Kernel | None = None


def prepare(question: Prepare, arguments: Sequence[Array]) -> Prepared | Refused:
    """The contender with the case's arguments in hand; refused where its package is missing or fails.

    Libraries are told how many threads they have: those of ``tc.get_threads``.
    """
    problem = question.case.problem
    match question.contender:
        case Contender.OURS | Contender.PREALLOCATED | Contender.TUNED:
            return _prepare_ours(question, arguments)
        case Contender.NUMPY:
            return _prepare_numpy(problem, arguments)
        case Contender.TORCH | Contender.COMPILE:
            return _prepare_torch(problem, arguments, compiled=question.contender is Contender.COMPILE)
        case Contender.JAX:
            return _prepare_jax(problem, arguments)
        case _:
            assert_never(question.contender)


def _prepare_ours(question: Prepare, arguments: Sequence[Array]) -> Prepared | Refused:
    comprehension = question.case.problem.comprehension
    options = CpuOptions() if question.options is None else from_json(question.options, CpuOptions)
    arrays: Sequence[object] = arguments
    if question.arrays is Contender.TORCH:
        if (absent := _absent("torch")) is not None:
            return absent
        import torch

        arrays = [torch.from_numpy(array) for array in arguments]
    kernel = comprehension.compile(*arrays, options=options)
    match question.contender:
        case Contender.PREALLOCATED:
            out = _as_tuple(comprehension(*arrays))
            return Prepared(
                lambda: comprehension(*arrays, out=out),
                lambda: _as_numpy(comprehension(*arrays, out=_poisoned(out))),
                kernel,
            )
        case Contender.TUNED:
            return Prepared(lambda: kernel(*arrays), lambda: _as_numpy(kernel(*arrays)), kernel)
        case _:
            return Prepared(lambda: comprehension(*arrays), lambda: _as_numpy(comprehension(*arrays)), kernel)


def _poisoned(out: Sequence[object]) -> Sequence[object]:
    """The arrays, filled with what no result may keep."""
    for array in out:
        np.asarray(array)[...] = np.nan
    return out


def _prepare_numpy(problem: Problem, arguments: Sequence[Array]) -> Prepared | Refused:
    from benchmarks.peers.numpy_calls import ABSENT, CALLS

    if problem.name in ABSENT:
        return Refused(ABSENT[problem.name])
    function, given = CALLS[problem.name], problem.arrange(*arguments)
    return Prepared(lambda: function(*given), lambda: _as_numpy(function(*given)))


def _prepare_torch(problem: Problem, arguments: Sequence[Array], *, compiled: bool) -> Prepared | Refused:
    if (absent := _absent("torch")) is not None:
        return absent
    import torch

    from benchmarks.peers.torch_calls import CALLS

    torch.set_num_threads(get_threads())
    torch.set_grad_enabled(False)
    given = [a if isinstance(a, int) else torch.from_numpy(a) for a in problem.arrange(*arguments)]
    function = CALLS[problem.name]
    if compiled:
        function = torch.compile(function, dynamic=False)
    try:
        function(*given)
    except RuntimeError as error:  # of Inductor, where it finds no C++ compiler, among others
        return Refused(f"it fails: {_first_line(error)}")
    return Prepared(lambda: function(*given), lambda: _as_numpy(function(*given)))


def _prepare_jax(problem: Problem, arguments: Sequence[Array]) -> Prepared | Refused:
    if (absent := _absent("jax")) is not None:
        return absent
    import jax

    from benchmarks.peers.jax_calls import CALLS

    given = [a if isinstance(a, int) else jax.numpy.asarray(a) for a in problem.arrange(*arguments)]
    static = tuple(position for position, argument in enumerate(given) if isinstance(argument, int))
    function: Callable[..., object] = jax.jit(CALLS[problem.name], static_argnums=static)
    wait: Callable[[object], object] = jax.block_until_ready
    return Prepared(lambda: wait(function(*given)), lambda: _as_numpy(function(*given)))


def _absent(package: str) -> Refused | None:
    if importlib.util.find_spec(package) is None:
        return Refused(f"{package} is not installed")
    return None


def _as_tuple(result: object) -> tuple[object, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _as_numpy(result: object) -> tuple[Array, ...]:
    return tuple(np.asarray(array) for array in _as_tuple(result))


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
