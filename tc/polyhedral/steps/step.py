"""``Step``: one step of a schedule as the rewrite rule that it is, and ``Rule``, with the proof that covers it.

The rules are Lift's (Steuwer, Fensch, Lindley and Dubach, *Generating Performance Portable Code using Rewrite Rules*,
ICFP 2015).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Final

from tc.base.frozen import frozen


class Shown(Enum):
    """What ``tc.polyhedral.proof`` shows of the tree, and again of the loops, and so of each step."""

    ORDER = "every conflicting pair of instances runs in the order of the definition"
    PARTS = "each term of a reduction is in one part, and each part is combined once"
    PLACES = "each access to a buffer finds the element that it stands for"
    APART = "no conflicting pair of instances runs at the same time"


class Rule(Enum):
    """A rule by its name."""

    SPLIT_JOIN = "split-join"
    INTERCHANGE = "interchange"
    MAP_MAP = "map-map fusion"
    REDUCE_MAP = "reduce-map fusion"
    PARTIAL_REDUCTION = "partial reduction"
    TO_LOCAL = "toLocal"
    TO_PRIVATE = "toPrivate"
    MAP_WORKGROUPS = "mapWrg"
    MAP_LOCAL = "mapLcl"
    MAP_GLOBAL = "mapGlb"
    AS_VECTOR = "asVector"

    @property
    def shown(self) -> Shown:
        """What makes its use legal."""
        return _SHOWN[self]


_SHOWN: Final = {
    Rule.SPLIT_JOIN: Shown.ORDER,
    Rule.INTERCHANGE: Shown.ORDER,
    Rule.MAP_MAP: Shown.ORDER,
    Rule.REDUCE_MAP: Shown.ORDER,
    Rule.PARTIAL_REDUCTION: Shown.PARTS,
    Rule.TO_LOCAL: Shown.PLACES,
    Rule.TO_PRIVATE: Shown.PLACES,
    Rule.MAP_WORKGROUPS: Shown.APART,
    Rule.MAP_LOCAL: Shown.APART,
    Rule.MAP_GLOBAL: Shown.APART,
    Rule.AS_VECTOR: Shown.APART,
}


@frozen
class Step:
    """``what`` is done to ``tensors``, whose elements statements compute; without any, ``what`` says of which."""

    rule: Rule
    what: str
    tensors: tuple[str, ...] = ()

    def __str__(self) -> str:
        whose = f"{', '.join(self.tensors)}: " if self.tensors else ""
        return f"{self.rule.value}: {whose}{self.what}"


def steps_text(steps: Iterable[Step]) -> str:
    """A line for each step, below one that says what is proven."""
    found = list(steps)
    lines: list[str] = []
    for shown in Shown:
        own = [f"  {step}" for step in found if step.rule.shown is shown]
        lines += [f"proven: {shown.value}", *own] if own else []
    return "\n".join(lines)
