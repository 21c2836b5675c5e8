"""What ``python -m benchmarks kernelbench`` prints and writes."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.kernelbench.harness import HEADER, Result, as_json, measured, problems, summary
from benchmarks.measuring.machine import describe_machine


def run(given: argparse.Namespace) -> None:
    """Measures the problems; with ``--output``, all of them go into a file of JSON and a picture there."""
    warnings.simplefilter("ignore")  # of the models
    paths = problems(given.path, given.level or [1], [int(number) for number in given.problems])
    if not paths:
        sys.exit(f"no problems of these levels in {given.path}: give a checkout of KernelBench")
    print(HEADER, flush=True)
    results: list[Result] = []
    others = given.contenders
    for result in measured(
        paths, threads=given.threads, seeds=given.seeds, rounds=given.rounds, contenders=("eager", *others)
    ):
        print(result.line, flush=True)
        results.append(result)
    print(summary(results))
    if given.output is not None:
        write(results, given.output, given.threads)


def write(results: list[Result], folder: Path, threads: int) -> None:
    """``kernelbench-1.json`` and ``kernelbench-1.png``, where 1 is the level; several levels stand in the names.

    Problems of the same machine that are in the file already stay there, if they were not measured again.
    """
    folder.mkdir(parents=True, exist_ok=True)
    machine = describe_machine()
    said: dict[str, Any] = {"machine": asdict(machine), "threads": threads}
    levels = sorted({result.level for result in results})
    name = "-".join(["kernelbench", *map(str, levels)])
    file = folder / f"{name}.json"
    every = _with_earlier(results, file, said)
    file.write_text(json.dumps({**said, "problems": as_json(every)}, indent=1) + "\n")
    _draw(every, folder / f"{name}.png", f"{machine.model}, {threads} threads")


def _with_earlier(results: list[Result], file: Path, said: dict[str, Any]) -> list[Result]:
    """The results, and those of other problems in a file that says the same of the machine; in order of problems."""
    if not file.exists():
        return results
    earlier = json.loads(file.read_text())
    own = {result.name: result for result in results}
    if all(earlier.get(key) == json.loads(json.dumps(value)) for key, value in said.items()):
        own = {own["name"]: Result(**own) for own in earlier["problems"]} | own
    return sorted(own.values(), key=_number)


def _number(result: Result) -> tuple[int, int]:
    return result.level, int(result.name.split("/")[1].split("_")[0])


def _draw(results: list[Result], path: Path, title: str) -> None:
    """A mark for each problem: how many times quicker than eager PyTorch ours and Inductor are."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    axes = figure.subplots()
    shown = [result for result in results if result.ratio is not None]
    places = range(len(shown))
    axes.scatter(places, [r.ratio or 1.0 for r in shown], s=14, color="#2a7f62", label="ours", zorder=3)
    peers = [(at, r.seconds["eager"] / r.seconds["inductor"]) for at, r in enumerate(shown) if "inductor" in r.seconds]
    columns, ratios = [at for at, _ in peers], [ratio for _, ratio in peers]
    axes.scatter(columns, ratios, s=10, color="#c8553d", marker="x", label="Inductor")
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set_yscale("log")
    axes.set_ylabel("time of eager PyTorch / own")
    axes.set_xlabel("problems in order")
    said = summary(results).replace("; over eager", "\nover eager")  # a line is wider than the picture
    axes.set_title(f"{said}\n{title}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
