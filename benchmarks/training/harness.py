"""The workloads, each contender in a process of its own, in turns."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from benchmarks.measuring.turns import EndedError, TurnProcess

# How far losses of ours in float64 may be from eager PyTorch's.
CLOSE: Final = 1e-4
CONTENDERS: Final = ("eager", "inductor", "ours")
HEADER: Final = (
    f"{'milliseconds of a step':24}{'eager':>9}{'inductor':>10}{'ours':>9}{'ratio':>7}{'losses apart':>14}  score"
)


@dataclass(frozen=True, slots=True)
class Result:
    """What came of a workload, by contender.

    ``seconds``: of a step at best.  ``losses``: before each step; ``exact``: the same in float64.  ``scores``: what a
    whole training reaches, where there is something to reach.  ``first``: seconds of the first step, which compiles.
    ``left``: how often ours left an operator to PyTorch.  ``wrong``: what ended, and gradients, statistics and losses
    of ours that are too far off.
    """

    name: str
    seconds: dict[str, float]
    losses: dict[str, list[float]]
    exact: dict[str, list[float]]
    scores: dict[str, float]
    first: dict[str, float]
    left: dict[str, int]
    wrong: list[str]

    @property
    def ratio(self) -> float | None:
        """Of eager PyTorch's time to ours."""
        times = [self.seconds.get(name) for name in ("eager", "ours")]
        return None if self.wrong or None in times else self.seconds["eager"] / self.seconds["ours"]

    @property
    def apart(self) -> float:
        """The greatest difference between a loss of ours and eager PyTorch's, in float64."""
        return apart(self.exact.get("eager", []), self.exact.get("ours", []))

    @property
    def line(self) -> str:
        """A row of the table that ``HEADER`` begins."""
        widths = zip(CONTENDERS, (9, 10, 9), strict=True)
        times = "".join(f"{self.seconds[c] * 1e3:{w}.1f}" if c in self.seconds else f"{'-':>{w}}" for c, w in widths)
        ratio = f"{'-':>7}" if self.ratio is None else f"{self.ratio:7.2f}"
        said = [f"{score:.3f}" for name, score in self.scores.items() if name == "ours"]
        said += [f"wrong: {', '.join(self.wrong)}"] if self.wrong else []
        return f"{self.name:24}{times}{ratio}{self.apart:14.1e}  {'; '.join(said)}".rstrip()


def apart(first: Sequence[float], second: Sequence[float]) -> float:
    """The greatest difference."""
    return max((abs(one - other) for one, other in zip(first, second, strict=False)), default=0.0)


def measured(names: Sequence[str], *, threads: int, rounds: int, module: str) -> Iterator[Result]:
    """The workloads, one after the other; ``module``: of the worker."""
    for name in names:
        yield _measured(name, threads, rounds, module)


def _measured(name: str, threads: int, rounds: int, module: str) -> Result:
    workers: dict[str, TurnProcess] = {}
    made: dict[str, dict[str, Any]] = {}
    wrong: list[str] = []
    seconds: dict[str, float] = {}
    try:
        for contender in CONTENDERS:  # one after the other: each has all threads while it trains
            workers[contender] = TurnProcess(contender, module, [name, contender, str(threads)])
            made[contender] = workers[contender].read()
        turns = [{own: worker.turn()["least"] for own, worker in workers.items()} for _ in range(rounds)]
        seconds = {own: min(turn[own] for turn in turns) for own in workers} if turns else {}
    except EndedError as ended:
        wrong.append(str(ended))
    finally:
        for worker in workers.values():
            worker.end()
    own = made.get("ours", {})
    losses, exact = ({contender: said[what] for contender, said in made.items()} for what in ("losses", "exact"))
    wrong += own.get("wrong", [])
    far = apart(exact.get("eager", []), exact.get("ours", []))
    wrong += [] if far <= CLOSE else [f"losses are {far:.1e} apart"]
    scores = {contender: said["score"] for contender, said in made.items() if said["score"] is not None}
    first = {contender: said["first"] for contender, said in made.items()}
    return Result(name, seconds, losses, exact, scores, first, own.get("left", {}), wrong)


def summary(results: Sequence[Result]) -> str:
    """How many are right, and geometric means over eager."""
    right = [result for result in results if not result.wrong]
    line = f"{len(right)} of {len(results)} right"
    ratios = [result.ratio for result in right if result.ratio is not None]
    inductor = [own.seconds["eager"] / own.seconds["inductor"] for own in right if "inductor" in own.seconds]
    if ratios:
        line += f"; over eager {statistics.geometric_mean(ratios):.2f}, at least {min(ratios):.2f}"
    if inductor:
        line += f"; Inductor {statistics.geometric_mean(inductor):.2f}"
    return line
