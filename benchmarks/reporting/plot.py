"""The picture of a report: how many times quicker than the best peer ours is, case by case."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from benchmarks.reporting.report import summary
from benchmarks.reporting.results import Report
from benchmarks.reporting.scores import Score, score
from tc.base.counted import counted

_REACHED: Final = "#2a7f62"
_MISSED: Final = "#c8553d"
_MINIMUM: Final = "#22223b"


def plot(report: Report, path: Path) -> None:
    """Draws a bar per case that has a ratio, on a logarithmic axis, with its minimum as a mark.

    ImportError without Matplotlib; ValueError if no case has a ratio.
    """
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    scored = [(row, found, found.ratio) for row in report.rows if (found := score(row, report)).ratio is not None]
    bars = [(row, found, ratio) for row, found, ratio in scored if ratio is not None]
    if not bars:
        raise ValueError("no case has both ours and a peer, so there is nothing to draw")
    figure = Figure(figsize=(9, 1.6 + 0.32 * len(bars)), layout="constrained")
    axes = figure.subplots()
    places = range(len(bars))
    ratios = [ratio for _, _, ratio in bars]
    minima = [row.minimum for row, _, _ in bars]
    colours = [_REACHED if ratio >= least else _MISSED for ratio, least in zip(ratios, minima, strict=True)]
    # Bars start at 1, where ours and the best peer are equal.
    axes.barh(places, [ratio - 1 for ratio in ratios], left=1, color=colours, height=0.66)
    axes.scatter(minima, places, marker="|", s=140, linewidths=2, color=_MINIMUM, zorder=3, label="asked for")
    for place, (_, found, ratio) in zip(places, bars, strict=True):
        axes.annotate(
            _label(found, ratio),
            (max(ratio, 1, minima[place]), place),
            (6, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xlim(min(0.8, 0.9 * min(ratios)), 2.2 * max(*ratios, *minima))
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=(0.2, 0.5, 1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}x"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(places, [row.case for row, _, _ in bars])
    axes.invert_yaxis()
    axes.set_xlabel("time of the best peer / ours")
    axes.set_title(f"{summary(report)}\n{_machine(report)}", fontsize=10)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="lower right", frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)


def _machine(report: Report) -> str:
    gpu = report.machine.accelerator
    return f"{report.machine.model}, {counted(report.settings.threads, 'thread')}" if gpu is None else gpu.model


def _label(found: Score, ratio: float) -> str:
    peer = "" if found.peer is None else f" ({found.peer.title})"
    return f"{ratio:.2f}{peer}" + (", noisy" if found.noisy else "")
