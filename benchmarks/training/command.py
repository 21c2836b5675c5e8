"""What ``python -m benchmarks training`` prints and writes."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.measuring.machine import describe_machine
from benchmarks.training.harness import CONTENDERS, HEADER, Result, measured, summary

WORKER = "benchmarks.training.worker"


def run(given: argparse.Namespace) -> None:
    """Measures the workloads; with ``--output``, all of them go into a file of JSON and a picture there."""
    print(HEADER, flush=True)
    results: list[Result] = []
    for result in measured(given.names, threads=given.threads, rounds=given.rounds, module=WORKER):
        print(result.line, flush=True)
        results.append(result)
    print(summary(results))
    if given.output is not None:
        write(results, given.output, given.threads)


def write(results: list[Result], folder: Path, threads: int) -> None:
    """``training.json`` and ``training.png``."""
    folder.mkdir(parents=True, exist_ok=True)
    machine = describe_machine()
    found = {"machine": asdict(machine), "threads": threads, "workloads": [asdict(result) for result in results]}
    (folder / "training.json").write_text(json.dumps(found, indent=1) + "\n")
    _draw(results, folder / "training.png", f"{machine.model}, {threads} threads; {summary(results)}")


def _draw(results: list[Result], path: Path, title: str) -> None:
    """The losses of each workload, of ours on those of the others."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(3 * max(len(results), 2), 3), layout="constrained")
    styles = {"eager": ("black", 2.5, "-"), "inductor": ("#c8553d", 1.5, "--"), "ours": ("#2a7f62", 1.0, "-")}
    for place, result in enumerate(results, 1):
        axes = figure.add_subplot(1, len(results), place)
        for contender in CONTENDERS:
            color, width, style = styles[contender]
            losses = result.losses.get(contender, [])
            axes.plot(losses, color=color, linewidth=width, linestyle=style, label=contender)
        ratio = "" if result.ratio is None else f": {result.ratio:.2f} times eager"
        axes.set_title(f"{result.name}{ratio}", fontsize=9)
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("loss")
    figure.axes[0].legend(frameon=False, fontsize=8)
    figure.suptitle(title, fontsize=9)
    figure.savefig(path, dpi=120)
