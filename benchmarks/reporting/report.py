"""Reports as people read them: a line per case while they are measured, and a table in Markdown."""

from __future__ import annotations

from typing import Final

from benchmarks.measuring.contender import Contender
from benchmarks.reporting.results import Report, Row
from benchmarks.reporting.scores import Time, Verdict, mean_ratio, score
from tc.base.counted import counted

HEADER: Final = f"{'case':18} {'best peer, us':>25} {'ours, us':>20} {'ratio':>7} {'least':>6} {'of bound':>9}  verdict"


def line(row: Row, report: Report) -> str:
    """One case in a line, and a line for each contender that is missing from it."""
    found = score(row, report)
    peer = "-" if found.peer is None else f"{found.peer.title} {_microseconds(found.times[found.peer])}"
    ours = "-" if found.ours is None else f"{_mark(found.ours)}{_microseconds(found.times[found.ours])}"
    ratio = "-" if found.ratio is None else f"{found.ratio:.2f}"
    fraction = "-" if found.fraction is None else f"{100 * found.fraction:.0f} %"
    verdict = found.verdict.value + (", noisy" if found.noisy else "")
    text = f"{row.case:18} {peer:>25} {ours:>20} {ratio:>7} {row.minimum:6.2f} {fraction:>9}  {verdict}"
    missing = [f"{'':18} {m.contender.title}: {'WRONG: ' if m.wrong else ''}{m.reason}" for m in row.missing]
    return "\n".join([text, *missing])


def _mark(ours: Contender) -> str:
    return "tuned " if ours is Contender.TUNED else ""


def _microseconds(time: Time) -> str:
    return _digits(time.median)


def _digits(seconds: float) -> str:
    """Microseconds, with three digits, or with all before the point."""
    value = seconds * 1e6
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def summary(report: Report) -> str:
    """The geometric mean and how many cases reached what."""
    verdicts = [score(row, report).verdict for row in report.rows]
    counts = ", ".join(f"{verdicts.count(v)} {v.value}" for v in Verdict if v in verdicts)
    mean = mean_ratio(report)
    return f"geometric mean of best peer / ours: {'-' if mean is None else f'{mean:.2f}'}; {counts or 'no cases'}"


def failures(report: Report) -> tuple[str, ...]:
    """What makes a run a failure: results that are wrong, and cases that ours cannot run."""
    return tuple(
        f"{row.case}, {missing.contender.title}: {missing.reason}"
        for row in report.rows
        for missing in row.missing
        if missing.wrong or missing.contender is Contender.OURS
    )


def markdown(report: Report) -> str:
    """A table for a page: microseconds, with the ratio that counts; what is missing is an empty place."""
    shown = [c for c in Contender if any(m.contender is c for row in report.rows for m in row.measured)]
    titles = ["kernel", *(c.title for c in shown), "best peer / ours", "at least", "of the bound"]
    titles += ["fresh outputs"] if report.machine.accelerator is None else ["bound", "goal on an H200"]
    lines = [_cells(titles), _cells(["---", *("---:" for _ in titles[1:])])]
    lines += [_cells(_table_row(row, report, shown)) for row in report.rows]
    mean = mean_ratio(report)
    notes = (_measurement(report), f"Geometric mean of best peer / ours: {'-' if mean is None else f'{mean:.2f}'}.")
    return "\n".join([*lines, "", *notes])


def _measurement(report: Report) -> str:
    """What was measured how, in a sentence or two."""
    machine, roofs, rounds = report.machine, report.roofs, report.settings.rounds
    versions = ", ".join(f"{name} {version}" for name, version in machine.libraries.items())
    host = f"{machine.model} ({counted(machine.cores, 'core')}, {machine.system}, {versions}, {machine.compiler})"
    reached = f"{roofs.operations / 1e9:,.0f} GFLOP/s and {roofs.bandwidths[-1].best / 1e9:,.1f} GB/s of memory"
    match machine.accelerator:
        case None:
            return (
                f"Microseconds of a call, medians of {counted(rounds, 'round')} or more, "
                f"{counted(report.settings.threads, 'thread')} on "
                f"{host}, which reaches {reached}, and {roofs.fresh / 1e9:.1f} GB/s of new memory.  "
                "*Fresh outputs*: the part of ours that goes away when the outputs exist already."
            )
        case gpu:
            return (
                f"Microseconds of a call in float32, medians of {counted(rounds, 'round')} or more, between events of "
                f"the GPU before and after it, with cold caches; of JAX, which works on streams of its own, with what "
                f"the process does.  {gpu.model} ({gpu.architecture}, {gpu.multiprocessors} multiprocessors, "
                f"{gpu.driver}, {gpu.compiler}), which reaches {reached}, and takes {_digits(roofs.launch)} for a "
                f"kernel that does nothing, in {host}."
            )


def _table_row(row: Row, report: Report, shown: list[Contender]) -> list[str]:
    found = score(row, report)
    best = {contender for contender in (found.ours, found.peer) if contender is not None}
    times = [_bold(_microseconds(found.times[c]), bold=c in best) if c in found.times else "" for c in shown]
    ratio = "" if found.ratio is None else f"{found.ratio:.2f}"
    marks = {
        Verdict.REACHED: "",
        Verdict.MISSED: " (missed)",
        Verdict.AT_BOUND: " (at the bound)",
        Verdict.INCOMPLETE: "",
        Verdict.WRONG: " (WRONG)",
    }
    noise = " (noisy)" if found.noisy else ""
    fraction = "" if found.fraction is None else f"{100 * found.fraction:.0f} %"
    cells = [row.case, *times, ratio + marks[found.verdict] + noise, f"{row.minimum:g}", fraction]
    if report.machine.accelerator is None:
        return [*cells, "" if found.fresh is None else f"{100 * found.fresh:.0f} %"]
    return [*cells, _digits(found.bound), "" if row.goal is None else _digits(row.goal)]


def _bold(text: str, *, bold: bool) -> str:
    return f"**{text}**" if bold else text


def _cells(texts: list[str]) -> str:
    return f"| {' | '.join(texts)} |"
