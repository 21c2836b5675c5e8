"""What compiling the kernels of a report cost, stage by stage."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from benchmarks.measuring.contender import Contender
from benchmarks.reporting.results import Report

_PASSES: Final = (
    *("distribute products", "register tile", "tile", "vectorize", "parallelize", "chunk steps", "promote", "unroll"),
    *(
        "linearize rows",
        "part nests",
        "join chains",
        "gather nests",
        "map",
        "drop degenerate loops",
        "chain products",
        "mark reductions",
        "unroll rows",
        "promote temporaries",
        "promote private",
        "promote shared",
        "promote operands",
        "matrix instructions",
        "place barriers",
    ),
)
# Of these, the first is common to all candidates for a kernel and its sizes.
COLUMNS: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "schedule": ("scop", "schedule"),
        "passes": _PASSES,
        "proofs": ("verify schedule", "verify code"),
        "loops": (
            "generate",
            "localize",
            "separate tiles",
            "guard tiles",
            "constant unroll bounds",
            "unroll borders",
            "separate borders",
            "stream fills",
            "strip fills",
            "drop constant guards",
            "guard nests",
            "constant trip counts",
            "separate counts",
            "separate stages",
            "complete tiles",
            "join kernels",
            "stream tiles",
            "kernels",
            "prefetch gathers",
            "prefetch blocks",
            "prefetch stores",
            "prefetch fills",
            "prefetch copies",
            "prefetch panels",
            "prefetch pieces",
        ),
        "text": ("print",),
        "compiler": ("compile", "load"),
    }
)
_SHARED: Final = "schedule"


def compilation(report: Report) -> str:
    """A line for each case with milliseconds of the stages, and of a candidate: of all but the schedule."""
    head = "".join(f"{title:>10}" for title in (*COLUMNS, "candidate"))
    lines = [f"{'compiling, ms':18}{head}"]
    for row in report.rows:
        stages = next((m.stages for m in row.measured if m.contender is Contender.OURS), None)
        if stages is None:
            continue
        seconds = in_columns(stages)
        seconds["candidate"] = sum(value for title, value in seconds.items() if title != _SHARED)
        lines.append(f"{row.case:18}" + "".join(f"{1e3 * value:10.1f}" for value in seconds.values()))
    return "\n".join(lines)


def in_columns(stages: Mapping[str, float]) -> dict[str, float]:
    """The seconds of the stages, by name, that each column counts."""
    return {title: sum(stages.get(name, 0.0) for name in names) for title, names in COLUMNS.items()}
