"""``python -m tests.fuzz.modules``: random small modules, compiled by ours and eager, forward and backward.

Where eager PyTorch in float64 differs from itself in the types of a module, ours may differ as much.
"""

from __future__ import annotations

import argparse
import functools
import multiprocessing
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing.connection import Connection
from typing import Any, Final

import torch

from tc.base.frozen import frozen
from tc.torch.backend import backend
from tc.torch.report import Report
from tests.fuzz.module_programs import Drawn, drawn
from tests.torch.agreement import sharing, strides, tensors

_CALLS: Final = 2
# What PyTorch's tracer makes of a function without ours, with its decompositions and without them.
_CAPTURED: Final = ("aot_eager_decomp_partition", "aot_eager")
_LIMIT: Final = 600.0
# Eager runs whose inputs are moved by rounding errors: how far eager PyTorch may be off where it is so by luck.
_NEAR: Final = 8
# How often the error of eager PyTorch ours may have, and the relative error that any may have, by type.
_TIMES: Final = 4.0
_RELATIVE: Final = {torch.float64: 1e-9, torch.float32: 2e-5, torch.float16: 4e-3, torch.bfloat16: 3e-2}


@frozen
class _Run:
    """What calls gave: results, inputs after them, buffers, gradients; or what was raised."""

    results: list[Any]
    inputs: list[torch.Tensor]
    state: list[torch.Tensor]
    gradients: list[torch.Tensor | None]
    raised: Exception | None = None

    @property
    def every(self) -> list[torch.Tensor | None]:
        """All tensors in order."""
        return [*tensors(self.results), *self.inputs, *self.state, *self.gradients]


def check(seed: int) -> tuple[str | None, Report]:
    """What is wrong with the module of a seed, if anything is; and what ran where.

    What PyTorch's tracer does wrong without ours is not counted.
    """
    case, report = drawn(seed), Report()
    torch._dynamo.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = functools.partial(_run, case, seed)
        wanted = run(case.text, lambda module: module)
        if wanted.raised is not None:
            return None, report
        found = run(case.text, _compiling(functools.partial(backend, report=report)))
        exact = run(re.sub(_NARROW, _wider, case.text), lambda module: module)  # drops what narrow types drop
        why = _difference(found, wanted, exact, [wanted])
        if why is not None:
            near = [wanted, *(run(case.text, lambda module: module, moved=draw) for draw in range(_NEAR))]
            why = _difference(found, wanted, exact, near, [run(case.text, _compiling(name)) for name in _CAPTURED])
    return why, report


_NARROW: Final = r"torch\.(b?float16|float32)|\.(float|half)\(\)"


def _compiling(backend: Any) -> Callable[[torch.nn.Module], Any]:
    return functools.partial(torch.compile, backend=backend, dynamic=False)


def _wider(found: re.Match[str]) -> str:
    return "torch.float64" if found[1] else ".double()"


def _run(
    case: Drawn, seed: int, text: str, compiled: Callable[[torch.nn.Module], Any], *, moved: int | None = None
) -> _Run:
    """Two calls with fresh inputs, each with its gradients; the results of the first are read after the second.

    ``moved``: draws by how much inputs are rounded otherwise.
    """
    names: dict[str, Any] = {"torch": torch, "F": torch.nn.functional}
    exec(text, names)  # it is what was drawn
    torch.manual_seed(seed)
    wide = text != case.text
    module = names["Drawn"]().train(case.mode == "train")
    _begin(module)
    call, generator = compiled(module), torch.Generator().manual_seed(seed)
    run = _Run([], [], [], [])
    try:
        for _ in range(_CALLS):
            inputs = [one.make(generator) for one in case.given]
            if wide:
                inputs = [_widened(one) for one in inputs]
            if moved is not None:
                inputs = [_moved(one, moved) for one in inputs]
            torch.manual_seed(seed)
            with torch.set_grad_enabled(case.mode != "no_grad"):
                results = call(*inputs)
            run.results.append(results)
            run.inputs.extend(inputs)
            run.gradients.extend(_gradients(results, [*inputs, *module.parameters()]))
    except Exception as error:  # noqa: BLE001  # whatever it is, it is compared
        return _Run([], [], [], [], error)
    run.state.extend(module.buffers())
    return run


def _widened(given: torch.Tensor) -> torch.Tensor:
    return given.detach().double().requires_grad_(given.requires_grad) if given.is_floating_point() else given


def _moved(given: torch.Tensor, draw: int) -> torch.Tensor:
    """Each element times one of the numbers around 1 that a rounding error in its type leads to."""
    if not given.is_floating_point():
        return given
    noise = torch.randn(given.shape, generator=torch.Generator().manual_seed(draw), dtype=torch.float64)
    near = given.detach().double() * (1 + noise * torch.finfo(given.dtype).eps / 2)
    return near.to(given.dtype).requires_grad_(given.requires_grad)


def _begin(module: torch.nn.Module) -> None:
    """Parameters and buffers begin with numbers that every type has."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for own in module.parameters():
            own.copy_((torch.randn(own.shape, generator=generator) * 8).round() / 16)


def _gradients(results: Any, learned: Sequence[torch.Tensor]) -> list[torch.Tensor | None]:
    wanted = [one for one in tensors(results) if one.requires_grad]
    into = [one for one in learned if one.requires_grad]
    if not wanted or not into:
        return []
    generator = torch.Generator().manual_seed(0)
    weights = [(torch.randn(one.shape, generator=generator) * 4).round().div(4).to(one.dtype) for one in wanted]
    return list(torch.autograd.grad(wanted, into, weights, allow_unused=True))


def _difference(
    found: _Run, wanted: _Run, exact: _Run, near: Sequence[_Run], captured: Sequence[_Run] = ()
) -> str | None:
    """What differs, if anything does.

    ``near``: runs that show how far eager PyTorch is off.  ``captured``: each tensor may be theirs instead.
    """
    others = [run for run in captured if run.raised is None]
    if found.raised is not None:
        raised = f"raises {''.join(traceback.format_exception(found.raised))}"
        return raised if len(others) == len(captured) else None
    try:
        _compare(found, [wanted, *others], exact, near)
    except AssertionError as error:
        return str(error)
    return None


def _compare(found: _Run, references: Sequence[_Run], exact: _Run, near: Sequence[_Run]) -> None:
    """Each tensor with that of a reference, the first of which has what else there is."""
    plain = [_plain(run.results) for run in (found, references[0])]
    assert plain[0] == plain[1], f"results are {plain[0]}, not {plain[1]}"
    left, right = ([one.requires_grad for one in tensors(run.results)] for run in (found, references[0]))
    assert left == right, f"results require gradients as {left}, not {right}"
    assert len(found.every) == len(references[0].every), f"{len(found.every)} tensors, not {len(references[0].every)}"
    for at, one in enumerate(found.every):
        precise, *apart = (run.every[at] if run.raised is None else None for run in (exact, *near))
        failures = [_failure(f"tensor {at}", one, run.every[at], precise, apart) for run in references]
        assert None in failures, failures[0]
    (own, shared), *its = map(_in_memory, (found, *references))
    assert shared in [theirs for _, theirs in its], f"what shares memory is {shared}, not {its[0][1]}"
    for at, mine in enumerate(own):
        assert mine in [theirs[at] for theirs, _ in its], f"the strides of result {at} are {mine}, not {its[0][0][at]}"


def _in_memory(run: _Run) -> tuple[list[Any], list[int]]:
    """The strides of results, and which of them and of inputs share memory."""
    own = tensors(run.results)
    return [strides(one) for one in own], sharing([*run.inputs, *own])


def _plain(results: Any) -> list[Any]:
    return [one for one in torch.utils._pytree.tree_leaves(results) if not isinstance(one, torch.Tensor)]


def _failure(
    what: str,
    one: torch.Tensor | None,
    other: torch.Tensor | None,
    exact: torch.Tensor | None,
    near: Sequence[torch.Tensor | None],
) -> str | None:
    """Why a tensor is not the other one, whose errors ``near`` shows; None if it is."""
    if one is None or other is None:
        return None if one is other else f"{what} is {one}, not {other}"
    if (one.dtype, one.shape) != (other.dtype, other.shape):
        return f"{what} is {one.dtype} of shape {one.shape}, not {other.dtype} of {other.shape}"
    if not one.is_floating_point():
        rounded = exact is not None and not torch.equal(other.double(), exact.double())
        return None if rounded or torch.equal(one, other) else f"{what} is {one}, not {other}"
    left, right = one.detach().double(), other.detach().double()
    error = _RELATIVE[one.dtype] * max(_greatest(right[right.isfinite()]), 1.0)
    if exact is not None:
        precise = exact.detach().double()
        error += _TIMES * max(_greatest(run.detach().double() - precise) for run in near if run is not None)
    try:
        torch.testing.assert_close(left, right, rtol=0, atol=error, equal_nan=True)
    except AssertionError as difference:
        return f"{what}: {difference}"
    return None


def _greatest(tensor: torch.Tensor) -> float:
    """The greatest absolute value of those that are not NaN."""
    return float(tensor.nan_to_num().abs().max()) if tensor.numel() else 0.0


def checked_apart(seed: int) -> tuple[str | None, str]:
    """What is wrong with the module of a seed, checked in a process of its own, and what was left to PyTorch."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, seed))
    process.start()
    theirs.close()
    try:
        if not ours.poll(_LIMIT):
            return f"takes longer than {_LIMIT:g} s", ""
        found: tuple[str | None, str] = ours.recv()
        return found
    except EOFError:
        process.join()
        return f"the process ended with {process.exitcode}", ""
    finally:
        process.kill()
        process.join()


def _child(connection: Connection, seed: int) -> None:
    try:
        why, report = check(seed)
        left = {f"{name}: {reason}" for part in report.parts for name, reason in part.left.items()}
        left |= {f"part: {failure}" for part in report.parts for failure in part.failures}
        connection.send((why, "\n".join(sorted(left))))
    except Exception:  # noqa: BLE001  # it is reported
        connection.send((traceback.format_exc(), ""))


def main(arguments: Sequence[str] | None = None) -> None:
    """Checks so many modules, and prints those that are wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.modules")
    parser.add_argument("--programs", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--left", action="store_true", help="print what was left to PyTorch")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    check(0)  # what every process needs
    seeds, wrong = range(given.first, given.first + given.programs), []
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("fork")) as pool:
        for seed, (why, left) in zip(seeds, pool.map(checked_apart, seeds), strict=True):
            if given.left and left:
                print(f"{seed} left: {left}", flush=True)
            if why is not None:
                wrong.append(seed)
                print(f"{seed}: {why}\n{drawn(seed).text}\n{drawn(seed).mode} {drawn(seed).given}\n", flush=True)
    print(f"{given.programs} modules, {len(wrong)} wrong")
    if wrong:
        sys.exit(" ".join(map(str, wrong)))


if __name__ == "__main__":
    main()
