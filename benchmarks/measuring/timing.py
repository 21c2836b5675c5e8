"""Timing, and what machine it was on."""

from __future__ import annotations

import os
import platform
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tc.base.counted import counted


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run: the median over the rounds, and the quickest and slowest round."""

    median: float
    least: float
    most: float


def measure(run: Callable[[], object], rounds: int = 7, at_least: float = 0.02) -> Timing:
    """Rounds of as many repetitions as take ``at_least`` seconds, after one to warm up; seconds per repetition."""
    run()
    started = time.perf_counter()
    run()
    repetitions = max(1, int(at_least / max(time.perf_counter() - started, 1e-9)))
    times: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        for _ in range(repetitions):
            run()
        times.append((time.perf_counter() - started) / repetitions)
    return Timing(statistics.median(times), min(times), max(times))


def machine() -> str:
    """Processor, number of cores this process may use, and versions."""
    name = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        models = [line for line in cpuinfo.read_text(encoding="utf-8").splitlines() if line.startswith("model name")]
        name = models[0].partition(":")[2].strip() if models else name
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    cores = counted(count or 1, "core")
    return f"{name}, {cores}, {platform.system()} {platform.machine()}, Python {platform.python_version()}"
