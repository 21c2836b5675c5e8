"""``python -m benchmarks models``: imported models beside onnxruntime, in processes apart.

Both get the same random inputs and number of threads, and take turns of a fraction of a second; the least time of all
calls counts.  Before that, their results are compared.  The first call plans the model and compiles its kernels; what
planning takes of it is measured in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from benchmarks.apart import least_time

CONTENDERS: Final = ("ours", "onnxruntime")
_PLANNING: Final = "planning"
HEADER: Final = (
    f"{'milliseconds':40}{'kernels':>9}{'planning':>10}{'first call':>12}{'ours':>10}{'onnxruntime':>13}{'ratio':>8}"
)
_TURNS: Final = 5
_PAUSE: Final = 0.05
# Of the largest element: sums of float32 in another order.
_CLOSE: Final = 1e-3


class DifferentError(Exception):
    """The contenders of a model have other results."""


@dataclass(frozen=True, slots=True)
class Model:
    """A file, and shapes of its inputs in order; none are the declared ones, where open sizes are 1."""

    path: Path
    shapes: tuple[tuple[int, ...], ...]

    @staticmethod
    def parse(text: str) -> Model:
        """As in ``model.onnx`` or ``model.onnx=1x3x224x224,1x10``."""
        path, _, shapes = text.partition("=")
        found = [tuple(map(int, shape.split("x"))) for shape in shapes.split(",") if shape]
        return Model(Path(path), tuple(found))


@dataclass(frozen=True, slots=True)
class Found:
    """Seconds of a call at best of each contender; of ours also the first, and how many kernels there are.

    ``planning``: of what comes before compiling, in a new process; NaN where the plan depends on contents of inputs.
    """

    model: Model
    kernels: int
    planning: float
    first: float
    ours: float
    peer: float

    @property
    def ratio(self) -> float:
        """Of the peer's time to ours."""
        return self.peer / self.ours

    @property
    def line(self) -> str:
        """A row of the table that ``HEADER`` begins."""
        times = f"{self.planning * 1e3:10,.0f}{self.first * 1e3:12,.0f}{self.ours * 1e3:10,.2f}{self.peer * 1e3:13,.2f}"
        return f"{self.model.path.stem:40}{self.kernels:9}{times}{self.ratio:8.2f}"


def measure_models(models: Sequence[Model], threads: int, rounds: int, cache: Path | None = None) -> Iterator[Found]:
    """Each model in so many rounds of turns; DifferentError where the results differ.

    ``cache``: a file that ``tc-tune`` has written, whose kernels ours takes; None: those of the process's own
    cache, if there is one.
    """
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            planner = _Process(model, _PLANNING, threads, Path(folder))
            (planning,) = planner.read()
            planner.end()
            contenders = [_Process(model, name, threads, Path(folder), cache) for name in CONTENDERS]
            try:
                made = [contender.read() for contender in contenders]
                _compare(model, Path(folder))
                times = [[contender.turn() for contender in contenders] for _ in range(rounds * _TURNS)]
            finally:
                for contender in contenders:
                    contender.end()
        ours, peer = (min(column) for column in zip(*times, strict=True))
        yield Found(model, int(made[0][0]), planning, made[0][1], ours, peer)


def _compare(model: Model, folder: Path) -> None:
    ours, peers = (np.load(folder / f"{name}.npz") for name in CONTENDERS)
    for name in peers:
        first, second = ours[name].astype(np.float64), peers[name].astype(np.float64)
        largest = np.abs(second).max(initial=0)
        if first.shape != second.shape or not np.allclose(first, second, rtol=_CLOSE, atol=_CLOSE * largest):
            raise DifferentError(f"{model.path.stem}: the results called {name} differ")


class _Process:
    """A contender in a process of its own, which says that it is ready, and waits for its turns."""

    def __init__(self, model: Model, contender: str, threads: int, folder: Path, cache: Path | None = None) -> None:
        shapes = ",".join("x".join(map(str, shape)) for shape in model.shapes)
        arguments = [contender, f"{model.path}={shapes}", str(threads), str(folder)]
        command = [sys.executable, "-m", "benchmarks.models", *arguments]
        kept = {} if cache is None else {"TC_CACHE": str(cache), "TC_CACHE_MODE": "warn"}
        self._process: Final = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **kept}
        )

    def read(self) -> tuple[float, ...]:
        """The numbers of a line; CalledProcessError where the process ended."""
        assert self._process.stdout is not None
        found = self._process.stdout.readline()
        if not found:
            raise subprocess.CalledProcessError(self._process.wait(), self._process.args)
        return tuple(map(float, found.split()))

    def turn(self) -> float:
        """The least seconds of a call in one turn."""
        assert self._process.stdin is not None
        time.sleep(_PAUSE)
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self.read()[0]

    def end(self) -> None:
        """Ends the process."""
        self._process.communicate()


def main(arguments: list[str], turns: Iterable[str] = sys.stdin) -> None:
    """Calls a model once, keeps its results, and prints the least seconds of a call for every line that comes in."""
    contender, text, threads, folder = arguments
    model = Model.parse(text)
    if contender == _PLANNING:
        print(_planning(model), flush=True)
        return
    started = time.perf_counter()
    call, results, kernels = (_ours if contender == "ours" else _onnxruntime)(model, int(threads))
    first = time.perf_counter() - started
    arrays: dict[str, Any] = {str(number): array for number, array in enumerate(results)}
    np.savez(Path(folder) / f"{contender}.npz", **arrays)
    print(kernels, first, flush=True)
    for _ in turns:
        print(least_time(call), flush=True)


Ready = tuple[Callable[[], object], Sequence[np.ndarray], int]


def _ours(model: Model, threads: int) -> Ready:
    import tc
    import tc.graph

    tc.set_threads(threads)
    loaded = tc.graph.load(model.path)
    declared = {own.name: (own.type.value, own.shape or ()) for own in loaded.inputs}
    arrays = _arrays(model, declared)
    found = loaded.run(loaded.outputs, arrays)
    return lambda: loaded.run(loaded.outputs, arrays), list(found.values()), loaded.kernels


def _planning(model: Model) -> float:
    """Seconds of the first plan of a process, of a model that is loaded."""
    import tc.graph

    loaded = tc.graph.load(model.path)
    named = {own.name: shape for own, shape in zip(loaded.inputs, model.shapes, strict=False)}
    for own in loaded.inputs:
        extents = own.shape or ()
        named.setdefault(own.name, tuple(extent if isinstance(extent, int) else 1 for extent in extents))
    started = time.perf_counter()
    try:
        loaded.plan(**named)
    except tc.GraphError:
        return float("nan")
    return time.perf_counter() - started


def _onnxruntime(model: Model, threads: int) -> Ready:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(model.path, options, providers=["CPUExecutionProvider"])
    types = {"tensor(float)": "float32", "tensor(int64)": "int64", "tensor(int32)": "int32", "tensor(bool)": "bool"}
    declared = {own.name: (types[own.type], tuple(own.shape)) for own in session.get_inputs()}
    arrays = _arrays(model, declared)
    return lambda: session.run(None, arrays), session.run(None, arrays), 0


def _arrays(model: Model, declared: Mapping[str, tuple[str, Sequence[object]]]) -> dict[str, np.ndarray]:
    """Random inputs; both contenders draw the same ones."""
    random, found = np.random.default_rng(0), {}
    for number, (name, (type, extents)) in enumerate(declared.items()):
        usual = tuple(extent if isinstance(extent, int) else 1 for extent in extents)
        shape = model.shapes[number] if number < len(model.shapes) else usual
        drawn = random.normal(size=shape) if type.startswith("float") else random.integers(0, 256, shape)
        found[name] = np.asarray(drawn).astype(type)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
