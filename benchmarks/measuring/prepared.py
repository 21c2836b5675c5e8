"""``Prepared``: a contender with its arguments in hand, ready to be called."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np

import tc
from benchmarks.measuring.contender import Contender
from benchmarks.measuring.messages import Prepare, Refused
from benchmarks.problems.problem import Array, Problem
from tc.runtime.frameworks.device_array import DeviceArray
from tc.runtime.host.threads import get_threads
from tc.targets.options import CpuOptions, GpuOptions, Options
from tc.targets.options_json import from_json

if TYPE_CHECKING:
    from tc.dispatch.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Prepared:
    """``call`` computes and lets go of the results; ``results`` computes and gives them as NumPy arrays.

    ``kernel``: of ours.  ``waits``: a call returns when its work is done, which on a GPU it does else not.
    """

    call: Callable[[], object]
    results: Callable[[], tuple[Array, ...]]
    kernel: Kernel | None = None
    waits: bool = True


def prepare(question: Prepare, arguments: Sequence[Array], *, gpu: bool) -> Prepared | Refused:
    """The contender with the case's arguments in hand; refused where its package is missing or fails.

    Libraries are told how many threads they have, those of ``tc.get_threads``, and that products of float32 are to be
    as exact as ours.
    """
    problem = question.case.problem
    match question.contender:
        case Contender.OURS | Contender.PREALLOCATED | Contender.TUNED:
            return _prepare_ours(question, arguments, gpu=gpu)
        case Contender.NUMPY:
            return Refused("NumPy computes on processors") if gpu else _prepare_numpy(problem, arguments)
        case Contender.TORCH | Contender.COMPILE:
            return _prepare_torch(problem, arguments, compiled=question.contender is Contender.COMPILE, gpu=gpu)
        case Contender.TRITON:
            return _prepare_triton(problem, arguments) if gpu else Refused("Triton computes on GPUs")
        case Contender.JAX:
            return _prepare_jax(problem, arguments)
        case _:
            assert_never(question.contender)


def _prepare_ours(question: Prepare, arguments: Sequence[Array], *, gpu: bool) -> Prepared | Refused:
    comprehension = question.case.problem.comprehension
    kind: type[Options] = GpuOptions if gpu else CpuOptions
    options = kind() if question.options is None else from_json(question.options, kind)
    if question.arrays is Contender.TORCH and (absent := _absent_torch(gpu=gpu)) is not None:
        return absent
    place = _places(question.arrays, gpu=gpu)
    arrays = [place(array) for array in arguments]
    kernel = comprehension.compile(*arrays, options=options)
    match question.contender:
        case Contender.PREALLOCATED:
            out = _as_tuple(comprehension(*arrays))
            return Prepared(
                lambda: comprehension(*arrays, out=out),
                lambda: _as_numpy(comprehension(*arrays, out=_poisoned(out, place))),
                kernel,
                waits=not gpu,
            )
        case Contender.TUNED:
            return Prepared(lambda: kernel(*arrays), lambda: _as_numpy(kernel(*arrays)), kernel, waits=not gpu)
        case _:
            return Prepared(
                lambda: comprehension(*arrays), lambda: _as_numpy(comprehension(*arrays)), kernel, waits=not gpu
            )


def _places(framework: Contender, *, gpu: bool) -> Callable[[Array], object]:
    """Makes an array of a framework of NumPy's; on a GPU, whoever has NumPy's puts them there with ``tc.to_device``."""
    if framework is not Contender.TORCH:
        return tc.to_device if gpu else lambda array: array
    import torch

    def place(array: Array) -> object:
        # NumPy has no bfloat16 of its own.
        is_half = array.dtype.name == "bfloat16"
        made = torch.from_numpy(array.view(np.int16)).view(torch.bfloat16) if is_half else torch.from_numpy(array)
        return made.cuda() if gpu else made

    return place


def _poisoned(out: Sequence[object], place: Callable[[Array], object]) -> Sequence[object]:
    """Arrays like these that hold what no result may keep."""
    return [place(np.full_like(array, np.nan)) for array in _as_numpy(out)]


def _prepare_numpy(problem: Problem, arguments: Sequence[Array]) -> Prepared | Refused:
    from benchmarks.peers.numpy_calls import ABSENT, CALLS

    if problem.name not in CALLS:
        return Refused(ABSENT.get(problem.name, "it is not written in NumPy here"))
    function, given = CALLS[problem.name], problem.arrange(*arguments)
    return Prepared(lambda: function(*given), lambda: _as_numpy(function(*given)))


def _prepare_torch(problem: Problem, arguments: Sequence[Array], *, compiled: bool, gpu: bool) -> Prepared | Refused:
    if (absent := _absent_torch(gpu=gpu)) is not None:
        return absent
    import torch

    from benchmarks.peers.torch_calls import CALLS
    from benchmarks.peers.torch_operators import OPERATORS

    torch.set_num_threads(get_threads())
    torch.set_grad_enabled(False)
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    place = _places(Contender.TORCH, gpu=gpu)
    given = [a if isinstance(a, int) else place(a) for a in problem.arrange(*arguments)]
    function = CALLS.get(problem.name) or OPERATORS[problem.name]
    if compiled and gpu:
        for argument in given:
            if isinstance(argument, torch.Tensor):
                # Else every call copies its arguments to where the graph expects them.
                torch._dynamo.mark_static_address(argument)
        function = torch.compile(function, dynamic=False, mode="max-autotune")
    elif compiled:
        function = torch.compile(function, dynamic=False)
    try:
        function(*given)
    except RuntimeError as error:  # of Inductor, where it finds no C++ compiler, among others
        return Refused(f"it fails: {_first_line(error)}")
    return Prepared(lambda: function(*given), lambda: _as_numpy(function(*given)), waits=not gpu)


def _prepare_triton(problem: Problem, arguments: Sequence[Array]) -> Prepared | Refused:
    if (absent := _absent_torch(gpu=True) or _absent("triton")) is not None:
        return absent
    from benchmarks.peers.triton_calls import CALLS

    if problem.name not in CALLS:
        return Refused("it is not written in Triton here")
    place = _places(Contender.TORCH, gpu=True)
    given = [a if isinstance(a, int) else place(a) for a in problem.arrange(*arguments)]
    function = CALLS[problem.name]
    return Prepared(lambda: function(*given), lambda: _as_numpy(function(*given)), waits=False)


def _prepare_jax(problem: Problem, arguments: Sequence[Array]) -> Prepared | Refused:
    if (absent := _absent("jax")) is not None:
        return absent
    import jax

    from benchmarks.peers.jax_calls import CALLS
    from benchmarks.peers.jax_operators import OPERATORS

    jax.config.update("jax_default_matmul_precision", "highest")
    given = [a if isinstance(a, int) else jax.numpy.asarray(a) for a in problem.arrange(*arguments)]
    static = tuple(position for position, argument in enumerate(given) if isinstance(argument, int))
    call = CALLS.get(problem.name) or OPERATORS[problem.name]
    function: Callable[..., object] = jax.jit(call, static_argnums=static)
    # On a GPU it works on streams that only it knows.
    wait: Callable[[object], object] = jax.block_until_ready
    return Prepared(lambda: wait(function(*given)), lambda: _as_numpy(function(*given)))


def _absent(package: str) -> Refused | None:
    if importlib.util.find_spec(package) is None:
        return Refused(f"{package} is not installed")
    return None


def _absent_torch(*, gpu: bool) -> Refused | None:
    if (absent := _absent("torch")) is not None:
        return absent
    import torch

    return Refused("PyTorch finds no GPU") if gpu and not torch.cuda.is_available() else None


def _as_tuple(result: object) -> tuple[object, ...]:
    return tuple(result) if isinstance(result, tuple | list) else (result,)


def _as_numpy(result: object) -> tuple[Array, ...]:
    return tuple(map(_copied, _as_tuple(result)))


def _copied(array: object) -> Array:
    """The array in the memory of this machine."""
    if isinstance(array, DeviceArray):
        return array.numpy()
    # PyTorch's arrays are brought over by a method of theirs.
    to_host = getattr(array, "cpu", None)
    here: Any = array if to_host is None else to_host()
    # NumPy has no bfloat16 of its own; float32 holds all of its numbers.
    return np.asarray(here.float() if str(getattr(here, "dtype", "")) == "torch.bfloat16" else here)


def _first_line(error: Exception) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
