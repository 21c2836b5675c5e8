"""``python -m tests.torch.op_db``: what PyTorch lists of its operators, with its samples, compiled by ours and eager.

Each entry is checked in a process of its own, which may crash or take too long.
"""

from __future__ import annotations

import argparse
import copy
import functools
import json
import multiprocessing
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final
from unittest import mock

import torch
from torch.testing._internal import common_methods_invocations as listed
from torch.testing._internal.common_device_type import toleranceOverride
from torch.testing._internal.opinfo.core import DecorateInfo

from tc.base.frozen import frozen
from tc.torch.backend import backend
from tc.torch.report import Report, is_random
from tests.torch.agreement import sharing, strides, tensors

# Results that are what was in memory.
_ARBITRARY: Final = ("empty", "new_empty", "resize")
# They promise nothing of the memory of their results.
_UNSAFE: Final = ("unsafe_",)
# PyTorch's tests whose tolerances are for other implementations of the same operator.
_TOLERANT: Final = (None, "TestCommon", "TestDecomp")
# What PyTorch's tracer and its decompositions make of a function, without ours.
_CAPTURED: Final = "aot_eager_decomp_partition"
# Where its tracer stops because a shape or a number of Python depends on data.
_OF_DATA: Final = (
    *("Dynamic shape operator", "Data dependent operator", "Tensor.item()", "data-dependent"),
    *("aten.nonzero.", "aten._local_scalar_dense."),
)
_LIMIT: Final = 60.0


class Kind(Enum):
    """What became of an entry, by its worst sample.

    EXCEPTED: PyTorch draws random numbers, or makes what has its shape from data.  LEFT: it runs other operators.
    """

    WHOLE = 0
    EXCEPTED = 1
    LEFT = 2
    ERROR = 3
    WRONG = 4


@frozen
class Outcome:
    """``left``: what PyTorch ran, with reasons.  ``traced``: where results lie in memory as PyTorch's tracer has them,
    not as eager has them.  ``why``: what is wrong with the last of the samples."""

    name: str
    kind: Kind
    left: dict[str, str]
    traced: str
    why: str
    samples: int
    seconds: float


def entries(dtype: torch.dtype = torch.float32) -> dict[str, Any]:
    """Those that PyTorch has for a type on the CPU, by name."""
    every: list[Any] = listed.op_db
    return {op.formatted_name: op for op in every if dtype in op.supported_dtypes("cpu")}


def check(
    name: str, op: Any, *, most: int | None = None, dtype: torch.dtype = torch.float32, gradients: bool = False
) -> Outcome:
    """Compares so many samples of an entry, by default all; the first that is wrong ends it."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    started = time.perf_counter()
    trial = _Trial(op, dtype)
    with (
        warnings.catch_warnings(),
        torch._dynamo.config.patch(recompile_limit=1 << 20, accumulated_recompile_limit=1 << 20),
        mock.patch.object(listed, "wrapper_set_seed", _called_plainly),
    ):
        warnings.simplefilter("ignore")
        for number, sample in enumerate(op.sample_inputs("cpu", dtype, gradients and op.supports_autograd)):
            if number == most or trial.kind in (Kind.ERROR, Kind.WRONG):
                break
            trial.run(sample)
    return Outcome(name, trial.kind, trial.left, trial.traced, trial.why, trial.count, time.perf_counter() - started)


def _called_plainly(function: Callable[..., Any], *positional: Any, **named: Any) -> Any:
    """The seed is set outside, where PyTorch's tracer does not stop."""
    return function(*positional, **named)


class _Trial:
    """Compares samples one by one, and keeps what became of them."""

    def __init__(self, op: Any, dtype: torch.dtype) -> None:
        self.op: Final = op
        self.dtype: Final = dtype
        self.close: Final = _tolerance(op, dtype)
        self.kind = Kind.WHOLE
        self.left: Final[dict[str, str]] = {}
        self.traced, self.why, self.count = "", "", 0

    def run(self, sample: Any) -> None:
        """Compares another one."""
        self.count += 1
        given, report = (sample.input, sample.args, sample.kwargs), Report()
        torch._dynamo.utils.counters.clear()
        wanted = self._results(given, lambda function: function)
        found = self._results(given, _compiled(functools.partial(backend, report=report)))
        if isinstance(wanted, Exception):
            return
        left = _left(report)
        self.left.update(left)
        if any(name.startswith("tracer") for name in left):
            torch._dynamo.reset()  # it would not look at this code again
        if isinstance(found, Exception):
            self.kind, self.why = Kind.ERROR, "".join(traceback.format_exception(found))
            return
        try:
            self._compare(found, wanted)
            if not self.op.name.startswith(_UNSAFE) and (own := _in_memory(found)) != (other := _in_memory(wanted)):
                self.traced = f"strides and what shares memory are {own}, not {other}"
                traced = self._results(given, _compiled(_CAPTURED))
                assert own == _in_memory(traced), self.traced
        except AssertionError as error:
            self.kind, self.why = Kind.WRONG, str(error)
            return
        self.kind = Kind.LEFT if any(map(_is_left, self.left.items())) else Kind(bool(self.left))

    def _results(self, given: Any, compiled: Callable[[Any], Any]) -> Any:
        """What the operator gives for copies of arguments, and these after the call; or what it raises."""

        def call(input: Any, args: Any, kwargs: Any) -> Any:
            return self.op.op(input, *args, **kwargs)

        own = _copied(given)
        torch.manual_seed(1)
        try:
            results = compiled(call)(*own)
            return {"result": results, "argument": own, "gradient": _gradients(results, own)}
        except Exception as error:  # noqa: BLE001  # whatever it is
            return error

    def _compare(self, found: Any, wanted: Any) -> None:
        """The structure, types, shapes and numbers of results, and of arguments after the call."""
        for what in wanted:
            (mine, form), (own, other) = (torch.utils._pytree.tree_flatten(one[what]) for one in (found, wanted))
            assert str(form) == str(other), f"{what}s are {form}, not {other}"
            for at, (one, two) in enumerate(zip(mine, own, strict=True)):
                _alike(f"{what} {at}", one, two)
                if what != "result" or not self.op.name.startswith(_ARBITRARY):
                    tolerant = not isinstance(one, torch.Tensor) or one.dtype is self.dtype
                    _equal(f"{what} {at}", one, two, self.close if tolerant else {})


def _compiled(backend: Any) -> Callable[[Any], Any]:
    return functools.partial(torch.compile, backend=backend, dynamic=False)


def _copied(given: Any) -> Any:
    """With tensors of their own, which share memory as those that are given."""
    memo: dict[int, Any] = {}

    def copied(one: torch.Tensor) -> torch.Tensor:
        own = copy.deepcopy(one.detach(), memo) if one.layout is torch.strided else one.detach().clone()
        return own.requires_grad_(one.requires_grad)

    return torch.utils._pytree.tree_map_only(torch.Tensor, copied, given)


def _gradients(results: Any, given: Any) -> list[torch.Tensor | None]:
    """Those of a sum of results with weights, by the arguments that require them."""
    wanted, into = ([one for one in tensors(values) if one.requires_grad] for values in (results, given))
    if not wanted or not into:
        return []
    generator = torch.Generator().manual_seed(2)
    weights = [torch.randn(one.shape, generator=generator, dtype=one.dtype) for one in wanted]
    return list(torch.autograd.grad(wanted, into, weights, allow_unused=True))


def _left(report: Report) -> dict[str, str]:
    """What PyTorch ran: operators, parts that could not be compiled, and what its tracer did not capture."""
    found = {name: reason for part in report.parts for name, reason in part.left.items() if "getitem" not in name}
    found |= {f"part: {why}": why for part in report.parts for why in part.failures}
    counters = torch._dynamo.utils.counters
    breaks = [" ".join(reason.split()) for reason in (*counters["graph_break"], *counters["unimplemented"])]
    found |= {f"tracer: {reason[:60]}": reason for reason in breaks}
    return found if report.parts or found else {"tracer": "captures nothing"}


def _is_left(left: tuple[str, str]) -> bool:
    name, reason = left
    if name.startswith("tracer"):
        return not any(text in reason for text in _OF_DATA)
    return not is_random(name) and "shape depends on data" not in reason


def _alike(what: str, one: Any, other: Any) -> None:
    assert type(one) is type(other), f"{what} is {type(one)}, not {type(other)}"
    if isinstance(one, torch.Tensor):
        for attribute in ("dtype", "shape", "layout", "device", "requires_grad"):
            left, right = getattr(one, attribute), getattr(other, attribute)
            assert left == right, f"{what} has {attribute} {left}, not {right}"


def _equal(what: str, one: Any, other: Any, close: dict[str, Any]) -> None:
    if isinstance(one, torch.Tensor | bool | int | float | complex):
        torch.testing.assert_close(one, other, equal_nan=True, msg=lambda text: f"{what}: {text}", **close)
    elif not callable(one):
        assert one == other, f"{what} is {one}, not {other}"


def _in_memory(found: Any) -> Any:
    """The strides of results, and which of them and of arguments share memory."""
    own = tensors(found["result"]) if isinstance(found, dict) else []
    own = [one for one in own if one.layout is torch.strided]
    return [strides(one) for one in own], sharing([*tensors(found["argument"]), *own]) if own else []


def _tolerance(op: Any, dtype: torch.dtype) -> dict[str, Any]:
    """That of the type, or that of the entry for it where it is greater."""
    found = [
        override.d[dtype]
        for decorator in op.decorators
        for override in (decorator.decorators if isinstance(decorator, DecorateInfo) else [decorator])
        if isinstance(override, toleranceOverride) and dtype in override.d
        if not isinstance(decorator, DecorateInfo)
        or (decorator.cls_name in _TOLERANT and decorator.device_type in (None, "cpu"))
    ]
    rtol, atol = torch.testing._comparison.default_tolerances(dtype)
    return {"atol": max([atol, *(one.atol for one in found)]), "rtol": max([rtol, *(one.rtol for one in found)])}


def checked_apart(name: str, op: Any, limit: float = _LIMIT, **named: Any) -> Outcome:
    """The outcome of ``check`` in a process of its own."""
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, name, op, named))
    process.start()
    theirs.close()
    failed = functools.partial(Outcome, name, Kind.ERROR, {}, "", samples=0, seconds=limit)
    try:
        if not ours.poll(limit):
            return failed(why=f"takes longer than {limit:g} s")
        found: Outcome = ours.recv()
        return found
    except EOFError:
        process.join()
        return failed(why=f"the process ended with {process.exitcode}")
    finally:
        process.kill()
        process.join()


def _child(connection: Connection, name: str, op: Any, named: dict[str, Any]) -> None:
    try:
        outcome = check(name, op, **named)
    except Exception:  # noqa: BLE001  # it is reported
        outcome = Outcome(name, Kind.ERROR, {}, "", traceback.format_exc(), 0, 0.0)
    connection.send(outcome)


def _summary(outcomes: Iterable[Outcome]) -> str:
    every = list(outcomes)
    counts = Counter(one.kind for one in every)
    lines = [", ".join(f"{counts[kind]} {kind.name.lower()}" for kind in Kind)]
    lines += [f"{one.kind.name} {one.name}, sample {one.samples - 1}: {one.why[-600:]}" for one in every if one.why]
    lines += [f"traced {one.name}: {one.traced}" for one in every if one.traced and not one.why]
    left = Counter(left for one in every for left in one.left.items())
    return "\n".join([*lines, *(f"{count} {name}: {why[:200]}" for (name, why), count in left.most_common())])


def main(arguments: Sequence[str] | None = None) -> None:
    """Checks entries, and prints what became of them."""
    parser = argparse.ArgumentParser(prog="python -m tests.torch.op_db")
    parser.add_argument("names", nargs="*", help="entries (default: all)")
    parser.add_argument("--samples", type=int, default=6, help="of each entry at most; 0: all")
    parser.add_argument("--gradients", action="store_true", help="compare gradients, too")
    parser.add_argument("--limit", type=float, default=_LIMIT, help="seconds for one entry")
    parser.add_argument("--json", type=Path, help="file to write, a line for each entry")
    given = parser.parse_args(arguments)
    torch.set_num_threads(1)
    check("exp", entries()["exp"], most=1)  # what every process needs
    outcomes = []
    for name, op in entries().items():
        if given.names and name not in given.names:
            continue
        one = checked_apart(name, op, given.limit, most=given.samples or None, gradients=given.gradients)
        outcomes.append(one)
        if given.json is not None:
            with given.json.open("a") as file:
                line = [one.name, one.kind.name, one.left, one.traced, one.why, one.samples, round(one.seconds, 2)]
                file.write(json.dumps(line) + "\n")
    print(_summary(outcomes))


if __name__ == "__main__":
    main()
