"""How a proof fails: what is wrong, and a witness."""

from __future__ import annotations

from enum import Enum

import islpy as isl

from tc.base.frozen import frozen
from tc.language.isl.pieces import maps_of


class Violation(Enum):
    """Which part of the proof fails."""

    MISSING = "an instance never runs"
    FOREIGN = "an instance runs that is not in the program"
    REPEATED = "an instance runs more than once"
    REORDERED = "two conflicting instances run in the wrong order"
    CONCURRENT = "two conflicting instances may run at the same time"
    MISUSED_DIVISION = "an index is divided by a form of division that C gets wrong there"
    OUT_OF_BOUNDS = "an access leaves its buffer"
    WRONG_ELEMENT = "a promoted access finds another element than the one it stands for"
    NOT_LOADED = "a promoted element is read before anything was put there"
    NOT_STORED = "a promoted element is written and never stored"
    STORED_UNWRITTEN = "an element is stored that was never written"
    BYPASSED = "an access bypasses the buffer that holds its element"
    WRONG_SCOPE = "the arrays that hold a buffer do not match its values"
    WRITTEN_TWICE = "two instances of one statement write one element"
    OVERLAPPING = "two elements of a buffer share a place in memory"
    WRONG_TYPE = "a buffer holds another type than its tensor"
    NOT_INITIALIZED = "an element is updated that is not set to the neutral element before"
    CHANGED = "a statement is not what the program says"
    RACE = "no barrier orders two conflicting instances on different threads of a block"
    NOT_AWAITED = "what is copied may arrive after it is read"
    UNLAUNCHED = "the blocks and threads of a launch do not run a statement as the loops over them say"
    DIVERGENT = "some thread of a block may miss a barrier"
    MISCOPIED = "an unrolled loop has another body at one of its iterations"
    WRONG_NODE = "the loops have a statement in the place of a barrier, or a barrier in the place of a statement"
    WRONG_FRAGMENT = "a lane holds something else than what a matrix instruction multiplies there"
    UNFENCED = "matrix instructions that read shared memory by themselves may not see what threads wrote there"
    UNORDERED_STREAM = "a tile of a stream may not be in its slot while it is used"
    WRONG_BOX = "a box of a stream is something else than what the copies of its loop bring"
    ALONE = "some lane of a warp may miss an exchange"
    SURPLUS = "what is computed beyond the program may be seen"


@frozen
class Counterexample:
    """One failure: what, and a witness instance (or pair of instances) as isl text."""

    violation: Violation
    witness: str

    def __str__(self) -> str:
        return f"{self.violation.value}: {self.witness}"


def point_text(points: isl.UnionSet) -> str:
    """One point of the set, such as ``S0[3, 4]``."""
    return _bare(str(isl.UnionSet.from_point(points.sample_point())))


def pair_text(pairs: isl.UnionMap) -> str:
    """One pair of the relation, such as ``S0[3, 4] -> S1[3, 4, 0]``."""
    found = maps_of(pairs)
    chosen = next(relation for relation in found if not relation.is_empty())
    return _bare(str(chosen.sample()))


def _bare(text: str) -> str:
    return text.strip().removeprefix("{").removesuffix("}").strip()
