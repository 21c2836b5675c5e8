"""How long sums are added up, in words."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tc.polyhedral.execution.loop_execution import loop_paths
from tc.polyhedral.ir.loops import (
    Loop,
    LoopTree,
)
from tc.polyhedral.ir.totals import Total


def describe_sums(root: LoopTree, wide: Collection[str]) -> str:
    """A line for every statement whose sums are blocked, or accumulated in float64 (``wide``)."""
    found: dict[str, bool] = {}  # what a loop leaves over is a loop of its own, short enough for float32
    for total in _totals(root):
        found[total.statement] = found.get(total.statement, False) or total.wide
    lines = [f"{name}: partial sums of a few terms, added up in {_type(is_wide)}" for name, is_wide in found.items()]
    return "\n".join([*lines, *(f"{name}: every term is added in float64" for name in sorted(wide))])


def _totals(root: LoopTree) -> Iterator[Total]:
    for _, path in loop_paths(root, ()):
        for step in path:
            if isinstance(step, Loop):
                yield from step.totals


def _type(is_wide: bool) -> str:
    return "float64" if is_wide else "float32"
