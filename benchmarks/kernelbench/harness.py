"""``python -m benchmarks kernelbench PATH``: problems of a checkout, each contender in a process of its own."""

from __future__ import annotations

import contextlib
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from benchmarks.kernelbench.problem import Problem, UnfitError, scaled
from tc.torch.report import is_random

CONTENDERS: Final = ("eager", "inductor", "ours")
HEADER: Final = f"{'microseconds':52}{'eager':>10}{'inductor':>10}{'ours':>10}{'ratio':>8}  "
_PAUSE: Final = 0.03
# A ratio above this is looked into by hand: it may be too good to be true.
_SUSPECT: Final = 10.0
_CLOSE: Final = 1e-3
# Seconds of a first call above which they are shown.
_LONG: Final = 60.0
# Seconds after which a contender that says nothing is ended.
_PATIENCE: Final = 1800.0


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a problem.  ``seconds``: by contender, of a call at best.  ``left``: operators that PyTorch ran.

    ``error``: the greatest difference from float64, in parts of the greatest element; ``wrong`` says what is.
    ``first``: seconds of the slowest first call, with what it compiles.  ``breaks``: of graphs, by compiled contender.
    """

    name: str
    sizes: dict[str, int]
    seconds: dict[str, float]
    error: float
    left: dict[str, int]
    first: float
    wrong: str = ""
    breaks: Mapping[str, int] = field(default_factory=dict)

    @property
    def level(self) -> int:
        """The number of the level."""
        return int(self.name.split("/")[0].removeprefix("level"))

    @property
    def random_only(self) -> bool:
        """Whether PyTorch ran no operator but those of random numbers."""
        return all(is_random(name) for name in self.left)

    @property
    def ratio(self) -> float | None:
        """Of eager PyTorch's time to ours."""
        if self.wrong or "ours" not in self.seconds or "eager" not in self.seconds:
            return None
        return self.seconds["eager"] / self.seconds["ours"]

    @property
    def line(self) -> str:
        """A row of the table that ``HEADER`` begins."""
        times = "".join(f"{self.seconds[c] * 1e6:10,.0f}" if c in self.seconds else f"{'-':>10}" for c in CONTENDERS)
        ratio = f"{'-':>8}" if self.ratio is None else f"{self.ratio:8.2f}"
        marks = [self.wrong] if self.wrong else []
        marks += [f"left: {', '.join(self.left)}"] if self.left else []
        own, other = self.breaks.get("ours", 0), self.breaks.get("inductor")
        marks += [f"graph breaks: {own}, Inductor {other}"] if other is not None and own > other else []
        marks += [f"graph breaks: {own}"] if other is None and own else []
        marks += [f"compiled for {self.first:.0f} s"] if self.first > _LONG else []
        marks += ["suspect"] if self.ratio is not None and self.ratio > _SUSPECT else []
        return f"{self.name[:51]:52}{times}{ratio}  {'; '.join(marks)}"


def problems(checkout: Path, levels: Sequence[int], numbers: Sequence[int]) -> list[Path]:
    """The files of these levels in order, or those of them with these numbers."""
    found: list[Path] = []
    for level in levels:
        files = (checkout / "KernelBench" / f"level{level}").glob("*.py")
        numbered = [(int(match[1]), path) for path in files if (match := re.match(r"(\d+)_", path.name))]
        found += [path for number, path in sorted(numbered) if not numbers or number in numbers]
    return found


def measured(
    paths: Sequence[Path], *, threads: int, seeds: int, rounds: int, contenders: Sequence[str] = CONTENDERS
) -> Iterator[Result]:
    """The problems, one after the other."""
    for path in paths:
        name = f"{path.parent.name}/{path.stem}"
        try:
            problem = scaled(path)
        except UnfitError as error:
            yield Result(name, {}, {}, 0.0, {}, 0.0, str(error))
            continue
        yield _measured(problem, threads, seeds, rounds, contenders)


def _measured(problem: Problem, threads: int, seeds: int, rounds: int, names: Sequence[str]) -> Result:
    with tempfile.TemporaryDirectory() as folder:
        workers = {name: _Worker(problem, name, threads, Path(folder), seeds) for name in names}
        wrong, seconds, made, error = "", {}, {}, 0.0
        try:
            made = {name: worker.read() for name, worker in workers.items()}
            if "ours" in made:
                error, wrong = _compared(Path(folder), seeds)
            turns = [{name: worker.turn()["least"] for name, worker in workers.items()} for _ in range(rounds)]
            seconds = {name: min(turn[name] for turn in turns) for name in names} if turns else {}
        except _EndedError as ended:
            wrong = f"{ended.contender} ended: {ended.last}"
        finally:
            for worker in workers.values():
                worker.end()
    own = made.get("ours", {})
    breaks = {name: found["breaks"] for name, found in made.items() if name != "eager"}
    return Result(
        problem.name, dict(problem.sizes), seconds, error, own.get("left", {}), own.get("first", 0.0), wrong, breaks
    )


def _compared(folder: Path, seeds: int) -> tuple[float, str]:
    """The greatest error of ours, and what is wrong with it."""
    import torch

    from benchmarks.kernelbench.worker import error_of

    worst = 0.0
    for seed in range(seeds):
        exact, eager, ours = (torch.load(folder / f"{name}-{seed}.pt") for name in ("exact", "eager", "ours"))
        for wide, narrow, own in zip(exact, eager, ours, strict=True):
            if own.dtype is not narrow.dtype or own.stride() != narrow.stride():
                return worst, f"seed {seed}: type or strides are others"
            worst = max(worst, error_of(own, wide))
            # Where float32 itself is far off, so may we be.
            if error_of(own, wide) > max(_CLOSE, 4 * error_of(narrow, wide)):
                return worst, f"seed {seed}: error {error_of(own, wide):.1e}"
    return worst, ""


class _EndedError(Exception):
    def __init__(self, contender: str, last: str) -> None:
        super().__init__(contender)
        self.contender = contender
        self.last = last


class _Worker:
    """The process of a contender: a fork of one that has imported PyTorch and the compiler."""

    def __init__(self, problem: Problem, contender: str, threads: int, folder: Path, seeds: int) -> None:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["benchmarks.kernelbench.worker"])
        self._contender: Final = contender
        self._connection, own = context.Pipe()
        # A process that has no daemons of its own could not compile in others.
        self._process: Final = context.Process(
            target=_serve, args=(own, problem, contender, threads, folder, seeds), daemon=False
        )
        self._process.start()
        own.close()

    def read(self) -> dict[str, Any]:
        """What it says next."""
        if not self._connection.poll(_PATIENCE):
            self._process.kill()
            raise _EndedError(self._contender, f"says nothing for {_PATIENCE:.0f} seconds")
        try:
            said = self._connection.recv()
        except EOFError:
            self._process.join()
            raise _EndedError(self._contender, f"exit code {self._process.exitcode}") from None
        if isinstance(said, str):
            raise _EndedError(self._contender, " ".join(said.split())[:300])
        found: dict[str, Any] = said
        return found

    def turn(self) -> dict[str, Any]:
        """The times of a turn."""
        time.sleep(_PAUSE)
        self._connection.send(True)
        return self.read()

    def end(self) -> None:
        """Ends the process."""
        with contextlib.suppress(BrokenPipeError):
            self._connection.send(False)
        self._process.join(_PAUSE * 100)
        self._process.kill()
        self._process.join()


def _serve(*arguments: Any) -> None:
    from benchmarks.kernelbench.worker import serve

    serve(*arguments)


def summary(results: Sequence[Result]) -> str:
    """Of each level: how many are right, how many without PyTorch's operators, and geometric means over eager."""
    lines = []
    for level in sorted({result.level for result in results}):
        own = [result for result in results if result.level == level]
        right = [result for result in own if not result.wrong]
        ratios = [result.ratio for result in right if result.ratio is not None]
        inductor = [r.seconds["eager"] / r.seconds["inductor"] for r in right if "inductor" in r.seconds]
        whole = sum(result.random_only for result in right)
        line = (
            f"level{level}: {len(right)} of {len(own)} right, {whole} without operators of PyTorch but random numbers"
        )
        more = sum(own.breaks.get("ours", 0) > own.breaks.get("inductor", own.breaks.get("ours", 0)) for own in right)
        line += f", {more} with more graph breaks"
        if ratios:
            line += f"; over eager {statistics.geometric_mean(ratios):.2f}, at least {min(ratios):.2f}"
        if inductor:
            line += f"; Inductor {statistics.geometric_mean(inductor):.2f}"
        lines.append(line)
    return "\n".join(lines)


def as_json(results: Sequence[Result]) -> list[dict[str, Any]]:
    """The results as data."""
    return [asdict(result) for result in results]
