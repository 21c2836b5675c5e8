"""``Rule``: a pattern, what replaces it, and when."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from tc.base.frozen import frozen
from tc.graph.ir.builder import Builder
from tc.graph.ir.values import Value
from tc.graph.rewrite.pattern import Match, Pattern

# Makes the value that replaces the result of the root; None where the rule does not hold after all.
Replacement: TypeAlias = Callable[[Builder, Match], "Value | None"]


class Where(Enum):
    """For which machines a rule is."""

    ANYWHERE = "anywhere"
    GPUS = "GPUs"
    PROCESSORS = "processors"


def always(_match: Match) -> bool:
    """The condition of rules that have none."""
    return True


@frozen
class Rule:
    """``name: pattern -> replacement if condition``.  ``meaning`` says it in words, as the documents list it.

    ``late``: it is tried when no other rule applies any more, and what is constant is computed.  ``where``: plans for
    other machines go without it.
    """

    name: str
    pattern: Pattern
    replacement: Replacement
    condition: Callable[[Match], bool]
    meaning: str
    late: bool = False
    where: Where = Where.ANYWHERE
