"""``python -m benchmarks predict``: predicted times beside measured and published ones; nothing runs, and no GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from benchmarks.predicting.validation import (
    OURS,
    OURS_LATER,
    Judged,
    Verdict,
    judged_measured,
    judged_published,
    verdict,
)

HEADER: Final = f"{'measured by':16} {'case':24} {'on':10} {'us':>9} {'predicted':>9} {'ratio':>6} {'floor':>8}  limits"
_LIMITS: Final = 2


def lines() -> Iterator[str]:
    """A line for each case, and what follows for each source and device."""
    yield HEADER
    groups: dict[tuple[str, str], list[Judged]] = {}
    for case in (*judged_measured(), *judged_published()):
        groups.setdefault((case.source, case.device), []).append(case)
        yield _line(case)
    yield ""
    for (source, device), cases in groups.items():
        yield f"{source} on {device}: {_summary(verdict(cases))}"
    libraries = [case for (source, _), cases in groups.items() if source not in (OURS, OURS_LATER) for case in cases]
    yield f"all that is published: {_summary(verdict(libraries))}"


def _line(case: Judged) -> str:
    kernel = max(case.prediction.kernels, key=lambda own: own.seconds)
    limits = ", ".join(f"{limit.value} {share:.0%}" for limit, share in kernel.shares[:_LIMITS])
    times = f"{1e6 * case.seconds:9.1f} {1e6 * case.prediction.seconds:9.1f} {case.ratio:6.2f}"
    return f"{case.source:16} {case.case:24} {case.device:10} {times} {1e6 * case.prediction.floor:8.1f}  {limits}"


def _summary(found: Verdict) -> str:
    low, middle, high = found.quartiles
    return (
        f"{found.count} cases, Kendall's tau {found.tau:.2f}, predicted / measured {low:.2f} {middle:.2f} {high:.2f} "
        f"(quartiles), {found.off:.0%} off (median), {found.below} floors below"
    )
